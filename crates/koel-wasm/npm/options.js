// The options of calls, checked: what is not understood is an exception, not a default.

import { shown } from "./keys.js";

/** A whole number from 0 to 2^64 - 1, as a bigint. */
export function wholeOf(name, value) {
  const isWhole = typeof value === "bigint" || Number.isSafeInteger(value);
  if (isWhole && value >= 0 && value < 1n << 64n) return BigInt(value);
  throw new TypeError(`${name}: expected a whole number from 0 to 2^64 - 1, got ${shown(value)}`);
}

export function optionOf(name, value, type) {
  if (typeof value === type) return value;
  throw new TypeError(`${name}: expected a ${type}, got ${shown(value)}`);
}

/** One of two words: whether it is the second. */
export function secondOf(name, value, first, second) {
  if (value === first || value === second) return value === second ? 1 : 0;
  throw new TypeError(`${name}: expected "${first}" or "${second}", got ${shown(value)}`);
}

/**
 * The options, if there are no others than these. A filter, an array, bytes or a promise would look
 * like an object without options.
 */
export function optionsOf(options, ...names) {
  const prototype = typeof options === "object" && options !== null && Object.getPrototypeOf(options);
  if (prototype !== null && !(prototype && Object.getPrototypeOf(prototype) === null)) {
    throw new TypeError("expected an object of options, such as { capacity: 1_000_000 }");
  }
  const other = Object.keys(options).find((name) => !names.includes(name));
  if (other !== undefined) throw new TypeError(`no option ${other}: there are ${names.join(", ")}`);
  return options;
}
