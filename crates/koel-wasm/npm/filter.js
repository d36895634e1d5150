// The class CuckooFilter: a filter that is built, changed and asked (ask.js), on the exports of the
// WebAssembly module (module.js).
//
// A batch that fails has done the keys before the one that failed; `refuteMany` does all or none.

import { BRAND, LocalHandle, readerOf } from "./ask.js";
import { isBytes } from "./keys.js";
import { flag, KoelError, Module } from "./module.js";
import { optionOf, optionsOf, secondOf, wholeOf } from "./options.js";

/** A filter without a capacity begins with room for so many keys ... */
const GROW_FROM = 1000n;
/** ... and keeps its rate up to so many. 32-bit memory holds no more than six times as many. */
const GROW_TO = 100_000_000n;

/** The option of whether copies of a key are added. */
function isMulti(options) {
  if (options === undefined) return false;
  const { multi = false } = optionsOf(options, "multi");
  return optionOf("multi", multi, "boolean");
}

/** The class on this module. */
export function filterOf(module) {
  const { checked, input } = module;

  function build(options) {
    const { capacity, errorRate = 0.001, growable = false, prefer = "small", seed, secret } = optionsOf(
      options, "capacity", "errorRate", "growable", "prefer", "seed", "secret",
    );
    if (secret !== undefined && (!isBytes(secret) || secret.length !== 16)) {
      throw new TypeError("secret: expected a Uint8Array of 16 bytes");
    }
    if (secret && seed !== undefined) throw new TypeError("give a seed or a secret, not both");
    const isOpen = capacity === undefined;
    const settings = [
      isOpen ? GROW_TO : wholeOf("capacity", capacity),
      optionOf("errorRate", errorRate, "number"),
      isOpen ? GROW_FROM : 0n,
      optionOf("growable", growable, "boolean") ? 1 : 0,
      secondOf("prefer", prefer, "small", "fast"),
      seed === undefined ? undefined : wholeOf("seed", seed),
    ];
    settings[5] ??= module.wasm.koel_default_seed();
    if (secret) input(16).set(secret);
    return new LocalHandle(module, checked(module.wasm.koel_build(...settings, secret ? 1 : 0)));
  }

  /** Outputs what a batch has added before it failed. Returns how many keys it has done. */
  function partlyAdded() {
    module.wasm.koel_put_added();
    return module.wasm.koel_done();
  }

  return class CuckooFilter extends readerOf(module) {
    #handle;

    /** Does `work` with a filter's handle. One of another copy of this package is opened from its bytes. */
    static #with(filter, work) {
      if (typeof filter === "object" && filter !== null && #handle in filter) return work(filter.#handle.open);
      if (filter?.[BRAND] !== true) throw new TypeError("expected a CuckooFilter");
      const own = LocalHandle.of(module, filter.toBytes());
      try {
        return work(own.open);
      } finally {
        own.free();
      }
    }

    constructor(options = {}) {
      const handle = options instanceof LocalHandle ? options : build(options);
      super(handle, "CuckooFilter");
      this.#handle = handle;
    }

    static fromBytes(bytes) {
      return new CuckooFilter(LocalHandle.of(module, bytes));
    }

    patched(patch) {
      return new CuckooFilter(this.#handle.patched(patch));
    }

    add(key, options) {
      if (!isMulti(options)) {
        return checked(module.wasm.koel_add_unique(this.#handle.open, this.#handle.put(key))) === 1;
      }
      checked(module.wasm.koel_add(this.#handle.open, this.#handle.put(key)));
      return true;
    }

    delete(key) {
      return checked(module.wasm.koel_delete(this.#handle.open, this.#handle.put(key))) === 1;
    }

    addMany(keys) {
      return this.#handle.batch(module.wasm.koel_add_unique_many, keys, flag, partlyAdded);
    }

    update(keys, options) {
      const run = isMulti(options) ? module.wasm.koel_add_many : module.wasm.koel_add_unique_many;
      const before = this.size;
      this.#handle.batch(run, keys, undefined, partlyAdded);
      return this.size - before;
    }

    deleteMany(keys) {
      return this.#handle.batch(module.wasm.koel_delete_many, keys, flag);
    }

    refute(key) {
      return checked(module.wasm.koel_refute(this.#handle.open, this.#handle.put(key))) === 1;
    }

    refuteMany(keys, options = {}) {
      this.#handle.open;
      const { force = false } = optionsOf(options, "force");
      const isForced = optionOf("force", force, "boolean") ? 1 : 0;
      // The hashes of reported keys: all keys are read before the first change.
      const pieces = [];
      let asked = 0;
      module.inBatches(keys, this.#handle.isInteger, (kind, count) => {
        checked(module.wasm.koel_reported(this.#handle.open, kind, count));
        pieces.push(module.output().slice());
        asked += count;
      });
      const length = module.put(pieces);
      const before = this.corrections;
      try {
        checked(module.wasm.koel_refute_many(this.#handle.open, length / 8, BigInt(asked), isForced));
      } finally {
        module.clearBuffers();
      }
      return this.corrections - before;
    }

    merge(other, options = {}) {
      const { counts = "max" } = optionsOf(options, "counts");
      const sums = secondOf("counts", counts, "max", "sum");
      CuckooFilter.#with(other, (handle) => checked(module.wasm.koel_merge(this.#handle.open, handle, sums)));
      return this;
    }

    patchTo(newer) {
      return CuckooFilter.#with(newer, (handle) => {
        checked(module.wasm.koel_patch_to(this.#handle.open, handle));
        return module.taken();
      });
    }

    clear() {
      checked(module.wasm.koel_clear(this.#handle.open));
    }
  };
}

/** The classes. `load` returns the exports of an instance of the module, when the first is needed. */
export function bind(load) {
  return { CuckooFilter: filterOf(new Module(load)), KoelError };
}
