// The class CuckooFilter on the exports of the WebAssembly module (crates/koel-wasm/src).
//
// A key is written to the module's input buffer as bytes: text as UTF-8, an integer as eight
// little-endian bytes. The filter hashes the same bytes in Rust, Python and the command, so they
// share files. Long batches are cut, so that the module's memory does not grow with them.
//
// Memory of WebAssembly moves when it grows: views of it are made anew for each call.

const encoder = new TextEncoder();
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

/** An operation that failed. The message is the library's sentence. */
export class KoelError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "KoelError";
    this.code = code;
  }
}

/** A whole number of 64 bits, as a bigint; undefined for anything else. */
function wholeOf(value) {
  const isWhole = typeof value === "bigint" || Number.isSafeInteger(value);
  return isWhole && value >= 0 && value < 1n << 64n ? BigInt(value) : undefined;
}

function capacityOf(value) {
  const capacity = wholeOf(value);
  if (capacity !== undefined) return capacity;
  throw new TypeError(`capacity: expected a whole number, got ${String(value)}`);
}

function seedOf(value) {
  const seed = wholeOf(value);
  if (seed !== undefined) return seed;
  throw new TypeError(`seed: expected a whole number below 2n ** 64n, got ${String(value)}`);
}

function optionOf(name, value, type) {
  if (typeof value === type) return value;
  throw new TypeError(`${name}: expected a ${type}, got ${String(value)}`);
}

function preferOf(value) {
  if (value === "small" || value === "fast") return value;
  throw new TypeError(`prefer: expected "small" or "fast", got ${String(value)}`);
}

/**
 * Writes a key at `at` of the bytes that `room` returns for its size. Returns its length, or -1 if
 * `room` returns none.
 *
 * Numbers come first: otherwise the compiler of Node 20 moves the load of a text's length ahead of
 * the test of its type, and crashes on a small integer.
 */
function write(key, at, room) {
  if (typeof key === "number" || typeof key === "bigint") {
    const target = room(8);
    return target ? writeInteger(key, new DataView(target.buffer, target.byteOffset + at, 8)) : -1;
  }
  if (typeof key === "string") {
    const target = room(3 * key.length);
    return target ? encoder.encodeInto(key, target.subarray(at)).written : -1;
  }
  if (key instanceof Uint8Array) {
    const target = room(key.length);
    target?.set(key, at);
    return target ? key.length : -1;
  }
  throw new TypeError("a key must be a string, a Uint8Array, a bigint or a whole number");
}

function writeInteger(key, view) {
  if (Number.isSafeInteger(key) && key >= 0) {
    // Without a bigint, which takes most of the time of a lookup.
    view.setUint32(0, key >>> 0, true);
    view.setUint32(4, key / 2 ** 32, true);
  } else {
    const integer = wholeOf(key);
    if (integer === undefined) {
      throw new RangeError(`a number is a key if it is whole and from 0 to 2^64 - 1, not ${key}`);
    }
    view.setBigUint64(0, integer, true);
  }
  return 8;
}

/** An export whose traps are exceptions of this package. */
function guarded(run) {
  return (a, b, c, d, e, f) => {
    try {
      return run(a, b, c, d, e, f);
    } catch (trap) {
      throw new KoelError("internal", `the WebAssembly module stopped (${trap.message}); reload it`);
    }
  };
}

/** The classes, for the exports of an instance of the module. */
export function bind({ memory, ...exports }) {
  const functions = Object.entries(exports).filter(([, run]) => typeof run === "function");
  const wasm = Object.fromEntries(functions.map(([name, run]) => [name, guarded(run)]));

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
    const message = decoder.decode(output().slice());
    throw new KoelError(CODES[result] ?? "internal", message);
  }

  /** Writes a key to the input buffer. Returns its length. */
  function put(key) {
    return write(key, 0, input);
  }

  /** Frees filters that nothing refers to any more. */
  const registry = new FinalizationRegistry((handle) => wasm.koel_free(handle));

  /** Passes a batch in pieces. Calls `each` with their kind, number of keys and first index. */
  function inBatches(keys, each) {
    if (!Array.isArray(keys) && !(keys instanceof BigUint64Array)) {
      throw new TypeError("keys must be an array or a BigUint64Array");
    }
    for (let start = 0; start < keys.length; ) {
      const putBatch = Array.isArray(keys) ? putTexts : putIntegers;
      const [kind, count] = putBatch(keys, start);
      each(kind, count, start);
      start += count;
    }
  }

  function putIntegers(keys, start) {
    const piece = keys.subarray(start, start + BATCH_KEYS);
    // Little-endian, as WebAssembly and every machine that runs Node or a browser today.
    input(piece.byteLength).set(new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength));
    return [1, piece.length];
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
    return [0, count];
  }

  /** Calls `ask` for each piece of a batch. Returns what `read` makes of the outputs. */
  function answers(keys, ask, read) {
    const results = new Array(keys.length);
    inBatches(keys, (kind, count, start) => {
      checked(ask(kind, count));
      const bytes = output();
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      for (let i = 0; i < count; i += 1) results[start + i] = read(view, i);
    });
    return results;
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
    const { capacity, errorRate = 0.001, growable = false, prefer = "small", seed } = options;
    const isOpen = capacity === undefined;
    return wasm.koel_build(
      isOpen ? GROW_TO : capacityOf(capacity),
      optionOf("errorRate", errorRate, "number"),
      isOpen ? GROW_FROM : 0n,
      optionOf("growable", growable, "boolean") ? 1 : 0,
      preferOf(prefer) === "fast" ? 1 : 0,
      seed === undefined ? wasm.koel_default_seed() : seedOf(seed),
    );
  }

  class CuckooFilter {
    #handle;

    constructor(options = {}) {
      const { handle } = options instanceof Made ? options : new Made(build(options));
      this.#handle = handle;
      registry.register(this, handle, this);
    }

    static fromBytes(bytes) {
      const view = bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : bytes;
      if (!(view instanceof Uint8Array)) {
        throw new TypeError("expected a Uint8Array or an ArrayBuffer");
      }
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
      inBatches(keys, (kind, count) => checked(wasm.koel_add_many(handle, kind, count)));
      return this;
    }

    hasMany(keys) {
      const handle = this.#open;
      return answers(keys, (kind, count) => wasm.koel_has_many(handle, kind, count), flag);
    }

    deleteMany(keys) {
      const handle = this.#open;
      return answers(keys, (kind, count) => wasm.koel_delete_many(handle, kind, count), flag);
    }

    countMany(keys) {
      const handle = this.#open;
      return answers(keys, (kind, count) => wasm.koel_count_many(handle, kind, count), number);
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
  }

  if (Symbol.dispose) CuckooFilter.prototype[Symbol.dispose] = CuckooFilter.prototype.free;
  return { CuckooFilter, KoelError };
}
