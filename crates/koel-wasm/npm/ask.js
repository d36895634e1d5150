// The class FilterReader: what is asked of a filter. CuckooFilter (filter.js) is one that also changes.

import { Handle } from "./handle.js";
import { flag, KoelError, Module, number } from "./module.js";
import { optionOf } from "./options.js";

/** Marks the filters of any copy of this package. */
export const BRAND = Symbol.for("koel-filter");

/**
 * The one property of a filter, which has none to copy or compare: what `structuredClone` and
 * `postMessage` name when they refuse it. Each filter has a symbol of its own, so that
 * `deepStrictEqual` and its kin call no two filters equal.
 */
const noClone = (name) => Symbol(`a ${name}: clone or compare its toBytes()`);

/** A filter in the memory of the module. */
export class LocalHandle extends Handle {
  constructor(module, number) {
    super(module, number, module.wasm.koel_free, module.wasm.koel_line_options);
  }

  /** The filter in these bytes. */
  static of(module, bytes) {
    const open = (length) => module.wasm.koel_open(length);
    return new LocalHandle(module, module.given(bytes, open));
  }

  /** The filter that a patch makes of this one. */
  patched(patch) {
    const make = (length) => this.module.wasm.koel_patched(this.open, length);
    return new LocalHandle(this.module, this.module.given(patch, make));
  }
}

/** The class on this module. */
export function readerOf(module) {
  const { checked } = module;

  class FilterReader {
    #handle;
    #name;

    constructor(handle, name = "FilterReader") {
      if (!(handle instanceof Handle)) throw new TypeError("use FilterReader.fromBytes(bytes)");
      this.#handle = handle;
      this.#name = name;
      Object.defineProperty(this, "structuredClone", { value: noClone(name), enumerable: true });
    }

    static fromBytes(bytes) {
      return new FilterReader(LocalHandle.of(module, bytes));
    }

    patched(patch) {
      return new FilterReader(this.#handle.patched(patch));
    }

    has(key) {
      return checked(module.wasm.koel_has(this.#handle.open, this.#handle.put(key))) === 1;
    }

    hasMany(keys) {
      return this.#handle.batch(module.wasm.koel_has_many, keys, flag);
    }

    hasUrl(url) {
      const length = this.#handle.put(optionOf("url", url, "string"));
      return checked(module.wasm.koel_has_url(this.#handle.open, length)) === 1;
    }

    count(key) {
      return checked(module.wasm.koel_count(this.#handle.open, this.#handle.put(key)));
    }

    countMany(keys) {
      return this.#handle.batch(module.wasm.koel_count_many, keys, number);
    }

    toBytes() {
      checked(module.wasm.koel_image(this.#handle.open));
      return module.taken();
    }

    free() {
      this.#handle.free();
    }

    get size() {
      return checked(module.wasm.koel_len(this.#handle.open));
    }

    get corrections() {
      return checked(module.wasm.koel_corrections(this.#handle.open));
    }

    get capacity() {
      return checked(module.wasm.koel_capacity(this.#handle.open));
    }

    get errorRate() {
      return checked(module.wasm.koel_error_rate(this.#handle.open));
    }

    get currentErrorRate() {
      return checked(module.wasm.koel_current_error_rate(this.#handle.open));
    }

    get lineOptions() {
      return this.#handle.lineOptions;
    }

    get loadFactor() {
      return checked(module.wasm.koel_load_factor(this.#handle.open));
    }

    get byteLength() {
      return checked(module.wasm.koel_byte_length(this.#handle.open));
    }

    get growable() {
      return checked(module.wasm.koel_growable(this.#handle.open)) === 1;
    }

    toString() {
      if (this.#handle.isFreed) return `${this.#name} { freed }`;
      const { size, capacity, errorRate, byteLength } = this;
      return `${this.#name} { size: ${size}, capacity: ${capacity}, errorRate: ${errorRate}, byteLength: ${byteLength} }`;
    }

    toJSON() {
      throw new TypeError(`a ${this.#name} has no JSON; use its toBytes()`);
    }

    get [BRAND]() {
      return true;
    }

    /** What `console.log` prints in Node. */
    [Symbol.for("nodejs.util.inspect.custom")]() {
      return this.toString();
    }
  }

  if (Symbol.dispose) FilterReader.prototype[Symbol.dispose] = FilterReader.prototype.free;
  return FilterReader;
}

/** The classes. `load` returns the exports of an instance of the module, when the first is needed. */
export function bindReader(load) {
  return { FilterReader: readerOf(new Module(load)), KoelError };
}
