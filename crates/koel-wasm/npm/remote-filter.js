// The class RemoteFilter: a filter that is asked where it lies, by ranges of its bytes (ranges.js).
// The module says which ranges answer, and what their bytes say (crates/koel/src/remote).
//
// Each use of the buffers of the module ends before the next `await`, so calls may overlap.

import { batches } from "./batches.js";
import { Handle } from "./handle.js";
import { viewOf } from "./keys.js";
import { flag, KoelError, Module } from "./module.js";
import { optionOf, optionsOf, wholeOf } from "./options.js";
import { Ranges } from "./ranges.js";

const HEADER_BYTES = 192;

/** Bytes of a page: from some buckets to half of what a batch may fetch. */
const [LEAST_PAGE, MOST_PAGE] = [64, 1 << 24];

/** The most bytes that a batch fetches: two pages a key, each with a gap to one before it. */
const BATCH_BYTES = 1 << 25;
const GAP = 1 << 14;

/** Only what `open` makes is a filter. */
const MADE = Symbol("made by RemoteFilter.open");

function pageOf(page) {
  const bytes = Number(wholeOf("page", page));
  if (bytes >= LEAST_PAGE && bytes <= MOST_PAGE) return bytes;
  throw new TypeError(`page: expected ${LEAST_PAGE} to ${MOST_PAGE} bytes, got ${page}`);
}

/** The class on this module. */
export function remoteOf(module) {
  const { checked } = module;

  /** The pairs of numbers in the output. */
  function pairs() {
    const view = viewOf(module.output());
    const number = (at) => Number(view.getBigUint64(at, true));
    return Array.from({ length: view.byteLength / 16 }, (_, i) => [number(16 * i), number(16 * i + 8)]);
  }

  /** The result of `run`, which finds these pieces of bytes in the input buffer. */
  function withBytes(pieces, run) {
    try {
      return run(module.put(pieces));
    } finally {
      module.clearBuffers();
    }
  }

  /** The range of the exact answers of a file with this header. */
  const tailOf = (header) =>
    withBytes([header], (length) => {
      checked(module.wasm.koel_remote_tail(length));
      return pairs()[0];
    });

  class RemoteFilter {
    #handle;
    #ranges;
    #page;
    #inBatches;

    constructor(made, number, ranges, page) {
      if (made !== MADE) throw new TypeError("use await RemoteFilter.open(url)");
      const { koel_remote_free, koel_remote_line_options } = module.wasm;
      this.#handle = new Handle(module, number, koel_remote_free, koel_remote_line_options);
      [this.#ranges, this.#page] = [ranges, BigInt(page)];
      this.#inBatches = batches(module.input, Math.floor(BATCH_BYTES / (2 * (page + GAP))) || 1);
    }

    static async open(url, options = {}) {
      const { page: bytes = 4096, signal, fetch: run = globalThis.fetch } = optionsOf(options, "page", "signal", "fetch");
      const address = typeof url === "string" ? url : String(optionOf("url", url, "object"));
      const page = pageOf(bytes);
      const ranges = new Ranges(address, page, optionOf("fetch", run, "function"));
      const header = await ranges.begin(HEADER_BYTES, signal);
      const [start, end] = tailOf(header);
      const tail = end > start ? [await ranges.one(start, end, signal)] : [];
      const number = withBytes([header, ...tail], (length) => checked(module.wasm.koel_remote_open(length)));
      const filter = new RemoteFilter(MADE, number, ranges, page);
      const [size, expected] = [ranges.size ?? NaN, filter.byteLength];
      if (Number.isNaN(size) || size === expected) return filter;
      filter.free();
      throw ranges.error(`the file has ${size} bytes, and its header says ${expected}; copy the file again`, "bytes");
    }

    /** The answers of the batches whose numbers `make` passes to a function. */
    async #answers(make, signal) {
      const asked = [];
      const answers = [];
      try {
        make((batch) => asked.push({ batch: checked(batch), ranges: pairs() }));
        for (const { batch, ranges } of asked) {
          const pages = await this.#ranges.pages(ranges, signal);
          withBytes(pages, (length) => {
            const count = checked(module.wasm.koel_remote_answer(this.#handle.open, batch, length));
            const view = viewOf(module.output());
            for (let i = 0; i < count; i += 1) answers.push(flag(view, i));
          });
        }
      } finally {
        for (const { batch } of asked) module.wasm.koel_remote_forget(batch);
      }
      return answers;
    }

    async has(key, options) {
      return (await this.hasMany([key], options))[0];
    }

    async hasMany(keys, options = {}) {
      const { signal } = optionsOf(options, "signal");
      const ask = (kind, count) => module.wasm.koel_remote_ask(this.#handle.open, kind, count, this.#page);
      // Also where there are no keys, a filter that was freed throws.
      this.#handle.open;
      const make = (take) => this.#inBatches(keys, this.#handle.isInteger, (kind, count) => take(ask(kind, count)));
      return this.#answers(make, signal);
    }

    async hasUrl(url, options = {}) {
      const { signal } = optionsOf(options, "signal");
      const length = () => this.#handle.put(optionOf("url", url, "string"));
      const make = (take) => take(module.wasm.koel_remote_ask_url(this.#handle.open, length(), this.#page));
      if ((await this.#answers(make, signal)).includes(true)) return true;
      checked(module.wasm.koel_remote_check_url(this.#handle.open, length()));
      return false;
    }

    free() {
      this.#handle.free();
    }

    get requests() {
      return this.#ranges.requests;
    }

    get bytesRead() {
      return this.#ranges.bytes;
    }

    get size() {
      return checked(module.wasm.koel_remote_len(this.#handle.open));
    }

    get corrections() {
      return checked(module.wasm.koel_remote_corrections(this.#handle.open));
    }

    get capacity() {
      return checked(module.wasm.koel_remote_capacity(this.#handle.open));
    }

    get errorRate() {
      return checked(module.wasm.koel_remote_error_rate(this.#handle.open));
    }

    get currentErrorRate() {
      return checked(module.wasm.koel_remote_current_error_rate(this.#handle.open));
    }

    get byteLength() {
      return checked(module.wasm.koel_remote_byte_length(this.#handle.open));
    }

    get lineOptions() {
      return this.#handle.lineOptions;
    }

    toString() {
      if (this.#handle.isFreed) return "RemoteFilter { freed }";
      const { size, byteLength, requests, bytesRead } = this;
      return `RemoteFilter { size: ${size}, byteLength: ${byteLength}, requests: ${requests}, bytesRead: ${bytesRead} }`;
    }

    toJSON() {
      throw new TypeError("a RemoteFilter has no JSON; open its URL again");
    }

    /** What `console.log` prints in Node. */
    [Symbol.for("nodejs.util.inspect.custom")]() {
      return this.toString();
    }
  }

  if (Symbol.dispose) RemoteFilter.prototype[Symbol.dispose] = RemoteFilter.prototype.free;
  return RemoteFilter;
}

/** The classes. `load` returns the exports of an instance of the module, when the first is needed. */
export function bindRemote(load) {
  return { RemoteFilter: remoteOf(new Module(load)), KoelError };
}
