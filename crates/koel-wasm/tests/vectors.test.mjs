// Filters have the bytes of docs/vectors.json, which the tests of Rust and Python build too.
// scripts/wasm copies the file beside this one.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { CuckooFilter } from "koel-filter";

const { cases } = JSON.parse(readFileSync(new URL("vectors.json", import.meta.url), "utf8"));

function keysOf(step) {
  if (step.text !== undefined) return [step.text];
  if (step.integer !== undefined) return [BigInt(step.integer)];
  if (step.bytes !== undefined) return [Buffer.from(step.bytes, "hex")];
  return Array.from({ length: step.keys }, (_, i) => `key ${i}`);
}

for (const { name, steps, length, header, ...settings } of cases) {
  test(`a filter has the bytes of the vectors: ${name}`, () => {
    const { capacity, error_rate: errorRate, growable, prefer, seed } = settings;
    const filter = new CuckooFilter({ capacity, errorRate, growable, prefer, seed: BigInt(seed) });
    for (const step of steps) {
      for (const key of keysOf(step)) {
        if (step.do === "add") filter.add(key);
        else assert.ok(filter.delete(key));
      }
    }
    const image = filter.toBytes();
    assert.equal(image.length, length);
    assert.equal(Buffer.from(image.subarray(0, 192)).toString("hex"), header);
    assert.deepEqual(CuckooFilter.fromBytes(image).toBytes(), image);
  });
}
