// The WebAssembly module (crates/koel-wasm/src) as the classes call it: a result that says that the
// call failed is an exception, and keys and bytes go through two buffers of the module.
//
// A key is written to the module's input buffer as bytes: text as UTF-8, an integer as eight
// little-endian bytes. The filter hashes the same bytes in Rust, Python and the command, so they
// share files.
//
// A batch that fails has done the keys before the one that failed, and the exception says how many
// (`done`) and has their answers (`answers`).
//
// Memory of WebAssembly moves when it grows: views of it are made anew for each call.

import { batches } from "./batches.js";
import { bytesOf, viewOf } from "./keys.js";

const decoder = new TextDecoder();

/** The input buffer has at least so many bytes. */
const LEAST_INPUT = 1 << 12;

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

/** Reads answer `i` of a batch: of one byte, or of eight. */
export const flag = (view, i) => view.getUint8(i) !== 0;
export const number = (view, i) => Number(view.getBigUint64(8 * i, true));

/** A WebAssembly module. `load` returns the exports of an instance of it, when the first is needed. */
export class Module {
  #load;
  #exports;
  #memory;
  #buffer = new Uint8Array();

  /** The input buffer, with at least so many bytes. */
  input = (length) => {
    const { wasm } = this;
    if (this.#buffer.length < length || this.#buffer.buffer !== this.#memory.buffer) {
      const size = Math.max(length, LEAST_INPUT);
      const address = wasm.koel_input(size) >>> 0;
      if (address === 0) throw new KoelError("memory", `no memory for ${length} bytes of input`);
      this.#buffer = new Uint8Array(this.#memory.buffer, address, size);
    }
    return this.#buffer;
  };

  /** A result from 0 on, or an exception. */
  checked = (result) => {
    if (result >= 0) return result;
    const code = CODES[result] ?? "internal";
    const advice = code === "memory" ? "; call free() on filters that are not needed any more" : "";
    throw new KoelError(code, this.text() + advice);
  };

  /** Passes on a batch in pieces: see batches.js. */
  inBatches = batches(this.input);

  /** Frees filters that nothing refers to any more. An exception would end the process. */
  registry = new FinalizationRegistry((free) => {
    try {
      free();
    } catch {
      // The module has stopped.
    }
  });

  constructor(load) {
    this.#load = load;
  }

  /** The functions of the module. */
  get wasm() {
    return this.#exports ?? this.#start();
  }

  #start() {
    const { memory, ...exports } = this.#load();
    const functions = Object.entries(exports).filter(([, run]) => typeof run === "function");
    this.#memory = memory;
    this.#exports = Object.fromEntries(functions.map(([name, run]) => [name, guarded(run)]));
    return this.#exports;
  }

  output() {
    const [address, length] = [this.wasm.koel_output() >>> 0, this.wasm.koel_output_len() >>> 0];
    return new Uint8Array(this.#memory.buffer, address, length);
  }

  text() {
    return decoder.decode(this.output().slice());
  }

  /** The output, which may be large, so that it is not kept. */
  taken() {
    const bytes = this.output().slice();
    this.clearBuffers();
    return bytes;
  }

  clearBuffers() {
    this.wasm.koel_clear_buffers();
    this.#buffer = new Uint8Array();
  }

  /** Writes pieces of bytes to the input buffer, one behind the other. Returns their length. */
  put(pieces) {
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const target = this.input(length);
    let at = 0;
    for (const piece of pieces) {
      target.set(piece, at);
      at += piece.length;
    }
    return length;
  }

  /** The checked result of `run`, which finds these bytes in the input buffer. */
  given(bytes, run) {
    const view = bytesOf(bytes);
    if (!view) throw new TypeError("expected a Uint8Array or an ArrayBuffer");
    this.input(view.length).set(view);
    try {
      return this.checked(run(view.length));
    } finally {
      this.clearBuffers();
    }
  }

  /**
   * Does `work` for each piece of a batch, and then reads its answers with `read`. An exception is
   * told how many keys are done, and gets their answers. Where a piece may be done in part, `partly`
   * outputs the answers of that part and returns how many keys it has.
   */
  batch(keys, isInteger, work, read, partly) {
    const answers = read && [];
    let done = 0;
    const take = (count) => {
      if (read) {
        const view = viewOf(this.output());
        for (let i = 0; i < count; i += 1) answers.push(read(view, i));
      }
      done += count;
    };
    try {
      this.inBatches(keys, isInteger, (kind, count) => {
        const result = work(kind, count);
        try {
          this.checked(result);
        } catch (error) {
          if (partly) take(partly());
          throw error;
        }
        take(count);
      });
    } catch (error) {
      throw tell(error, done, answers);
    }
    return answers;
  }
}
