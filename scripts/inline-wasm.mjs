// Writes a WebAssembly module as text in a JavaScript module, which crates/koel-wasm/npm/text.js reads.
//
//   node scripts/inline-wasm.mjs MODULE.wasm INLINE.js

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { ALPHABET, bytesOfText, MARKS } from "../crates/koel-wasm/npm/text.js";

const [source, target] = process.argv.slice(2);
const bytes = readFileSync(source);

const counts = new Array(256).fill(0);
for (const byte of bytes) counts[byte] += 1;
const frequent = ALPHABET.length - MARKS;
const sorted = counts.map((_, byte) => byte).sort((a, b) => counts[b] - counts[a]);
// Both groups ascend, which compresses a little better.
const order = [sorted.slice(0, frequent), sorted.slice(frequent)].flatMap((group) => group.sort((a, b) => a - b));

const chars = order.map((_, number) => {
  if (number < frequent) return ALPHABET[number];
  const rest = number - frequent;
  return ALPHABET[frequent + Math.floor(rest / ALPHABET.length)] + ALPHABET[rest % ALPHABET.length];
});
const charsOf = [];
order.forEach((byte, number) => (charsOf[byte] = chars[number]));
const text = Array.from(bytes, (byte) => charsOf[byte]).join("");
assert.deepEqual(Buffer.from(bytesOfText({ order, text })), bytes);
writeFileSync(target, `export const WASM = { order: [${order}], text: "${text}" };\n`);
