// For `Symbol.dispose`; TypeScript has it since 5.2.
/// <reference lib="esnext.disposable" />

import { FilterReader, type Key, type Keys } from "./reader.js";

export { KoelError, type Failed, type Key, type Keys } from "./reader.js";

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
export class CuckooFilter extends FilterReader {
  /**
   * An empty filter.
   * @throws {KoelError} with code `"settings"` if no filter can be built like that, or `"memory"`.
   */
  constructor(options?: Options);

  static fromBytes(bytes: Uint8Array | ArrayBuffer): CuckooFilter;

  patched(patch: Uint8Array | ArrayBuffer): CuckooFilter;

  /**
   * Adds a key unless it is in, as `add` of a `Set` does. Returns whether it was added: true for a
   * new key. With `{ multi: true }` it adds a copy whatever is in, and returns true.
   *
   * A new key that the filter reports, at the false-positive rate, is not added: false. It is absent
   * once the key whose entry it shares is deleted. So add keys with `multi` if you will delete some.
   * @throws {KoelError} with code `"full"` if it finds no room. Then nothing has changed.
   */
  add(key: Key, options?: Adding): boolean;

  /**
   * Removes a key, or one of its copies. Returns false if it was not in. Delete only keys that were
   * added: an absent key may share the entry of another key, which is then removed.
   */
  delete(key: Key): boolean;

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

  /** `delete` for each of the keys. */
  deleteMany(keys: Keys): boolean[];

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
   * same settings and the same capacity; they may have grown.
   * @throws {KoelError} with code `"settings"` if no patch can be made of these filters, and
   * `"full"` if the new keys find no room in this one.
   */
  patchTo(newer: FilterReader): Uint8Array;

  /**
   * Adds the keys of another filter that was built alike, also of another copy of this package. A
   * key in both gets the larger count, as in a union of sets, or with `"sum"` the sum of both.
   * @throws {KoelError} with code `"settings"` unless both were built alike, `"full"` if the
   * union does not fit, and `"range"` if a count would pass 2^64 - 1. Then nothing has changed.
   */
  merge(other: FilterReader, options?: { counts?: "max" | "sum" }): this;

  /** Removes all keys and all corrections. The size stays. */
  clear(): void;
}
