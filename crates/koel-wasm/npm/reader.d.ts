// For `Symbol.dispose`; TypeScript has it since 5.2.
/// <reference lib="esnext.disposable" />

/**
 * What a filter takes as a key. Text is hashed as UTF-8, and a whole number from -2^63 to 2^64 - 1 as
 * its 64 bits: `7` and `7n` are one key, `"7"` is another. Rust, Python and the command hash alike.
 * Text with half of a surrogate pair is not a key.
 */
export type Key = string | Uint8Array | bigint | number;

/** What a filter takes as a batch of keys. Integers in a `BigUint64Array` are the fastest. */
export type Keys = Iterable<Key>;

/**
 * What an exception of a batch has besides its message. The keys before the one that failed are
 * done, and no other. Keys of arrays and sets are checked before the first change, so one that is
 * not a key leaves everything as it was. Of a filter of lines, a text that gives no key (code
 * `"lines"`) is found later: those before it may be done.
 */
export interface Failed<Answers> {
  /** How many keys are done. */
  done: number;
  /** What the call would have returned for these; undefined for `update`. */
  answers: Answers;
}

/**
 * A filter that is asked and patched, not changed: opened from the bytes of one that the command, Rust,
 * Python or a `CuckooFilter` of `koel-filter` built. `has` is never false for a key that is in. For an
 * absent key it is true at the false-positive rate of the filter.
 *
 * ```js
 * const blocked = FilterReader.fromBytes(new Uint8Array(await response.arrayBuffer()));
 * blocked.hasUrl(location.href);
 * ```
 */
export class FilterReader {
  protected constructor();

  /**
   * Opens the bytes of a filter: of `toBytes`, or of a `.koel` file from Rust, Python or the
   * command. Verifies every byte.
   * @throws {KoelError} with code `"bytes"` if they are not a filter, or fail a check.
   */
  static fromBytes(bytes: Uint8Array | ArrayBuffer): FilterReader;

  /** The file image: the same bytes as in Rust, Python and the command. */
  toBytes(): Uint8Array;

  /** Whether a key is in. */
  has(key: Key): boolean;

  /**
   * Whether the host of a URL or one of its parent domains is in. Where keys are not hosts, the text is
   * also looked up as it is: what `koel check --url` asks. Each lookup may be a false positive.
   * @throws {KoelError} with code `"lines"` if the text has no host and is not in as it is.
   */
  hasUrl(url: string): boolean;

  /**
   * How many copies of a key are in. Never too low, except that a number above 2^53 is
   * rounded.
   */
  count(key: Key): number;

  /** `has` for each of the keys. */
  hasMany(keys: Keys): boolean[];

  /** `count` for each of the keys. */
  countMany(keys: Keys): number[];

  /**
   * The filter that a patch makes of this one, which stays as it is: a patch of `patchTo`, or of
   * Rust, Python or the command. The result is verified.
   *
   * ```js
   * const tonight = FilterReader.fromBytes(list).patched(patch);
   * ```
   * @throws {KoelError} with code `"bytes"` if the patch is damaged or cut short, `"base"` if it was
   * made for another filter or was applied already, and `"full"` if there is no room.
   */
  patched(patch: Uint8Array | ArrayBuffer): FilterReader;

  /**
   * Frees the memory now. Otherwise that happens after the last reference to the filter is gone, but
   * only between two tasks: a loop that makes many filters needs `free()` or `using`.
   */
  free(): void;

  /** `free()`, for `using filter = new CuckooFilter()`. */
  [Symbol.dispose](): void;

  /**
   * A filter has no JSON, and `structuredClone` and `postMessage` refuse it: pass on its `toBytes()`.
   * @throws {TypeError} always.
   */
  toJSON(): never;

  /** A line with its figures, which `console.log` prints in Node. */
  toString(): string;

  /** Keys that were refuted, and not added since. */
  readonly corrections: number;
  /** Keys in the filter, with copies. */
  readonly size: number;
  /** Distinct keys that it was built for. */
  readonly capacity: number;
  /** The false-positive rate that it was built for. */
  readonly errorRate: number;
  /** The false-positive rate as the filter is now. */
  readonly currentErrorRate: number;
  /**
   * The options of `koel build` without which a text is another key, such as `"--ignore-case"`: empty if
   * a key is the text itself, undefined if this version does not know them. A text becomes a key with
   * them, so a filter of hosts (`"--format hosts"`) is asked for hosts or URLs. Text that could be no key
   * is a {@link KoelError} with code `"lines"`, a number a `TypeError`.
   */
  readonly lineOptions: string | undefined;
  /** The share of slots in use, 0 to 1. */
  readonly loadFactor: number;
  /** The length of `toBytes()`. */
  readonly byteLength: number;
  /** Whether the filter grows instead of refusing keys. */
  readonly growable: boolean;
}

/** An operation that failed. The message says why, and what to do. */
export class KoelError extends Error {
  /**
   * * `"full"`: no room for a key or a correction;
   * * `"settings"`: a filter cannot be built with these settings, or two were not built alike;
   * * `"bytes"`: the bytes are not a filter or patch, or fail a check;
   * * `"base"`: the patch is for another filter, or was applied already;
   * * `"lines"`: a text that is no key of a filter that was built from lines (`lineOptions`);
   * * `"members"`: keys to be refuted are reported more often than chance explains;
   * * `"range"`: the count of a key, or of all keys, would pass 2^64 - 1;
   * * `"memory"`: there is no memory;
   * * `"remote"`: of `koel-filter/remote`, the server gives another thing than a range of one file;
   * * `"freed"`: the filter was freed;
   * * `"init"`: of `koel-filter/init`, if no module is there, or what is given is another one;
   * * `"internal"`: an error of this package.
   */
  readonly code: "full" | "settings" | "bytes" | "base" | "lines" | "members" | "range" | "memory" | "remote" | "freed" | "init" | "internal";

  /** Of a batch: how many keys are done. See {@link Failed}. */
  readonly done?: number;
  /** Of a batch: their answers. See {@link Failed}. */
  readonly answers?: boolean[] | number[];
}
