/**
 * What a filter takes as a key. Text is hashed as UTF-8, and a number as the 64 bits of an unsigned
 * integer: `7` and `7n` are one key, `"7"` is another. Rust, Python and the command hash alike.
 */
export type Key = string | Uint8Array | bigint | number;

/** What a filter takes as a batch of keys. Integers in a `BigUint64Array` are the fastest. */
export type Keys = readonly Key[] | BigUint64Array;

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
   * command. Checks all of them.
   * @throws {KoelError} with code `"bytes"` if they are not a sound filter.
   */
  static fromBytes(bytes: Uint8Array | ArrayBuffer): CuckooFilter;

  /** The file image: the same bytes as in Rust, Python and the command. */
  toBytes(): Uint8Array<ArrayBuffer>;

  /**
   * Adds a copy of a key.
   * @throws {KoelError} with code `"full"` if it finds no room. Then nothing has changed.
   */
  add(key: Key): this;

  /** Whether a key is in. */
  has(key: Key): boolean;

  /**
   * Removes one copy of a key. Returns false if it was not in. Delete only keys that were added: an
   * absent key may share the entry of another key, which is then removed.
   */
  delete(key: Key): boolean;

  /** How often a key was added and not deleted. Never too low. */
  count(key: Key): number;

  /**
   * Adds each of the keys, several times as fast as `add`.
   * @throws {KoelError} with code `"full"` at the first key that finds no room. Those before it are
   * in: `size` says how many.
   */
  addMany(keys: Keys): this;

  /** `has` for each of the keys. */
  hasMany(keys: Keys): boolean[];

  /** `delete` for each of the keys. */
  deleteMany(keys: Keys): boolean[];

  /** `count` for each of the keys. */
  countMany(keys: Keys): number[];

  /** Removes all keys. */
  clear(): void;

  /**
   * Frees the memory now. Otherwise that happens some time after the last reference to the filter
   * is gone.
   */
  free(): void;

  /** Keys in the filter, with copies. */
  readonly size: number;
  /** Distinct keys that it was built for. */
  readonly capacity: number;
  /** The false-positive rate that it was built for. */
  readonly errorRate: number;
  /** The false-positive rate as the filter is now. */
  readonly currentErrorRate: number;
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
   * * `"full"`: no room for a key;
   * * `"settings"`: a filter cannot be built with these settings;
   * * `"bytes"`: the bytes are not a sound filter;
   * * `"memory"`: there is no memory;
   * * `"freed"`: the filter was freed;
   * * `"internal"`: an error of this package.
   */
  readonly code: "full" | "settings" | "bytes" | "memory" | "freed" | "internal";
}
