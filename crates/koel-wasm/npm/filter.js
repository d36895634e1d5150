// The class CuckooFilter on the exports of the WebAssembly module (crates/koel-wasm/src).
//
// A key is written to the module's input buffer as bytes: text as UTF-8, an integer as eight
// little-endian bytes. The filter hashes the same bytes in Rust, Python and the command, so they
// share files.
//
// A batch that fails has done the keys before the one that failed, and the exception says how many
// (`done`) and has their answers (`answers`). `refuteMany` does all or none.
//
// A batch may run code of its caller between two pieces, which may free the filter. So each piece
// asks for the handle again.
//
// Memory of WebAssembly moves when it grows: views of it are made anew for each call.

import { batches } from "./batches.js";
import { bytesOf, isBytes, isInteger, isNoText, shown, viewOf, write } from "./keys.js";

const decoder = new TextDecoder();

/** The input buffer has at least so many bytes. */
const LEAST_INPUT = 1 << 12;

/** A filter without a capacity begins with room for so many keys ... */
const GROW_FROM = 1000n;
/** ... and keeps its rate up to so many. 32-bit memory holds no more than six times as many. */
const GROW_TO = 100_000_000n;

const CODES = {
  [-1]: "full", [-2]: "settings", [-3]: "bytes", [-4]: "memory", [-5]: "internal", [-6]: "base", [-7]: "lines",
  [-8]: "members", [-9]: "range",
};

/** An operation that failed. The message is the library's sentence. */
export class KoelError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "KoelError";
    this.code = code;
  }
}

/** A whole number from 0 to 2^64 - 1, as a bigint. */
function wholeOf(name, value) {
  const isWhole = typeof value === "bigint" || Number.isSafeInteger(value);
  if (isWhole && value >= 0 && value < 1n << 64n) return BigInt(value);
  throw new TypeError(`${name}: expected a whole number from 0 to 2^64 - 1, got ${shown(value)}`);
}

function optionOf(name, value, type) {
  if (typeof value === type) return value;
  throw new TypeError(`${name}: expected a ${type}, got ${shown(value)}`);
}

/** One of two words: whether it is the second. */
function secondOf(name, value, first, second) {
  if (value === first || value === second) return value === second ? 1 : 0;
  throw new TypeError(`${name}: expected "${first}" or "${second}", got ${shown(value)}`);
}

/**
 * The options, if there are no others than these. A filter, an array, bytes or a promise would look
 * like an object without options.
 */
function optionsOf(options, ...names) {
  const prototype = typeof options === "object" && options !== null && Object.getPrototypeOf(options);
  if (prototype !== null && !(prototype && Object.getPrototypeOf(prototype) === null)) {
    throw new TypeError("expected an object of options, such as { capacity: 1_000_000 }");
  }
  const other = Object.keys(options).find((name) => !names.includes(name));
  if (other !== undefined) throw new TypeError(`no option ${other}: there are ${names.join(", ")}`);
  return options;
}

/** The option of whether copies of a key are added. */
function isMulti(options) {
  if (options === undefined) return false;
  const { multi = false } = optionsOf(options, "multi");
  return optionOf("multi", multi, "boolean");
}

/** Marks the filters of any copy of this package. */
const BRAND = Symbol.for("koel-filter");

/**
 * The one property of a filter, which has none to copy or compare: what `structuredClone` and
 * `postMessage` name when they refuse it. Each filter has a symbol of its own, so that
 * `deepStrictEqual` and its kin call no two filters equal.
 */
const noClone = () => Symbol("a CuckooFilter: clone or compare its toBytes()");

/** An export whose traps are exceptions of this package. */
function guarded(run) {
  return (a, b, c, d, e, f, g) => {
    try {
      return run(a, b, c, d, e, f, g);
    } catch (trap) {
      throw new KoelError("internal", `the WebAssembly module stopped (${trap.message}); reload it`);
    }
  };
}

/** Adds to an exception what a batch has done. Whatever was thrown stays what it is. */
function tell(error, done, answers) {
  try {
    if (typeof error === "object") Object.assign(error, { done, answers });
  } catch {
    // A frozen object.
  }
  return error;
}

/** The classes. `load` returns the exports of an instance of the module, when the first is needed. */
export function bind(load) {
  let wasm;
  let memory;

  function start() {
    if (wasm) return;
    const { memory: own, ...exports } = load();
    const functions = Object.entries(exports).filter(([, run]) => typeof run === "function");
    wasm = Object.fromEntries(functions.map(([name, run]) => [name, guarded(run)]));
    memory = own;
  }

  /** The input buffer of the module. */
  let buffer = new Uint8Array();

  /** The input buffer, with at least so many bytes. */
  function input(length) {
    if (buffer.length < length || buffer.buffer !== memory.buffer) {
      const size = Math.max(length, LEAST_INPUT);
      const address = wasm.koel_input(size) >>> 0;
      if (address === 0) throw new KoelError("memory", `no memory for ${length} bytes of input`);
      buffer = new Uint8Array(memory.buffer, address, size);
    }
    return buffer;
  }

  function output() {
    const [address, length] = [wasm.koel_output() >>> 0, wasm.koel_output_len() >>> 0];
    return new Uint8Array(memory.buffer, address, length);
  }

  function clearBuffers() {
    wasm.koel_clear_buffers();
    buffer = new Uint8Array();
  }

  /** A result from 0 on, or an exception. */
  function checked(result) {
    if (result >= 0) return result;
    const code = CODES[result] ?? "internal";
    const message = decoder.decode(output().slice());
    const advice = code === "memory" ? "; call free() on filters that are not needed any more" : "";
    throw new KoelError(code, message + advice);
  }

  /** Frees filters that nothing refers to any more. An exception would end the process. */
  const registry = new FinalizationRegistry((handle) => {
    try {
      wasm.koel_free(handle);
    } catch {
      // The module has stopped.
    }
  });

  const inBatches = batches(input);

  /**
   * Does `work` for each piece of a batch, and then reads its answers with `read`. An exception is
   * told how many keys are done, and gets their answers.
   */
  function batch(keys, isInteger, work, read, adds = false) {
    const answers = read && [];
    let done = 0;
    const take = (count) => {
      if (read) {
        const view = viewOf(output());
        for (let i = 0; i < count; i += 1) answers.push(read(view, i));
      }
      done += count;
    };
    try {
      inBatches(keys, isInteger, (kind, count) => {
        const result = work(kind, count);
        try {
          checked(result);
        } catch (error) {
          if (adds) {
            wasm.koel_put_added();
            take(wasm.koel_done());
          }
          throw error;
        }
        take(count);
      });
    } catch (error) {
      throw tell(error, done, answers);
    }
    return answers;
  }

  const flag = (view, i) => view.getUint8(i) !== 0;
  const number = (view, i) => Number(view.getBigUint64(8 * i, true));

  /** The output, which may be large, so that it is not kept. */
  function taken() {
    const bytes = output().slice();
    clearBuffers();
    return bytes;
  }

  /** The result of an export that makes a filter, for the constructor. */
  class Made {
    constructor(result) {
      this.handle = checked(result);
    }
  }

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
    start();
    settings[5] ??= wasm.koel_default_seed();
    if (secret) input(16).set(secret);
    return wasm.koel_build(...settings, secret ? 1 : 0);
  }

  /** The filter that `make` makes of the bytes, which it finds in the input buffer. */
  function fromInput(bytes, make) {
    const view = bytesOf(bytes);
    if (!view) throw new TypeError("expected a Uint8Array or an ArrayBuffer");
    input(view.length).set(view);
    try {
      return new CuckooFilter(new Made(make(view.length)));
    } finally {
      clearBuffers();
    }
  }

  class CuckooFilter {
    #handle;

    /** Checks a key. Keys that were made of lines are texts. */
    #isInteger;

    /** Does `work` with a filter's handle. One of another copy of this package is opened from its bytes. */
    static #with(filter, work) {
      if (typeof filter === "object" && filter !== null && #handle in filter) return work(filter.#open);
      if (filter?.[BRAND] !== true) throw new TypeError("expected a CuckooFilter");
      const own = CuckooFilter.fromBytes(filter.toBytes());
      try {
        return work(own.#handle);
      } finally {
        own.free();
      }
    }

    constructor(options = {}) {
      const { handle } = options instanceof Made ? options : new Made(build(options));
      this.#handle = handle;
      Object.defineProperty(this, "structuredClone", { value: noClone(), enumerable: true });
      this.#isInteger = wasm.koel_line_options(handle) === 0 ? isNoText : isInteger;
      registry.register(this, handle, this);
    }

    static fromBytes(bytes) {
      start();
      return fromInput(bytes, (length) => wasm.koel_open(length));
    }

    /** The handle, unless the filter was freed. */
    get #open() {
      if (this.#handle === undefined) throw new KoelError("freed", "this filter was freed");
      return this.#handle;
    }

    /** Writes a key to the input buffer. Returns its length. */
    #put(key) {
      this.#isInteger(key);
      return write(key, 0, input);
    }

    add(key, options) {
      if (!isMulti(options)) return checked(wasm.koel_add_unique(this.#open, this.#put(key))) === 1;
      checked(wasm.koel_add(this.#open, this.#put(key)));
      return true;
    }

    has(key) {
      return checked(wasm.koel_has(this.#open, this.#put(key))) === 1;
    }

    hasUrl(url) {
      return checked(wasm.koel_has_url(this.#open, this.#put(optionOf("url", url, "string")))) === 1;
    }

    delete(key) {
      return checked(wasm.koel_delete(this.#open, this.#put(key))) === 1;
    }

    count(key) {
      return checked(wasm.koel_count(this.#open, this.#put(key)));
    }

    /** A batch whose pieces go to an export of the module. */
    #batch(run, keys, read, adds) {
      // Also where there are no keys, a filter that was freed throws.
      this.#open;
      return batch(keys, this.#isInteger, (kind, count) => run(this.#open, kind, count), read, adds);
    }

    addMany(keys) {
      return this.#batch(wasm.koel_add_unique_many, keys, flag, true);
    }

    update(keys, options) {
      const run = isMulti(options) ? wasm.koel_add_many : wasm.koel_add_unique_many;
      const before = this.size;
      this.#batch(run, keys, undefined, true);
      return this.size - before;
    }

    hasMany(keys) {
      return this.#batch(wasm.koel_has_many, keys, flag);
    }

    deleteMany(keys) {
      return this.#batch(wasm.koel_delete_many, keys, flag);
    }

    countMany(keys) {
      return this.#batch(wasm.koel_count_many, keys, number);
    }

    refute(key) {
      return checked(wasm.koel_refute(this.#open, this.#put(key))) === 1;
    }

    refuteMany(keys, options = {}) {
      this.#open;
      const { force = false } = optionsOf(options, "force");
      const isForced = optionOf("force", force, "boolean") ? 1 : 0;
      // The hashes of reported keys: all keys are read before the first change.
      const pieces = [];
      let asked = 0;
      inBatches(keys, this.#isInteger, (kind, count) => {
        checked(wasm.koel_reported(this.#open, kind, count));
        pieces.push(output().slice());
        asked += count;
      });
      const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
      const target = input(length);
      let at = 0;
      for (const piece of pieces) {
        target.set(piece, at);
        at += piece.length;
      }
      const before = this.corrections;
      try {
        checked(wasm.koel_refute_many(this.#open, length / 8, BigInt(asked), isForced));
      } finally {
        clearBuffers();
      }
      return this.corrections - before;
    }

    merge(other, options = {}) {
      const { counts = "max" } = optionsOf(options, "counts");
      const sums = secondOf("counts", counts, "max", "sum");
      CuckooFilter.#with(other, (handle) => checked(wasm.koel_merge(this.#open, handle, sums)));
      return this;
    }

    patchTo(newer) {
      return CuckooFilter.#with(newer, (handle) => {
        checked(wasm.koel_patch_to(this.#open, handle));
        return taken();
      });
    }

    patched(patch) {
      return fromInput(patch, (length) => wasm.koel_patched(this.#open, length));
    }

    clear() {
      checked(wasm.koel_clear(this.#open));
    }

    toBytes() {
      checked(wasm.koel_image(this.#open));
      return taken();
    }

    free() {
      if (this.#handle === undefined) return;
      registry.unregister(this);
      wasm.koel_free(this.#handle);
      this.#handle = undefined;
    }

    get size() {
      return checked(wasm.koel_len(this.#open));
    }

    get corrections() {
      return checked(wasm.koel_corrections(this.#open));
    }

    get capacity() {
      return checked(wasm.koel_capacity(this.#open));
    }

    get errorRate() {
      return checked(wasm.koel_error_rate(this.#open));
    }

    get currentErrorRate() {
      return checked(wasm.koel_current_error_rate(this.#open));
    }

    get lineOptions() {
      if (wasm.koel_line_options(this.#open) < 0) return undefined;
      return decoder.decode(output().slice());
    }

    get loadFactor() {
      return checked(wasm.koel_load_factor(this.#open));
    }

    get byteLength() {
      return checked(wasm.koel_byte_length(this.#open));
    }

    get growable() {
      return checked(wasm.koel_growable(this.#open)) === 1;
    }

    toString() {
      if (this.#handle === undefined) return "CuckooFilter { freed }";
      const { size, capacity, errorRate, byteLength } = this;
      return `CuckooFilter { size: ${size}, capacity: ${capacity}, errorRate: ${errorRate}, byteLength: ${byteLength} }`;
    }

    toJSON() {
      throw new TypeError("a CuckooFilter has no JSON; use its toBytes()");
    }

    get [BRAND]() {
      return true;
    }

    /** What `console.log` prints in Node. */
    [Symbol.for("nodejs.util.inspect.custom")]() {
      return this.toString();
    }
  }

  if (Symbol.dispose) CuckooFilter.prototype[Symbol.dispose] = CuckooFilter.prototype.free;
  return { CuckooFilter, KoelError };
}
