// The entry koel-filter/reader: the scenarios of docs/conformance on filters that the main entry builds,
// and what only the reader says.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { CuckooFilter } from "koel-filter";
import { FilterReader, KoelError } from "koel-filter/reader";

const require = createRequire(import.meta.url);

/** A filter with these keys, and a reader of its bytes. */
function both(options, keys) {
  const filter = new CuckooFilter(options);
  filter.update(keys, { multi: true });
  return [filter, FilterReader.fromBytes(filter.toBytes())];
}

const FIGURES = ["size", "capacity", "errorRate", "currentErrorRate", "corrections", "byteLength", "loadFactor", "growable", "lineOptions"];
const figuresOf = (filter) => FIGURES.map((name) => filter[name]);
const names = (from, to) => Array.from({ length: to - from }, (_, i) => `host${from + i}.example.org`);

/** Filters of every layout, of one size, growing and grown. */
const SHAPES = [0.1, 0.03, 0.01, 0.001, 1e-4, 1e-5, 1e-6].flatMap((errorRate) =>
  [{ capacity: 3000 }, { capacity: 3000, prefer: "fast" }, { capacity: 700, growable: true }, {}].map((options) => ({ ...options, errorRate })),
);

test("a reader answers as the filter does, whatever its layout", () => {
  const keys = [...names(0, 2000), ...names(0, 50), 7, -1n, new Uint8Array([1, 2])];
  const asked = [...keys, ...names(5000, 9000), 8n];
  for (const options of SHAPES) {
    const [filter, reader] = both(options, keys);
    filter.refuteMany(names(9000, 12_000));
    const again = FilterReader.fromBytes(filter.toBytes());
    for (const [one, other] of [[CuckooFilter.fromBytes(reader.toBytes()), reader], [filter, again]]) {
      assert.deepEqual(other.hasMany(asked), one.hasMany(asked), JSON.stringify(options));
      assert.deepEqual(other.countMany(asked), one.countMany(asked));
      assert.deepEqual(figuresOf(other), figuresOf(one));
      assert.deepEqual(other.toBytes(), one.toBytes());
      for (const key of asked.slice(-300)) assert.equal(other.has(key), one.has(key));
    }
  }
});

test("a reader patches a filter to the same bytes", () => {
  for (const options of SHAPES.filter((options) => options.capacity)) {
    const [old, reader] = both(options, names(0, 2500));
    const [newer] = both(options, [...names(100, 2600), ...names(200, 230)]);
    newer.refuteMany(names(10_000, 11_000));
    const patch = old.patchTo(newer);
    const patched = reader.patched(patch);
    assert.ok(patched instanceof FilterReader);
    assert.deepEqual(patched.toBytes(), old.patched(patch).toBytes(), JSON.stringify(options));
    assert.equal(reader.size, 2500);
    assert.throws(() => patched.patched(patch), { name: "KoelError", code: "base" });
    assert.throws(() => reader.patched(patch.subarray(1)), { code: "bytes" });
  }
});

test("a reader has only what asks, and says how it is made", () => {
  const [, reader] = both({ capacity: 10 }, ["ada"]);
  for (const name of ["add", "addMany", "update", "delete", "refute", "merge", "patchTo", "clear"]) assert.equal(reader[name], undefined);
  for (const arguments_ of [[], [{ capacity: 10 }], [reader]]) {
    assert.throws(() => new FilterReader(...arguments_), { name: "TypeError", message: /FilterReader.fromBytes/ });
  }
  assert.throws(() => FilterReader.fromBytes(new Uint8Array(300)), (error) => error instanceof KoelError && error.code === "bytes");
  assert.throws(() => FilterReader.fromBytes("bytes"), TypeError);
  assert.match(String(reader), /^FilterReader \{ size: 1, capacity: \d+, errorRate: 0.001, byteLength: \d+ \}$/);
  assert.throws(() => JSON.stringify(reader), /a FilterReader has no JSON/);
  assert.throws(() => structuredClone(reader), /a FilterReader: clone or compare its toBytes/);
  reader.free();
  reader.free();
  assert.equal(String(reader), "FilterReader { freed }");
  for (const name of ["has", "hasMany", "hasUrl", "count", "toBytes"]) assert.throws(() => reader[name](name === "hasMany" ? [] : "a"), { code: "freed" });
});

test("a filter takes a reader for another filter", () => {
  const [filter] = both({ capacity: 100 }, ["ada"]);
  const [, reader] = both({ capacity: 100 }, ["ada", "grace"]);
  const patched = FilterReader.fromBytes(filter.toBytes()).patched(filter.patchTo(reader));
  assert.ok(patched.has("grace"));
  assert.ok(filter.merge(reader).has("grace"));
});

test("require has a reader too", () => {
  const required = require("koel-filter/reader");
  const [filter, reader] = both({ capacity: 100 }, ["ada"]);
  assert.deepEqual(required.FilterReader.fromBytes(filter.toBytes()).hasMany(["ada", "grace"]), reader.hasMany(["ada", "grace"]));
});
