// The filter behind the picture of `watch.js`. An operation runs at once; its steps, each with the
// table to draw, are shown one at a time.
//
// What it changed is the difference of the filter before and after (`difference.js`). The page adds
// what it reads of a key before anything is written, and what came of it. A filter does not store
// its keys; the page remembers them, to name them beside their fingerprints.

import { differences, hexadecimal, pictureOf } from "./difference.js";
import { beasts } from "./names.js";

/** A table of a dozen buckets with short fingerprints, so that false positives are found soon. */
const [CAPACITY, ERROR_RATE] = [24n, 0.03];

export class Watched {
  constructor(module, grows) {
    this.module = module;
    /** The keys that were added: how often, and where they may be. */
    this.keys = new Map();
    this.history = [];
    this.begin(module.checked(module.wasm.koel_build_small(CAPACITY, ERROR_RATE, grows ? 1 : 0)));
  }

  begin(filter) {
    this.filter = filter;
    this.table = pictureOf(this.image()).table;
    this.show([]);
    this.figures = this.measured();
  }

  free() {
    this.module.wasm.koel_free(this.filter);
  }

  /** Where a key may be: its two buckets, and what a slot of each stores for it. */
  locate(key) {
    const { module } = this;
    const places = module.json(module.wasm.koel_locate(this.filter, module.key(key)));
    return { buckets: places.map(([bucket]) => bucket), fingerprints: places.map(([, slot]) => hexadecimal(slot)) };
  }

  /** Adds a key, or removes it: where it is then, the steps, the error, and whether it was removed. */
  change(key, adds) {
    const { module } = this;
    const before = pictureOf(this.image());
    const result = module.wasm[adds ? "koel_add" : "koel_delete"](this.filter, module.key(key));
    const error = result < 0 ? module.text() : null;
    const place = this.locate(key);
    const steps = differences(before, pictureOf(this.image()), place, adds, error !== null);
    return { place, steps, error, isRemoved: result === 1 };
  }

  /** Adds a key, or removes it, and keeps the steps. An operation that changes nothing stays too. */
  operate(key, adds) {
    this.finish();
    const wasAdded = this.copies(key);
    this.history.push({ image: this.image(), keys: new Map(this.keys) });
    const first = this.locate(key);
    const { place, steps, error, isRemoved } = this.change(key, adds);
    const twins = this.twins(key, place);
    if (adds && !error) this.keys.set(key, { ...place, copies: wasAdded + 1 });
    if (isRemoved && wasAdded) this.keys.set(key, { ...place, copies: wasAdded - 1 });
    const changes = steps.map((step) => ({ ...step, names: this.namesOf(step) }));
    const missing = this.missing();
    const end = { kind: adds ? "added" : "removed", key, error, isRemoved, wasAdded, missing, twins };
    this.show([{ kind: "located", key, ...first }, ...changes, end]);
  }

  /** Asks for a key. */
  ask(key) {
    this.finish();
    const place = this.locate(key);
    const found = place.buckets
      .map((bucket, i) => ({ bucket, slot: place.fingerprints[i] }))
      .filter(({ bucket, slot }) => this.table[bucket].includes(slot));
    const answer = { isFound: this.count(key) > 0, wasAdded: this.copies(key), twins: this.twins(key, place) };
    const begin = { kind: "located", key, ...place };
    this.show([begin, { kind: "compared", ...place, found }, { kind: "asked", key, found, ...answer }]);
  }

  show(steps) {
    [this.steps, this.made] = [steps, 0];
  }

  /** Makes the next step in the table that is drawn, and returns it. */
  step() {
    const step = this.steps[this.made];
    this.made += 1;
    this.table = step.table ?? this.table;
    if (this.isDone) this.figures = this.measured();
    return step;
  }

  get isDone() {
    return this.made >= this.steps.length;
  }

  finish() {
    while (!this.isDone) this.step();
  }

  /** The filter as it was before the last operation. */
  undo() {
    const { image, keys } = this.history.pop();
    this.free();
    this.keys = keys;
    this.begin(this.opened(image));
  }

  opened(image) {
    return this.module.checked(this.module.wasm.koel_open(this.module.put(image)));
  }

  image() {
    this.module.checked(this.module.wasm.koel_image(this.filter));
    return this.module.output();
  }

  count(key) {
    return this.module.wasm.koel_count(this.filter, this.module.key(key));
  }

  copies(key) {
    return this.keys.get(key)?.copies ?? 0;
  }

  /** The keys of which fewer copies are counted than were added. */
  missing() {
    return [...this.keys].filter(([key, { copies }]) => this.count(key) < copies).map(([key]) => key);
  }

  /** Other keys with the fingerprint of this one in one of its buckets. */
  twins(key, { buckets, fingerprints }) {
    const names = buckets.flatMap((bucket, i) => this.names(bucket, fingerprints[i]));
    return [...new Set(names)].filter((name) => name !== key);
  }

  /** The keys that this slot of a bucket may stand for. */
  names(bucket, slot) {
    const may = ([, { copies, buckets, fingerprints }]) =>
      copies > 0 && buckets.some((own, i) => own === bucket && fingerprints[i] === slot);
    return [...this.keys].filter(may).map(([key]) => key);
  }

  namesOf({ kind, bucket, new: slot }) {
    return kind === "written" && slot !== "0" ? this.names(bucket, slot) : [];
  }

  /** A key that was never added, but is reported as present because of one other key. */
  stranger() {
    for (const key of beasts()) {
      if (!this.keys.has(key) && this.count(key) === 1) return key;
    }
    return undefined;
  }

  /** Whether adding a key with two different buckets takes steps of which one is as `is` says. */
  wouldHave(key, is) {
    const [{ filter }, [home, other]] = [this, this.locate(key).buckets];
    this.filter = this.opened(this.image());
    const { steps } = this.change(key, true);
    this.free();
    this.filter = filter;
    return home !== other && steps.some(is);
  }

  measured() {
    const { wasm } = this.module;
    return { keys: wasm.koel_len(this.filter), rate: wasm.koel_current_error_rate(this.filter) };
  }
}
