// The filters behind the picture of `watch.js`. An operation runs at once on one filter. A second
// one, which is drawn, makes its steps when the reader asks for them.
//
// The steps are the library's: its log of what it wrote. The page adds what it reads of a key before
// anything is written: the hash, the two buckets, the fingerprint.

/** A small table of few bits, so that false positives are found soon. */
const [CAPACITY, ERROR_RATE] = [24n, 0.03];

export class Watched {
  constructor(module, grows) {
    const { wasm } = module;
    const build = () => {
      const seed = wasm.koel_default_seed();
      return module.checked(wasm.koel_build(CAPACITY, ERROR_RATE, 0n, grows ? 1 : 0, 1, seed, 0));
    };
    this.module = module;
    [this.real, this.shown] = [build(), build()];
    /** The keys that were added, and how often. */
    this.keys = new Map();
    [this.steps, this.made, this.history] = [[], 0, []];
  }

  free() {
    for (const filter of [this.real, this.shown]) this.module.wasm.koel_free(filter);
  }

  /** Adds a key, or removes it, and keeps the steps. An operation that changes nothing stays too. */
  operate(key, adds) {
    this.finish();
    const { module } = this;
    this.history.push({ image: this.image(), keys: new Map(this.keys) });
    const length = module.key(key);
    const result = module.json(module.wasm.koel_trace(this.real, length, adds ? 1 : 0));
    const { hash, buckets, fingerprints, error } = result;
    const replayed = result.steps.map((step, number) => ({ ...step, number }));
    const seen = [
      { kind: "hash", key, hash },
      { kind: "buckets", buckets },
      { kind: "fingerprint", fingerprints, buckets },
    ];
    const wasAdded = this.keys.get(key) ?? 0;
    const removed = !adds && replayed.length > 0;
    if (adds && !error) this.keys.set(key, wasAdded + 1);
    if (removed && wasAdded) this.keys.set(key, wasAdded - 1);
    const end = { kind: "end", key, adds, error, removed, wasAdded, missing: this.missing() };
    [this.steps, this.made] = [[...seen, ...replayed, end], 0];
  }

  /** Makes the next step on the filter that is drawn, and returns it. */
  step() {
    const step = this.steps[this.made];
    if (step?.number !== undefined) {
      this.module.checked(this.module.wasm.koel_replay(this.shown, step.number));
    }
    this.made += 1;
    return step;
  }

  get isDone() {
    return this.made >= this.steps.length;
  }

  finish() {
    while (!this.isDone) this.step();
  }

  /** Both filters as they were before the last operation. */
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

  /** The keys of which fewer copies are counted than were added. */
  missing() {
    return [...this.keys].filter(([key, copies]) => this.count(key) < copies).map(([key]) => key);
  }

  /** A key that was never added, but that the filter reports as present, once. */
  stranger() {
    for (let number = 1; number < 100_000; number += 1) {
      const key = `stranger ${number}`;
      if (!this.keys.has(key) && this.count(key) === 1) return key;
    }
    return undefined;
  }

  /** The slots of the filter that is drawn, as hexadecimal text; "0" is empty. */
  buckets() {
    return this.module.json(this.module.wasm.koel_slots(this.shown));
  }

  get figures() {
    const { wasm } = this.module;
    return { keys: wasm.koel_len(this.shown), rate: wasm.koel_current_error_rate(this.shown) };
  }
}
