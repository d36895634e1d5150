// Filters and patches have the bytes of docs/vectors.json, which the tests of Rust and Python build too.
// scripts/wasm copies the file beside this one.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { CuckooFilter } from "koel-filter";

const { cases, patches } = JSON.parse(readFileSync(new URL("vectors.json", import.meta.url), "utf8"));

function keysOf(step) {
  if (step.text !== undefined) return [step.text];
  if (step.integer !== undefined) return [BigInt(step.integer)];
  if (step.bytes !== undefined) return [Buffer.from(step.bytes, "hex")];
  return Array.from({ length: step.keys }, (_, i) => `key ${i}`);
}

function built({ capacity, error_rate: errorRate, growable, prefer, seed }, steps) {
  const filter = new CuckooFilter({ capacity, errorRate, growable, prefer, seed: BigInt(seed) });
  for (const step of steps) {
    for (const key of keysOf(step)) {
      if (step.do === "add") filter.add(key, { multi: true });
      else assert.ok(filter.delete(key));
    }
  }
  return filter;
}

const hex = (bytes) => Buffer.from(bytes).toString("hex");
const figures = (image) => [image.length, hex(image.subarray(0, 192))];

for (const { name, steps, length, header, ...settings } of cases) {
  test(`a filter has the bytes of the vectors: ${name}`, () => {
    const image = built(settings, steps).toBytes();
    assert.deepEqual(figures(image), [length, header]);
    assert.deepEqual(CuckooFilter.fromBytes(image).toBytes(), image);
  });
}

for (const { name, steps, new_steps: newer, length, header, patch, ...settings } of patches) {
  test(`a patch has the bytes of the vectors: ${name}`, () => {
    const [from, to] = [built(settings, steps), built(settings, newer)];
    assert.equal(hex(from.patchTo(to)), patch);
    const image = from.patched(Buffer.from(patch, "hex")).toBytes();
    assert.deepEqual(figures(image), [length, header]);
  });
}
