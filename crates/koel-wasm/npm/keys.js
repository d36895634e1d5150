// Keys of JavaScript as the bytes that the module hashes.

const encoder = new TextEncoder();

/** Whether a number may have been rounded: beyond 2^53, integers are bigints. */
const isRounded = (value) => Number.isInteger(value) && !Number.isSafeInteger(value);

/** A value as a message shows it. */
export function shown(value) {
  if (isRounded(value)) return `${value}: above 2^53 use a BigInt, such as 2n ** 53n`;
  return typeof value === "bigint" ? `${value}n` : String(value);
}

/** The name of a typed array's class, also of one from another window or context. */
export const nameOf = (value) => (ArrayBuffer.isView(value) ? value[Symbol.toStringTag] : undefined);

export const isBytes = (value) => value instanceof Uint8Array || nameOf(value) === "Uint8Array";

/** Whether a value is what `Object.prototype.toString` calls so, also one of another window. */
export const isA = (value, name) => Object.prototype.toString.call(value) === `[object ${name}]`;

/**
 * Throws for a view of a buffer that was moved to a worker, or shrank: its length is 0, so that it
 * looks like an empty key or batch.
 */
export function checkAttached(view) {
  if (view.length > 0) return;
  try {
    Uint8Array.prototype.indexOf.call(view, 0);
  } catch {
    throw new TypeError("this typed array has lost its buffer, which was moved or shrank");
  }
}

/** The bytes of an ArrayBuffer or a Uint8Array of any window; undefined for anything else. */
export function bytesOf(value) {
  const view = isA(value, "ArrayBuffer") ? new Uint8Array(value) : value;
  if (!isBytes(view)) return undefined;
  checkAttached(view);
  return view;
}

/** Half of a character beyond U+FFFF, which has no UTF-8. Two of them would be one key. */
const LONE_SURROGATE = /\p{Surrogate}/u;
const isWellFormed = String.prototype.isWellFormed
  ? (text) => text.isWellFormed()
  : (text) => !LONE_SURROGATE.test(text);

/** Throws for what is not a key. Returns whether the key is an integer. */
export function isInteger(key) {
  if (typeof key === "number") {
    if (Number.isSafeInteger(key)) return true;
  } else if (typeof key === "bigint") {
    if (key >= -(1n << 63n) && key < 1n << 64n) return true;
  } else if (typeof key === "string") {
    if (isWellFormed(key)) return false;
    throw new TypeError("a text with half of a surrogate pair has no UTF-8, and is no key");
  } else if (isBytes(key)) {
    checkAttached(key);
    return false;
  } else {
    throw new TypeError("a key must be a string, a Uint8Array, a bigint or a whole number");
  }
  throw new RangeError(`a number is a key if it is whole and from -2^63 to 2^64 - 1; this is ${shown(key)}`);
}

/** The same for a filter whose keys were made of lines, which has no integers. */
export function isNoText(key) {
  if (!isInteger(key)) return false;
  const what = "strings or a Uint8Array of text";
  throw new TypeError(`the keys of this filter were made of lines (see lineOptions): they are ${what}, not ${shown(key)}`);
}

export function writeInteger(key, view, at) {
  if (typeof key === "number") {
    // Without a bigint, which takes most of the time of a lookup.
    view.setUint32(at, key >>> 0, true);
    view.setUint32(at + 4, Math.floor(key / 2 ** 32), true);
  } else {
    view.setBigUint64(at, BigInt.asUintN(64, key), true);
  }
}

export const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/**
 * Writes a checked key at `at` of the bytes that `room` returns for its size. Returns its length, or
 * -1 if `room` returns none.
 *
 * Numbers come first: otherwise the compiler of Node 20 moves the load of a text's length ahead of
 * the test of its type, and crashes on a small integer.
 */
export function write(key, at, room) {
  if (typeof key === "number" || typeof key === "bigint") {
    const target = room(8);
    if (target) writeInteger(key, viewOf(target), at);
    return target ? 8 : -1;
  }
  if (typeof key === "string") {
    const target = room(3 * key.length);
    return target ? encoder.encodeInto(key, target.subarray(at)).written : -1;
  }
  const target = room(key.length);
  target?.set(key, at);
  return target ? key.length : -1;
}
