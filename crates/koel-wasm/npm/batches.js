// Batches of keys as pieces in the module's input buffer. Long ones are cut, so that its memory does
// not grow with them. Keys of arrays and sets are checked before the first piece is passed on; those
// of other iterables as they come.

import { checkAttached, isA, isBytes, nameOf, viewOf, write, writeInteger } from "./keys.js";

/** The most keys that a call passes at once, if nothing else is said ... */
const BATCH_KEYS = 1 << 14;
/** ... and bytes of them, unless one key has more. */
const BATCH_BYTES = 1 << 20;

/** How keys of a batch lie in the input buffer. */
const [TEXTS, INTEGERS] = [0, 1];

/**
 * The function that passes on a batch, at most so many keys at once. `input` returns the input buffer of
 * the module with at least so many bytes.
 */
export function batches(input, mostKeys = BATCH_KEYS) {
  /** Passes on integers of 64 bits as they lie in memory. */
  function eachWords(words, each) {
    for (let start = 0; start < words.length; start += mostKeys) {
      const piece = words.subarray(start, start + mostKeys);
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
    const count = Math.min(keys.length - start, mostKeys);
    const view = viewOf(input(8 * count));
    for (let i = 0; i < count; i += 1) writeInteger(keys[start + i], view, 8 * i);
    return count;
  }

  function putTexts(keys, start) {
    const most = Math.min(keys.length - start, mostKeys);
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
  function areIntegers(keys, isInteger) {
    let all = true;
    // Not `every`: each key is checked, and holes of an array too.
    for (let i = 0; i < keys.length; i += 1) all = isInteger(keys[i]) && all;
    return all;
  }

  /** Passes on the keys of an iterable that may have no end: those before one that fails. */
  function eachOfStream(keys, isInteger, each) {
    let [piece, all] = [[], true];
    const pass = () => {
      const [passed, areIntegers] = [piece, all];
      // Emptied first, so that keys that fail here are not passed on again below.
      [piece, all] = [[], true];
      eachOf(passed, areIntegers, each);
    };
    try {
      for (const key of keys) {
        all = isInteger(key) && all;
        if (piece.push(key) === mostKeys) pass();
      }
    } catch (error) {
      pass();
      throw error;
    }
    pass();
  }

  /**
   * Passes on a batch in pieces. `isInteger` checks a key. Calls `each` with the kind and number of keys
   * of a piece.
   */
  return (keys, isInteger, each) => {
    const name = nameOf(keys);
    const isIterable = typeof keys?.[Symbol.iterator] === "function";
    if (!isIterable || typeof keys === "string" || isA(keys, "String") || isBytes(keys)) {
      throw new TypeError("keys must be an array or another iterable; for one key, use [key]");
    }
    if (name !== undefined) checkAttached(keys);
    const areWords = name === "BigUint64Array" || name === "BigInt64Array";
    if (areWords && (keys.length === 0 || isInteger(keys[0]))) return eachWords(keys, each);
    const list = isA(keys, "Set") ? [...keys] : keys;
    if (!Array.isArray(list) && name === undefined) return eachOfStream(keys, isInteger, each);
    return eachOf(list, areIntegers(list, isInteger), each);
  };
}
