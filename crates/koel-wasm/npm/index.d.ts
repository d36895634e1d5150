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
 * not a key leaves everything as it was.
 */
export interface Failed<Answers> {
  /** How many keys are done. */
  done: number;
  /** What the call would have returned for these; undefined for `update`. */
  answers: Answers;
}

export interface Adding {
  /** Whether to add a copy of a key that is in. A key is in until each of its copies is deleted. */
  multi?: boolean;
}

export interface Options {
  /**
   * How many distinct keys the filter makes room for. It takes at least that many. Without it, the
   * filter starts small, grows with its keys, and keeps its rate up to 100 million of them.
   */
  capacity?: number | bigint;
  /** The false-positive rate of the full filter, above 0 and below 1. The default is 0.001. */
  errorRate?: number;
  /** Whether a filter of this capacity grows when it is full, instead of refusing keys. */
  growable?: boolean;
  /** Whether to optimise for size or for speed. The default is `"small"`. */
  prefer?: "small" | "fast";
  /** The seed of the hash. Only filters with equal seeds can be merged. */
  seed?: number | bigint;
  /**
   * 16 secret bytes, instead of a seed: keys are hashed with SipHash-1-3, for keys that an adversary
   * may choose. Files contain the secret.
   */
  secret?: Uint8Array;
}

/**
 * A set of keys in a few bits per key, from which keys can be deleted. `has` is never false for a
 * key that is in. For an absent key it is true at a false-positive rate that you choose.
 *
 * ```js
 * const seen = new CuckooFilter({ capacity: 1_000_000, errorRate: 0.001 });
 * seen.add("ada@example.org");
 * seen.has("ada@example.org"); // true
 * seen.delete("ada@example.org");
 * seen.has("ada@example.org"); // false
 * ```
 */
export class CuckooFilter {
  /**
   * An empty filter.
   * @throws {KoelError} with code `"settings"` if no filter can be built like that, or `"memory"`.
   */
  constructor(options?: Options);

  /**
   * Opens the bytes of a filter: of `toBytes`, or of a `.koel` file from Rust, Python or the
   * command. Verifies every byte.
   * @throws {KoelError} with code `"bytes"` if they are not a filter, or fail a check.
   */
  static fromBytes(bytes: Uint8Array | ArrayBuffer): CuckooFilter;

  /** The file image: the same bytes as in Rust, Python and the command. */
  toBytes(): Uint8Array;

  /**
   * Adds a key unless it is in, as `add` of a `Set` does. Returns whether it was added: true for a
   * new key. With `{ multi: true }` it adds a copy whatever is in, and returns true.
   *
   * A new key that the filter reports, at the false-positive rate, is not added: false. So delete a
   * key only as often as `add` returned true for it.
   * @throws {KoelError} with code `"full"` if it finds no room. Then nothing has changed.
   */
  add(key: Key, options?: Adding): boolean;

  /** Whether a key is in. */
  has(key: Key): boolean;

  /**
   * Whether the host of a URL or one of its parent domains is in. Where keys are not hosts, the text is
   * also looked up as it is: what `koel check --url` asks. Each lookup may be a false positive.
   * @throws {KoelError} with code `"lines"` if the text has no host and is not in as it is.
   */
  hasUrl(url: string): boolean;

  /**
   * Removes a key, or one of its copies. Returns false if it was not in. Delete only keys that were
   * added: an absent key may share the entry of another key, which is then removed.
   */
  delete(key: Key): boolean;

  /**
   * How many copies of a key are in. Never too low, except that a number above 2^53 is
   * rounded.
   */
  count(key: Key): number;

  /**
   * `add` for each of the keys. A key that comes twice is new the first time only.
   * @throws {KoelError} with code `"full"` at the first key that finds no room. Those before it are
   * in: see {@link Failed}.
   */
  addMany(keys: Keys): boolean[];

  /**
   * `add` for each of the keys, without an answer for each: for long lists and streams. Returns how
   * many were added.
   * @throws {KoelError} as `addMany` does.
   */
  update(keys: Keys, options?: Adding): number;

  /** `has` for each of the keys. */
  hasMany(keys: Keys): boolean[];

  /** `delete` for each of the keys. */
  deleteMany(keys: Keys): boolean[];

  /** `count` for each of the keys. */
  countMany(keys: Keys): number[];

  /**
   * Tells the filter that a key was not added. If the filter reports it, the key gets a correction
   * and is not reported any more. Returns whether it got one.
   *
   * Never refute a key that is in: it would be hidden. Adding the key takes its correction back. A
   * key that is absent now may be reported after more keys were added: refute it again.
   *
   * ```js
   * const blocked = new CuckooFilter({ capacity: 1_000_000 });
   * blocked.update(names);
   * blocked.refuteMany(allowed); // none of these is reported any more
   * ```
   * @throws {KoelError} with code `"full"` if there are as many corrections as slots. Then nothing
   * has changed.
   */
  refute(key: Key): boolean;

  /**
   * Refutes many keys, all or none. Returns how many corrections were made. All keys are read before
   * the first change, also those of an iterator: whatever is thrown, nothing has changed.
   *
   * If keys that are in are among them, more are reported than chance explains. Then none is refuted,
   * unless `force` is true. A handful of keys may always be refuted.
   * @throws {KoelError} with code `"members"` if more are reported than chance explains, and `"full"`
   * if there would be more corrections than slots.
   */
  refuteMany(keys: Keys, options?: { force?: boolean }): number;

  /**
   * The patch that makes the content of `newer` of this filter: some 2 bytes a change. Both have the
   * same settings and the same capacity, and have not grown.
   * @throws {KoelError} with code `"settings"` if no patch can be made of these filters, and
   * `"full"` if the new keys find no room in this one.
   */
  patchTo(newer: CuckooFilter): Uint8Array;

  /**
   * The filter that a patch makes of this one, which stays as it is: a patch of `patchTo`, or of
   * Rust, Python or the command. The result is verified.
   *
   * ```js
   * const tonight = CuckooFilter.fromBytes(list).patched(patch);
   * ```
   * @throws {KoelError} with code `"bytes"` if the patch is damaged or cut short, `"base"` if it was
   * made for another filter or was applied already, and `"full"` if there is no room.
   */
  patched(patch: Uint8Array | ArrayBuffer): CuckooFilter;

  /**
   * Adds the keys of another filter that was built alike, also of another copy of this package. A key in both gets the larger count, as in
   * a union of sets, or with `"sum"` the sum of both.
   * @throws {KoelError} with code `"settings"` unless both were built alike, `"full"` if the
   * union does not fit, and `"range"` if a count would pass 2^64 - 1. Then nothing has changed.
   */
  merge(other: CuckooFilter, options?: { counts?: "max" | "sum" }): this;

  /** Removes all keys. */
  clear(): void;

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
   * * `"freed"`: the filter was freed;
   * * `"init"`: of `koel-filter/init`, if no module is there, or what is given is another one;
   * * `"internal"`: an error of this package.
   */
  readonly code: "full" | "settings" | "bytes" | "base" | "lines" | "members" | "range" | "memory" | "freed" | "init" | "internal";

  /** Of a batch: how many keys are done. See {@link Failed}. */
  readonly done?: number;
  /** Of a batch: their answers. See {@link Failed}. */
  readonly answers?: boolean[] | number[];
}
