// Ranges of one file on a web server, in whole pages, of which some are kept. Whatever is not the range
// that was asked for is an exception that says what to do.
//
// The file is the same from the first answer to the last: a strong ETag says so. A server may have
// none, or hide it from other sites. Then the header is read again behind the ranges of each call, and
// pages are kept only after that: it has the checksum of all other bytes.

import { KoelError } from "./module.js";

/** Requests that are on their way at once: as many as browsers and workers have open to one server. */
const AT_ONCE = 6;

/** Bytes of pages that are kept. */
const KEPT = 1 << 20;

const CUT = "try again, and see whether a proxy is between";

const SENTENCES = {
  200: "the server sends the whole file where a range is asked for; fetch the file, or serve it with ranges",
  401: "the server refuses access; check the address",
  403: "the server refuses access; check the address",
  404: "there is no such file; check the address",
  410: "there is no such file; check the address",
  416: "the file is shorter than a filter with its header; check the address",
};

/** What keeps a browser from answering out of its cache. Workers have no cache, and some no such option. */
const FRESH = "cache" in Request.prototype ? { cache: "no-store" } : {};

/** The strong ETag of an answer: equal ones are of equal bytes. */
function tagOf(response) {
  const tag = response.headers.get("etag");
  return tag === null || tag.startsWith("W/") ? undefined : tag;
}

/** What `Content-Range` says, where this site may read it: first and last byte, and the size. */
function rangeOf(response) {
  const [, first, last, size] = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(response.headers.get("content-range")) ?? [];
  return first === undefined ? undefined : { first: Number(first), last: Number(last), size: Number(size) };
}

export class Ranges {
  #url;
  #fetch;
  #page;

  /** Where redirects led last. */
  #target;

  /** The bytes that were read first, and the strong ETag of all answers since, if each had one. */
  #header;
  #tag;

  /** Pages by their first byte, the one that was used last at the end. */
  #kept = new Map();

  /** Requests and bytes of bodies so far. */
  requests = 0;
  bytes = 0;

  /** Bytes of the file, if the server says it. */
  size;

  constructor(url, page, fetch) {
    [this.#url, this.#target, this.#page, this.#fetch] = [url, url, page, fetch];
  }

  /** An error of this file. */
  error(sentence, code = "remote") {
    return new KoelError(code, `cannot ask ${this.#url}: ${sentence}`);
  }

  /** The first bytes of the file, which stay what they are. */
  async begin(length, signal) {
    this.#header = await this.#read(0, length, signal);
    return this.#header;
  }

  /** The bytes from `start` to before `end`, not kept. */
  async one(start, end, signal) {
    const bytes = await this.#read(start, end, signal);
    await this.#recheck(signal);
    return bytes;
  }

  /** The pages in `[start, end]` pairs, which begin with a page, and end with one or with the file. */
  async pages(ranges, signal) {
    const pages = new Map();
    const missing = [];
    for (const [start, end] of ranges) {
      let run;
      for (let at = start; at < end; at += this.#page) {
        const [kept, next] = [this.#kept.get(at), Math.min(at + this.#page, end)];
        pages.set(at, kept);
        if (kept) run = undefined;
        else if (run) run[1] = next;
        else missing.push((run = [at, next]));
      }
    }
    await this.#each(missing, async ([start, end]) => {
      const bytes = await this.#read(start, end, signal);
      for (let at = 0; at < bytes.length; at += this.#page) pages.set(start + at, bytes.subarray(at, at + this.#page));
    });
    if (missing.length > 0) await this.#recheck(signal);
    for (const [at, page] of pages) this.#keep(at, page);
    return [...pages.values()];
  }

  /** Does `work` for each of these, some at a time, and no more after one that fails. */
  async #each(all, work) {
    let next = 0;
    const worker = async () => {
      while (next < all.length) {
        try {
          await work(all[next++]);
        } catch (error) {
          next = all.length;
          throw error;
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  }

  /** Copies a page, unless it is kept already, so that the answer it came in is not kept. */
  #keep(at, page) {
    const kept = this.#kept.get(at) ?? page.slice();
    this.#kept.delete(at);
    this.#kept.set(at, kept);
    while (this.#kept.size * this.#page > KEPT) this.#kept.delete(this.#kept.keys().next().value);
  }

  /** Throws if the file was replaced since it was opened, where the ETags do not tell. */
  async #recheck(signal) {
    if (this.#tag !== undefined) return;
    const header = await this.#read(0, this.#header.length, signal);
    if (header.some((byte, at) => byte !== this.#header[at])) throw this.#replaced();
  }

  #replaced() {
    this.#kept.clear();
    return this.error("the file was replaced meanwhile; open it again");
  }

  async #read(start, end, signal) {
    let response = await this.#ask(this.#target, start, end, signal);
    if (response.status !== 206 && this.#target !== this.#url) {
      // What a redirect leads to may be valid for some minutes only.
      await response.body?.cancel();
      response = await this.#ask(this.#url, start, end, signal);
    }
    try {
      this.#check(response, start, end);
    } catch (error) {
      // The body may be the whole file.
      await response.body?.cancel();
      throw error;
    }
    const bytes = new Uint8Array(await this.#or(response.arrayBuffer(), CUT, signal));
    this.bytes += bytes.length;
    if (bytes.length !== end - start) throw this.error(`${bytes.length} bytes came of a range of ${end - start}; ${CUT}`);
    return bytes;
  }

  #ask(url, start, end, signal) {
    this.requests += 1;
    const headers = { Range: `bytes=${start}-${end - 1}` };
    const sent = (async () => this.#fetch.call(globalThis, url, { headers, signal, ...FRESH }))();
    return this.#or(sent, "check the address, the network, and whether the server allows other sites", signal);
  }

  /** What comes of a promise, or an error of this file that says what to do. */
  async #or(promise, advice, signal) {
    try {
      return await promise;
    } catch (error) {
      signal?.throwIfAborted();
      throw this.error(`${error.cause?.message ?? error.message}; ${advice}`);
    }
  }

  #check(response, start, end) {
    const coding = response.headers.get("content-encoding");
    if (coding !== null && coding !== "identity") {
      throw this.error(`the server or a proxy sends ${coding}, so its ranges are not those of the file; switch compression off for it`);
    }
    const { status } = response;
    if (status !== 206) throw this.error(SENTENCES[status] ?? `the server answered ${status}; try again later`);
    const range = rangeOf(response);
    if (range && (range.first !== start || range.last !== end - 1)) {
      throw this.error(`the server sent ${range.first}-${range.last} where bytes ${start}-${end - 1} were asked for; ${CUT}`);
    }
    this.#follow(response);
    const tag = tagOf(response);
    const isFirst = this.#header === undefined;
    if (isFirst) this.size = range?.size;
    else if (tag !== undefined && this.#tag !== undefined && tag !== this.#tag) throw this.#replaced();
    this.#tag = isFirst || this.#tag !== undefined ? tag : undefined;
  }

  /** Remembers where a redirect led. */
  #follow({ redirected, url }) {
    if (!redirected) return;
    if (this.#url.startsWith("https:") && !url.startsWith("https:")) {
      throw this.error(`it redirects to ${url} without encryption; give an address that stays https`);
    }
    this.#target = url;
  }
}
