// The class CuckooFilter on the exports of the WebAssembly module (crates/koel-wasm/src).
//
// A key is written to the module's input buffer as bytes: text as UTF-8, an integer as eight
// little-endian bytes. The filter hashes the same bytes in Rust, Python and the command, so they
// share files. Long batches are cut, so that the module's memory does not grow with them.
//
// A batch that fails has done the keys before the one that failed, and the exception says how many
// (`done`) and has their answers (`answers`). Keys of arrays and sets are checked before the first
// change; those of other iterables as they come.
//
// Memory of WebAssembly moves when it grows: views of it are made anew for each call.

import { bytesOf, isBytes, isInteger, nameOf, shown, viewOf, write, writeInteger } from "./keys.js";

const decoder = new TextDecoder();

/** The most keys that a call passes at once, and bytes of them, unless one key has more. */
const BATCH_KEYS = 1 << 14;
const BATCH_BYTES = 1 << 20;

/** The input buffer has at least so many bytes. */
const LEAST_INPUT = 1 << 12;

/** A filter without a capacity begins with room for so many keys ... */
const GROW_FROM = 1000n;
/** ... and keeps its rate up to so many. 32-bit memory holds no more than six times as many. */
const GROW_TO = 100_000_000n;

const CODES = { [-1]: "full", [-2]: "settings", [-3]: "bytes", [-4]: "memory", [-5]: "internal" };

/** How keys of a batch lie in the input buffer. */
const [TEXTS, INTEGERS] = [0, 1];

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

  /** Writes a key to the input buffer. Returns its length. */
  function put(key) {
    isInteger(key);
    return write(key, 0, input);
  }

  /** Frees filters that nothing refers to any more. An exception would end the process. */
  const registry = new FinalizationRegistry((handle) => {
    try {
      wasm.koel_free(handle);
    } catch {
      // The module has stopped.
    }
  });

  /** Passes on integers of 64 bits as they lie in memory. */
  function eachWords(words, each) {
    for (let start = 0; start < words.length; start += BATCH_KEYS) {
      const piece = words.subarray(start, start + BATCH_KEYS);
      // Little-endian, as WebAssembly and every machine that runs Node or a browser today.
      input(piece.byteLength).set(new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength));
      each(INTEGERS, piece.length);
    }
  }

  /** Passes on checked keys of an array. */
  function eachOf(keys, areIntegers, each) {
    const put = areIntegers ? putIntegers : putTexts;
    for (let start = 0; start < keys.length; ) {
      const count = put(keys, start);
      each(areIntegers ? INTEGERS : TEXTS, count);
      start += count;
    }
  }

  function putIntegers(keys, start) {
    const count = Math.min(keys.length - start, BATCH_KEYS);
    const view = viewOf(input(8 * count));
    for (let i = 0; i < count; i += 1) writeInteger(keys[start + i], view, 8 * i);
    return count;
  }

  function putTexts(keys, start) {
    const most = Math.min(keys.length - start, BATCH_KEYS);
    const heads = 4 * most;
    let [count, at, target] = [0, heads, input(heads + BATCH_BYTES)];
    const lengths = new Uint32Array(most);
    const room = (size) => {
      if (at + size <= target.length) return target;
      // A key that is longer than all buffers has one for itself.
      return count === 0 ? (target = input(at + size)) : undefined;
    };
    while (count < most) {
      const length = write(keys[start + count], at, room);
      if (length < 0) break;
      lengths[count] = length;
      at += length;
      count += 1;
    }
    // The bytes follow the lengths at once, also where there are fewer keys.
    target.copyWithin(4 * count, heads, at);
    const view = new DataView(target.buffer, target.byteOffset, 4 * count);
    for (let i = 0; i < count; i += 1) view.setUint32(4 * i, lengths[i], true);
    return count;
  }

  /** Checks all keys of an array. Returns whether all are integers. */
  function areIntegers(keys) {
    let all = true;
    // Not `every`: each key is checked, and holes of an array too.
    for (let i = 0; i < keys.length; i += 1) all = isInteger(keys[i]) && all;
    return all;
  }

  /** Passes on the keys of an iterable that may have no end: those before one that fails. */
  function eachOfStream(keys, each) {
    let [piece, all] = [[], true];
    const pass = () => {
      eachOf(piece, all, each);
      [piece, all] = [[], true];
    };
    try {
      for (const key of keys) {
        all = isInteger(key) && all;
        if (piece.push(key) === BATCH_KEYS) pass();
      }
    } catch (error) {
      // Nothing more is passed on if that is what failed.
      if (!isTold(error)) pass();
      throw error;
    }
    pass();
  }

  /** The exception of the last call that failed within a batch. */
  let told;
  const isTold = (error) => told !== undefined && error === told;

  /** Passes on a batch in pieces. Calls `each` with their kind and number of keys. */
  function inBatches(keys, each) {
    const name = nameOf(keys);
    if (name === "BigUint64Array" || name === "BigInt64Array") return eachWords(keys, each);
    if (typeof keys?.[Symbol.iterator] !== "function" || typeof keys === "string" || isBytes(keys)) {
      throw new TypeError("keys must be an array or another iterable; for one key, use [key]");
    }
    const isSet = Object.prototype.toString.call(keys) === "[object Set]";
    const list = isSet ? [...keys] : keys;
    if (!Array.isArray(list) && name === undefined) return eachOfStream(keys, each);
    return eachOf(list, areIntegers(list), each);
  }

  /**
   * Does `work` for each piece of a batch, and then reads its answers with `read`. An exception is
   * told how many keys are done, and gets their answers.
   */
  function batch(keys, work, read, adds = false) {
    const answers = read && [];
    let done = 0;
    const take = (count) => {
      if (read) {
        const view = viewOf(output());
        for (let i = 0; i < count; i += 1) answers.push(read(view, i));
      }
      done += count;
    };
    told = undefined;
    try {
      inBatches(keys, (kind, count) => {
        const result = work(kind, count);
        try {
          checked(result);
        } catch (error) {
          told = error;
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

  /** The result of an export that makes a filter, for the constructor. */
  class Made {
    constructor(result) {
      this.handle = checked(result);
    }
  }

  function build(options) {
    if (options === null || typeof options !== "object") {
      throw new TypeError("expected an object of options, such as { capacity: 1_000_000 }");
    }
    const { capacity, errorRate = 0.001, growable = false, prefer = "small", seed, secret } = options;
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

  class CuckooFilter {
    #handle;

    constructor(options = {}) {
      const { handle } = options instanceof Made ? options : new Made(build(options));
      this.#handle = handle;
      registry.register(this, handle, this);
    }

    static fromBytes(bytes) {
      const view = bytesOf(bytes);
      if (!view) throw new TypeError("expected a Uint8Array or an ArrayBuffer");
      start();
      input(view.length).set(view);
      try {
        return new CuckooFilter(new Made(wasm.koel_open(view.length)));
      } finally {
        clearBuffers();
      }
    }

    /** The handle, unless the filter was freed. */
    get #open() {
      if (this.#handle === undefined) throw new KoelError("freed", "this filter was freed");
      return this.#handle;
    }

    add(key) {
      checked(wasm.koel_add(this.#open, put(key)));
      return this;
    }

    addUnique(key) {
      return checked(wasm.koel_add_unique(this.#open, put(key))) === 1;
    }

    has(key) {
      return checked(wasm.koel_has(this.#open, put(key))) === 1;
    }

    delete(key) {
      return checked(wasm.koel_delete(this.#open, put(key))) === 1;
    }

    count(key) {
      return wasm.koel_count(this.#open, put(key));
    }

    addMany(keys) {
      const handle = this.#open;
      batch(keys, (kind, count) => wasm.koel_add_many(handle, kind, count), undefined, true);
      return this;
    }

    addUniqueMany(keys) {
      const handle = this.#open;
      return batch(keys, (kind, count) => wasm.koel_add_unique_many(handle, kind, count), flag, true);
    }

    hasMany(keys) {
      const handle = this.#open;
      return batch(keys, (kind, count) => wasm.koel_has_many(handle, kind, count), flag);
    }

    deleteMany(keys) {
      const handle = this.#open;
      return batch(keys, (kind, count) => wasm.koel_delete_many(handle, kind, count), flag);
    }

    countMany(keys) {
      const handle = this.#open;
      return batch(keys, (kind, count) => wasm.koel_count_many(handle, kind, count), number);
    }

    merge(other, { counts = "max" } = {}) {
      if (!(typeof other === "object" && other !== null && #handle in other)) {
        throw new TypeError("expected a CuckooFilter");
      }
      const sums = secondOf("counts", counts, "max", "sum");
      checked(wasm.koel_merge(this.#open, other.#open, sums));
      return this;
    }

    clear() {
      checked(wasm.koel_clear(this.#open));
    }

    toBytes() {
      checked(wasm.koel_image(this.#open));
      const bytes = output().slice();
      clearBuffers();
      return bytes;
    }

    free() {
      if (this.#handle === undefined) return;
      registry.unregister(this);
      wasm.koel_free(this.#handle);
      this.#handle = undefined;
    }

    get size() {
      return wasm.koel_len(this.#open);
    }

    get capacity() {
      return wasm.koel_capacity(this.#open);
    }

    get errorRate() {
      return wasm.koel_error_rate(this.#open);
    }

    get currentErrorRate() {
      return wasm.koel_current_error_rate(this.#open);
    }

    get loadFactor() {
      return wasm.koel_load_factor(this.#open);
    }

    get byteLength() {
      return wasm.koel_byte_length(this.#open);
    }

    get growable() {
      return wasm.koel_growable(this.#open) === 1;
    }

    toString() {
      if (this.#handle === undefined) return "CuckooFilter { freed }";
      const { size, capacity, errorRate, byteLength } = this;
      return `CuckooFilter { size: ${size}, capacity: ${capacity}, errorRate: ${errorRate}, byteLength: ${byteLength} }`;
    }

    /** What `console.log` prints in Node. */
    [Symbol.for("nodejs.util.inspect.custom")]() {
      return this.toString();
    }
  }

  if (Symbol.dispose) CuckooFilter.prototype[Symbol.dispose] = CuckooFilter.prototype.free;
  return { CuckooFilter, KoelError };
}
