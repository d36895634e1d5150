// For `Symbol.dispose`; TypeScript has it since 5.2.
/// <reference lib="esnext.disposable" />

import type { Key, Keys } from "./reader.js";

export { KoelError, type Key, type Keys } from "./reader.js";

/** How a filter elsewhere is opened. */
export interface Opening {
  /**
   * Bytes of a page, from 64 to 16,777,216: whole pages are read, so the server learns no more than the
   * page. The default is 4096. Pages are kept, up to a megabyte of them.
   */
  page?: number;
  /** Ends the requests of this call. */
  signal?: AbortSignal;
  /** What fetches, instead of the global `fetch`. It gets the URL, and options with a header `Range`. */
  fetch?: (url: string, options: RequestInit) => Promise<Response>;
}

/** What ends a question. */
export interface Asking {
  /** Ends the requests of this call, which throws the reason of the signal. */
  signal?: AbortSignal;
}

/**
 * A filter on a web server, asked where it lies: its header and corrections are read once, and two
 * pages for a key. Any server of static files that serves ranges will do, if it allows this site to
 * read them; docs/REMOTE.md of Koel has the headers for that, what a question costs, and what the
 * server learns. The answers are those of the whole filter: never false for a key that is in.
 *
 * ```js
 * const blocked = await RemoteFilter.open("https://example.org/list.koel");
 * await blocked.has("ads.example");
 * ```
 *
 * Each method that asks throws a {@link KoelError}, and answers for none of its keys: with code `"remote"`
 * if the server gives another thing than the range, or if the file was replaced; then open it again.
 * With code `"bytes"` if the bytes are none that Koel writes.
 */
export class RemoteFilter {
  private constructor();

  /**
   * Opens the filter at this address.
   * @throws {KoelError} with code `"remote"` if the server gives no range of it, and `"bytes"` if it is
   * not a filter.
   */
  static open(url: string | URL, options?: Opening): Promise<RemoteFilter>;

  /** Whether a key is in. Two requests at most, unless it is read again that the file is the same. */
  has(key: Key, options?: Asking): Promise<boolean>;

  /** `has` for each of the keys: near pages in one request, and six requests at a time. */
  hasMany(keys: Keys, options?: Asking): Promise<boolean[]>;

  /**
   * Whether the host of a URL or one of its parent domains is in, as `hasUrl` of a `FilterReader`.
   * @throws {KoelError} with code `"lines"` if the text has no host and is not in as it is.
   */
  hasUrl(url: string, options?: Asking): Promise<boolean>;

  /** Frees the memory now, instead of after the last reference is gone. */
  free(): void;

  /** `free()`, for `using filter = await RemoteFilter.open(url)`. */
  [Symbol.dispose](): void;

  /**
   * A filter elsewhere has no JSON: pass on its URL.
   * @throws {TypeError} always.
   */
  toJSON(): never;

  /** A line with its figures, which `console.log` prints in Node. */
  toString(): string;

  /** Requests so far. */
  readonly requests: number;
  /** Bytes of their answers, without the headers of HTTP. */
  readonly bytesRead: number;
  /** Bytes of the whole file. */
  readonly byteLength: number;
  /** Keys in the filter, with copies. */
  readonly size: number;
  /** Distinct keys that it was built for. */
  readonly capacity: number;
  /** Keys that were refuted, and not added since. */
  readonly corrections: number;
  /** The false-positive rate that it was built for. */
  readonly errorRate: number;
  /** The false-positive rate as the filter is now. */
  readonly currentErrorRate: number;
  /** The options of `koel build` without which a text is another key: see `FilterReader`. */
  readonly lineOptions: string | undefined;
}
