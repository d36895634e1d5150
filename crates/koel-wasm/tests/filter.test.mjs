// The npm package as users install it, in Node. scripts/wasm packs and installs it, and sets KOEL to
// the command, with which it shares files.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { CuckooFilter, KoelError } from "koel-filter";

const folder = mkdtempSync(join(tmpdir(), "koel-filter-"));
after(() => rmSync(folder, { recursive: true }));
const inFolder = (name) => join(folder, name);
const koel = (...args) => execFileSync(process.env.KOEL, args, { encoding: "utf8" });

const texts = Array.from({ length: 20_000 }, (_, i) => `https://example.org/${i}/gr\u00fc\u00dfe`);
const integers = BigUint64Array.from(texts, (_, i) => BigInt(i) * 0x9e37_79b9_7f4a_7c15n);

test("a filter of the command opens with equal answers and bytes, and the other way round", () => {
  writeFileSync(inFolder("keys.txt"), texts.map((text) => `${text}\n`).join(""));
  koel("build", inFolder("keys.txt"), "--keys", "20000", "--fpr", "0.001", "-o", inFolder("a.koel"));
  const bytes = readFileSync(inFolder("a.koel"));

  const opened = CuckooFilter.fromBytes(bytes);
  assert.deepEqual([opened.size, opened.capacity, opened.errorRate], [20_000, 20_000, 0.001]);
  assert.ok(opened.hasMany(texts).every(Boolean));
  assert.deepEqual(Buffer.from(opened.toBytes()), bytes);

  const filled = new CuckooFilter({ capacity: 20_000 }).addMany(texts);
  assert.deepEqual(Buffer.from(filled.toBytes()), bytes);

  writeFileSync(inFolder("b.koel"), filled.add("one more").toBytes());
  writeFileSync(inFolder("asked.txt"), "one more\nnever added\n");
  assert.equal(koel("check", inFolder("b.koel"), inFolder("asked.txt")).trim(), "one more");
});

test("growing filters share files too", () => {
  const filter = new CuckooFilter({ capacity: 1000, growable: true }).addMany(texts);
  assert.ok(filter.growable && filter.currentErrorRate < 0.00135);
  writeFileSync(inFolder("c.koel"), filter.toBytes());
  writeFileSync(inFolder("asked.txt"), texts.map((text) => `${text}\n`).join(""));
  const found = koel("check", inFolder("c.koel"), inFolder("asked.txt"));
  assert.equal(found.trim().split("\n").length, texts.length);
  assert.deepEqual(CuckooFilter.fromBytes(filter.toBytes()).toBytes(), filter.toBytes());
});

test("without a capacity a filter grows and keeps its rate", () => {
  const filter = new CuckooFilter({ errorRate: 0.01 });
  const small = filter.byteLength;
  filter.addMany(integers);
  assert.ok(filter.byteLength > 4 * small && filter.currentErrorRate < 0.01);
  assert.ok(filter.hasMany(integers).every(Boolean));
});

test("batches answer as single calls do", () => {
  for (const keys of [texts, integers, [...integers], texts.map((text) => Buffer.from(text))]) {
    const single = new CuckooFilter({ capacity: keys.length });
    for (const key of keys) single.add(key);
    const many = new CuckooFilter({ capacity: keys.length }).addMany(keys);
    assert.deepEqual(many.toBytes(), single.toBytes());

    const absent = Array.from({ length: 3000 }, (_, i) => `absent ${i}`);
    assert.deepEqual(many.hasMany(absent), absent.map((key) => single.has(key)));
    many.addMany(keys).addMany(keys.slice(0, 100));
    const counts = many.countMany(keys);
    assert.deepEqual(counts, Array.from(keys, (key) => many.count(key)));
    assert.ok(counts.slice(0, 100).every((count) => count >= 3));

    assert.deepEqual(many.deleteMany(keys), Array.from(keys, () => true));
    many.deleteMany(keys);
    many.deleteMany(keys.slice(0, 100));
    assert.equal(many.size, 0);
    assert.deepEqual(many.deleteMany(["absent"]), [false]);
    assert.deepEqual(many.toBytes(), new CuckooFilter({ capacity: keys.length }).toBytes());
  }
});

test("a number, a bigint and its eight bytes are one key, and its digits are another", () => {
  const filter = new CuckooFilter({ capacity: 10, errorRate: 1e-9 });
  const largest = Number.MAX_SAFE_INTEGER;
  filter.add(7).add(largest).add(2n ** 64n - 1n);
  assert.deepEqual(filter.hasMany([7n, BigInt(largest), 2n ** 64n - 1n]), [true, true, true]);
  assert.ok(filter.has(new Uint8Array([7, 0, 0, 0, 0, 0, 0, 0])));
  assert.deepEqual([filter.has("7"), filter.has(8)], [false, false]);
});

test("keys of any length, also longer than the buffers", () => {
  const filter = new CuckooFilter({ capacity: 100, errorRate: 1e-9 });
  const long = "\u{1f600}".repeat(1_000_000);
  filter.addMany(["", long, "x", long + long]);
  assert.deepEqual(filter.hasMany([long + long, "x", "", long, "y"]), [true, true, true, true, false]);
  assert.deepEqual([filter.has(long), filter.has(""), filter.has("y")], [true, true, false]);
  assert.deepEqual([filter.hasMany([]), filter.hasMany(new BigUint64Array())], [[], []]);
});

test("a view of a part of a typed array is the part only", () => {
  const filter = new CuckooFilter({ capacity: 100 }).addMany(integers.subarray(10, 20));
  assert.equal(filter.size, 10);
  assert.ok(filter.hasMany(integers.subarray(10, 20)).every(Boolean));
  assert.ok(filter.hasMany(integers.subarray(20, 1000)).filter(Boolean).length < 20);
  assert.ok(CuckooFilter.fromBytes(filter.toBytes().buffer).has(integers[15]));
});

test("a full filter throws, and has changed nothing", () => {
  const filter = new CuckooFilter({ capacity: 100 });
  const isFull = { name: "KoelError", code: "full", message: /^the table is full: \d+ entries/ };
  assert.throws(() => filter.addMany(integers), isFull);
  const [size, bytes] = [filter.size, filter.toBytes()];
  assert.ok(size >= 100 && size < 1000);
  assert.ok(filter.hasMany(integers.subarray(0, size)).every(Boolean));
  assert.throws(() => filter.add(integers[size]), isFull);
  assert.deepEqual(filter.toBytes(), bytes);
});

test("settings that cannot be built throw the library's sentence", () => {
  const throws = (options, error) => assert.throws(() => new CuckooFilter(options), error);
  throws({ capacity: 10, errorRate: 2 }, { code: "settings", message: /above 0 and below 1/ });
  throws({ capacity: 10, errorRate: NaN }, { code: "settings" });
  throws({ capacity: 2n ** 63n }, { code: "settings", message: /too many for one filter/ });
  throws({ capacity: 4e9, errorRate: 1e-4 }, KoelError);
  throws({ capacity: -1 }, { name: "TypeError", message: /capacity: expected a whole number/ });
  throws({ capacity: 1.5 }, TypeError);
  throws({ capacity: "1000" }, TypeError);
  throws({ errorRate: "0.1" }, TypeError);
  throws({ prefer: "large" }, TypeError);
  throws({ growable: 1 }, TypeError);
  throws({ seed: 2n ** 64n }, TypeError);
  throws(1000, TypeError);
});

test("bytes that are not a sound filter throw", () => {
  const isUnsound = { name: "KoelError", code: "bytes" };
  const bytes = new CuckooFilter({ capacity: 100 }).addMany(integers.subarray(0, 100)).toBytes();
  for (const length of [0, 4, 100, bytes.length - 1]) {
    assert.throws(() => CuckooFilter.fromBytes(bytes.subarray(0, length)), isUnsound);
  }
  for (let at = 0; at < bytes.length; at += 7) {
    const damaged = bytes.slice();
    damaged[at] ^= 1;
    assert.throws(() => CuckooFilter.fromBytes(damaged), isUnsound);
  }
  assert.throws(() => CuckooFilter.fromBytes("koel"), TypeError);
  assert.ok(CuckooFilter.fromBytes(bytes).has(integers[0]));
});

test("what is no key throws", () => {
  const filter = new CuckooFilter({ capacity: 100 });
  for (const key of [1.5, -1, NaN, 2 ** 60, -1n, 2n ** 64n]) {
    assert.throws(() => filter.add(key), { name: "RangeError", message: /whole and from 0/ });
  }
  for (const key of [undefined, null, {}, true, ["a"]]) {
    assert.throws(() => filter.has(key), TypeError);
    assert.throws(() => filter.addMany(["a", key]), TypeError);
  }
  assert.throws(() => filter.hasMany("text"), TypeError);
  assert.equal(filter.size, 0);
});

test("a freed filter throws, and its memory is used again", () => {
  for (let i = 0; i < 500; i += 1) {
    const filter = new CuckooFilter({ capacity: 10_000_000 });
    filter.add(i);
    filter.free();
    filter.free();
    assert.throws(() => filter.has(i), { code: "freed" });
  }
});

test("seeds and preferences make other bytes, and clear makes an empty filter", () => {
  const bytes = (options) => new CuckooFilter({ capacity: 100, ...options }).add("a").toBytes();
  assert.notDeepEqual(bytes({ seed: 1 }), bytes({}));
  assert.deepEqual(bytes({ seed: 1 }), bytes({ seed: 1n }));
  assert.notDeepEqual(bytes({ prefer: "fast" }), bytes({}));
  const filter = new CuckooFilter({ capacity: 100 }).add("a").add("a");
  assert.deepEqual([filter.size, filter.count("a"), filter.loadFactor > 0], [2, 2, true]);
  filter.clear();
  assert.deepEqual(filter.toBytes(), new CuckooFilter({ capacity: 100 }).toBytes());
});
