// The filters behind the picture of `watch.js`. An operation runs at once on one filter. A second
// one, which is drawn, makes its steps when they are shown.
//
// The steps are the library's: its log of what it wrote. The page adds what it reads of a key before
// anything is written, and what came of it. A filter does not store its keys; the page remembers
// them, to name them beside their fingerprints.

import { beasts } from "./names.js";

/** A table of a dozen buckets with short fingerprints, so that false positives are found soon. */
const [CAPACITY, ERROR_RATE] = [24n, 0.03];

/** Steps of the library that are shown. */
const SHOWN = new Set(["searched", "written", "widened", "narrow", "split", "counted"]);

/** A slot in two digits; "0" is an empty one. */
const digits = (slot) => (slot === "0" ? slot : slot.padStart(2, "0"));

/** A step of the library, with its slots in two digits. */
const readable = ({ old, new: slot, ...step }) =>
  old === undefined ? step : { ...step, old: digits(old), new: digits(slot) };

export class Watched {
  constructor(module, grows) {
    const { wasm } = module;
    const build = () => module.checked(wasm.koel_build_small(CAPACITY, ERROR_RATE, grows ? 1 : 0));
    this.module = module;
    [this.real, this.shown] = [build(), build()];
    /** The keys that were added: how often, and where they may be. */
    this.keys = new Map();
    [this.steps, this.made, this.history] = [[], 0, []];
  }

  free() {
    for (const filter of [this.real, this.shown]) this.module.wasm.koel_free(filter);
  }

  /** The steps of adding a key to a filter, or of removing it. */
  trace(filter, key, adds) {
    const { module } = this;
    const traced = module.json(module.wasm.koel_trace(filter, module.key(key), adds ? 1 : 0));
    const [fingerprints, steps] = [traced.fingerprints.map(digits), traced.steps.map(readable)];
    return { ...traced, fingerprints, steps };
  }

  /** A copy of the filter, for as long as `work` runs. */
  onCopy(work) {
    // The module keeps the steps of one operation only.
    this.finish();
    const { module } = this;
    const copy = module.checked(module.wasm.koel_open(module.put(this.image())));
    try {
      return work(copy);
    } finally {
      module.wasm.koel_free(copy);
    }
  }

  /** Adds a key, or removes it, and keeps the steps. An operation that changes nothing stays too. */
  operate(key, adds) {
    this.finish();
    const wasAdded = this.copies(key);
    this.history.push({ image: this.image(), keys: new Map(this.keys) });
    const { buckets, fingerprints, error, steps } = this.trace(this.real, key, adds);
    const place = { buckets, fingerprints };
    const twins = this.twins(key, place);
    const isRemoved = !adds && steps.length > 0;
    if (adds && !error) this.keys.set(key, { ...place, copies: wasAdded + 1 });
    if (isRemoved && wasAdded) this.keys.set(key, { ...place, copies: wasAdded - 1 });
    const changes = steps.map((step, number) => ({ ...step, number, names: this.namesOf(step) }));
    const missing = this.missing();
    const end = { kind: adds ? "added" : "removed", key, error, isRemoved, wasAdded, missing, twins };
    this.show([{ kind: "located", key, ...place }, ...changes, end]);
  }

  /** Asks for a key. */
  ask(key) {
    this.finish();
    // Where the library would take it from. The copy loses it.
    const { buckets, fingerprints, steps } = this.onCopy((copy) => this.trace(copy, key, false));
    const place = { buckets, fingerprints };
    const slots = this.buckets();
    const found = buckets
      .map((bucket, i) => ({ bucket, slot: fingerprints[i] }))
      .filter(({ bucket, slot }) => slots[bucket].includes(slot));
    const answer = { isFound: steps.length > 0, wasAdded: this.copies(key), twins: this.twins(key, place) };
    const begin = { kind: "located", key, ...place };
    this.show([begin, { kind: "compared", ...place, found }, { kind: "asked", key, found, ...answer }]);
  }

  show(steps) {
    [this.steps, this.made] = [steps, 0];
  }

  /** Makes the next steps on the filter that is drawn, up to one that is shown, and returns it. */
  step() {
    for (;;) {
      const step = this.steps[this.made];
      this.made += 1;
      if (step.number === undefined) return step;
      this.module.checked(this.module.wasm.koel_replay(this.shown, step.number));
      if (SHOWN.has(step.kind)) return step;
    }
  }

  get isDone() {
    return this.made >= this.steps.length;
  }

  finish() {
    while (!this.isDone) this.step();
  }

  /** Both filters as they were before the last operation that changed something. */
  undo() {
    const { module } = this;
    const { image, keys } = this.history.pop();
    this.free();
    [this.real, this.shown] = [0, 0].map(() => module.checked(module.wasm.koel_open(module.put(image))));
    [this.keys, this.steps, this.made] = [keys, [], 0];
  }

  image() {
    this.module.checked(this.module.wasm.koel_image(this.real));
    return this.module.output();
  }

  count(key) {
    return this.module.wasm.koel_count(this.real, this.module.key(key));
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
    const { buckets: [home, other], steps } = this.onCopy((copy) => this.trace(copy, key, true));
    return home !== other && steps.some(is);
  }

  /** The slots of the filter that is drawn, as hexadecimal text; "0" is empty. */
  buckets() {
    const buckets = this.module.json(this.module.wasm.koel_slots(this.shown));
    return buckets.map((slots) => slots.map(digits));
  }

  get figures() {
    const { wasm } = this.module;
    return { keys: wasm.koel_len(this.shown), rate: wasm.koel_current_error_rate(this.shown) };
  }
}
