// The filter behind the picture of `watch.js`. An operation runs at once; its steps, each with the
// table to draw, are shown one at a time.
//
// What it changed is the difference of the filter before and after (`difference.js`). The page adds
// what it reads of a key before anything is written, and what came of it. A filter does not store
// its keys; the page remembers them, to name them beside their fingerprints.

import { differences, hexadecimal, isMatch, pictureOf } from "./difference.js";
import { beasts } from "./names.js";

/** What a table of a dozen buckets is built for. */
const [CAPACITY, ERROR_RATE] = [24n, 0.03];
/** Whether it grows, and bits of a fingerprint: as few as there are, so that false positives are found soon. */
const USUAL = { grows: false, bits: 8 };
/** The result of an addition that finds no room (crates/koel-wasm/src/failure.rs). */
const FULL = -1;
/** Keys that nobody adds, to count false positives with. */
const ABSENT = new Uint8Array(BigUint64Array.from({ length: 100_000 }, (_, number) => BigInt(number)).buffer);

export class Watched {
  constructor(module, settings = {}) {
    this.module = module;
    this.history = [];
    this.build({ ...USUAL, ...settings });
  }

  /** An empty filter with these settings. */
  build(settings) {
    /** The keys that were ever added: how often they are in, and where they may be. */
    this.keys = new Map();
    this.settings = settings;
    const { grows, bits } = settings;
    const { koel_build_small } = this.module.wasm;
    this.begin(this.module.checked(koel_build_small(CAPACITY, ERROR_RATE, bits, grows ? 1 : 0)));
  }

  begin(filter) {
    this.filter = filter;
    this.picture = pictureOf(this.image());
    this.table = this.picture.table;
    this.show([]);
    this.figures = this.measured();
  }

  /** Builds the filter anew with other settings and the same keys. Returns those that find no room. */
  rebuild(settings) {
    this.finish();
    this.remember();
    const { filter, keys } = this;
    this.build({ ...this.settings, ...settings });
    this.module.wasm.koel_free(filter);
    const refused = [];
    for (const [key, { copies }] of keys) {
      let added = 0;
      while (added < copies && !this.change(key, true).error) added += 1;
      if (added < copies) refused.push(key);
      this.keys.set(key, { ...this.locate(key), copies: added });
    }
    this.relocate();
    this.table = this.picture.table;
    this.figures = this.measured();
    return refused;
  }

  /** Keeps what `undo` returns to. */
  remember() {
    this.history.push({ image: this.image(), keys: new Map(this.keys), settings: this.settings });
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
    const error = result < 0 ? (result === FULL ? "no room was found" : module.text()) : null;
    const place = this.locate(key);
    this.picture = pictureOf(this.image());
    const steps = differences(before, this.picture, place, adds, error !== null);
    return { place, steps, error, isRemoved: result === 1 };
  }

  /**
   * Adds a key, or removes it, and keeps the steps. An operation that changes nothing stays too.
   * Returns whether it was done.
   */
  operate(key, adds) {
    this.finish();
    const [wasAdded, wasEver, before] = [this.copies(key), this.keys.has(key), this.missing()];
    this.remember();
    const first = this.locate(key);
    const { place, steps, error, isRemoved } = this.change(key, adds);
    const twins = this.twins(key, place);
    if (adds && !error) this.keys.set(key, { ...place, copies: wasAdded + 1 });
    if (isRemoved && wasAdded) this.keys.set(key, { ...place, copies: wasAdded - 1 });
    this.relocate();
    const changes = steps.map((step) => ({ ...step, names: this.namesOf(step) }));
    const lost = this.missing().filter((name) => !before.includes(name));
    const end = { key, error, isRemoved, wasAdded, wasEver, lost, twins, count: this.count(key) };
    this.show([{ kind: "located", ...first }, ...changes, { kind: adds ? "added" : "removed", ...end }]);
    return adds ? !error : isRemoved;
  }

  /** Where the keys are after a table has grown. */
  relocate() {
    if (!this.picture.isMarked) return;
    for (const [key, { copies }] of this.keys) this.keys.set(key, { ...this.locate(key), copies });
  }

  /** Asks for a key: the question, and the answer. */
  ask(key) {
    this.finish();
    const place = this.locate(key);
    const found = place.buckets.flatMap((bucket, i) =>
      this.table[bucket].filter((slot) => isMatch(slot, place.fingerprints[i], this.picture)).map((slot) => ({ bucket, slot })),
    );
    const isFound = this.count(key) > 0;
    const answer = { isFound, found, isSure: this.missing().every((name) => this.count(name) > 0) };
    const truth = { wasAdded: this.copies(key), wasEver: this.keys.has(key), twins: this.twins(key, place) };
    this.show([{ kind: "located", ...place, isAsked: true }, { kind: "asked", key, ...place, ...answer, ...truth }]);
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

  /** Whether the table is one between two of the filter. */
  get isBetween() {
    return !this.isDone && this.steps.some(({ table }) => table);
  }

  finish() {
    while (!this.isDone) this.step();
  }

  /** The filter as it was before the last operation. */
  undo() {
    const { image, keys, settings } = this.history.pop();
    this.free();
    Object.assign(this, { keys, settings });
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
      copies > 0 && buckets.some((own, i) => own === bucket && isMatch(slot, fingerprints[i], this.picture));
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
    const [{ filter, picture }, [home, other]] = [this, this.locate(key).buckets];
    this.filter = this.opened(this.image());
    const { steps } = this.change(key, true);
    this.free();
    Object.assign(this, { filter, picture });
    return home !== other && steps.some(is);
  }

  measured() {
    const { wasm } = this.module;
    return { keys: wasm.koel_len(this.filter), rate: wasm.koel_current_error_rate(this.filter) };
  }

  /** The share of so many absent keys that are reported: the rate, measured. */
  reported() {
    const { module } = this;
    const keys = module.put(ABSENT) / 8;
    module.checked(module.wasm.koel_has_many(this.filter, 1, keys));
    return { keys, share: module.output().reduce((sum, isFound) => sum + isFound, 0) / keys };
  }
}
