// The npm package as users install it, in Node. scripts/wasm packs and installs it, and sets KOEL to
// the command, with which it shares files.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { inspect, isDeepStrictEqual } from "node:util";
import { runInNewContext } from "node:vm";
import { CuckooFilter, KoelError } from "koel-filter";

const folder = mkdtempSync(join(tmpdir(), "koel-filter-"));
after(() => rmSync(folder, { recursive: true }));
const inFolder = (name) => join(folder, name);
const koel = (...args) => execFileSync(process.env.KOEL, args, { encoding: "utf8" });

const texts = Array.from({ length: 20_000 }, (_, i) => `https://example.org/${i}/gr\u00fc\u00dfe`);
const integers = BigUint64Array.from(texts, (_, i) => BigInt(i) * 0x9e37_79b9_7f4a_7c15n);

const multi = { multi: true };

/** A filter with copies of these keys. */
function filled(options, keys) {
  const filter = new CuckooFilter(options);
  filter.update(keys, multi);
  return filter;
}

test("a filter of the command opens with equal answers and bytes, and the other way round", () => {
  writeFileSync(inFolder("keys.txt"), texts.map((text) => `${text}\n`).join(""));
  koel("build", inFolder("keys.txt"), "--keys", "20000", "--fpr", "0.001", "-o", inFolder("a.koel"));
  const bytes = readFileSync(inFolder("a.koel"));

  const opened = CuckooFilter.fromBytes(bytes);
  assert.deepEqual([opened.size, opened.capacity, opened.errorRate], [20_000, 20_000, 0.001]);
  assert.ok(opened.hasMany(texts).every(Boolean));
  assert.deepEqual(Buffer.from(opened.toBytes()), bytes);

  const filter = filled({ capacity: 20_000 }, texts);
  assert.deepEqual(Buffer.from(filter.toBytes()), bytes);

  filter.add("one more");
  writeFileSync(inFolder("b.koel"), filter.toBytes());
  writeFileSync(inFolder("asked.txt"), "one more\nnever added\n");
  assert.equal(koel("check", inFolder("b.koel"), inFolder("asked.txt")).trim(), "one more");
});

test("growing filters share files too", () => {
  const filter = filled({ capacity: 1000, growable: true }, texts);
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
  filter.update(integers);
  assert.ok(filter.byteLength > 4 * small && filter.currentErrorRate < 0.01);
  assert.ok(filter.hasMany(integers).every(Boolean) && filter.loadFactor > 0);
});

test("batches answer as single calls do", () => {
  for (const keys of [texts, integers, [...integers], texts.map((text) => Buffer.from(text))]) {
    const single = new CuckooFilter({ capacity: keys.length });
    for (const key of keys) assert.equal(single.add(key, multi), true);
    const many = filled({ capacity: keys.length }, keys);
    assert.deepEqual(many.toBytes(), single.toBytes());

    const absent = Array.from({ length: 3000 }, (_, i) => `absent ${i}`);
    assert.deepEqual(many.hasMany(absent), absent.map((key) => single.has(key)));
    assert.deepEqual([many.update(keys, multi), many.update(keys.slice(0, 100), multi)], [keys.length, 100]);
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

test("a number and a bigint are one key, also in typed arrays", () => {
  const filter = new CuckooFilter({ capacity: 10, errorRate: 1e-9 });
  const largest = Number.MAX_SAFE_INTEGER;
  filter.addMany([7, largest, -2, -largest, -(2n ** 63n)]);
  const same = [7n, BigInt(largest), -2n, 2n ** 64n - 2n, -BigInt(largest), -largest, 2n ** 63n];
  assert.ok(filter.hasMany(same).every(Boolean) && same.every((key) => filter.has(key)));
  assert.ok(filter.hasMany(new BigInt64Array([7n, -2n])).every(Boolean));
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
  const filter = filled({ capacity: 100 }, integers.subarray(10, 20));
  assert.equal(filter.size, 10);
  assert.ok(filter.hasMany(integers.subarray(10, 20)).every(Boolean));
  assert.ok(filter.hasMany(integers.subarray(20, 1000)).filter(Boolean).length < 20);
  assert.ok(CuckooFilter.fromBytes(filter.toBytes().buffer).has(integers[15]));
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

test("what is no key throws", () => {
  const filter = new CuckooFilter({ capacity: 100 });
  for (const key of ["\ud800", "a\udc00", "\udfff\ud800"]) {
    for (const call of [() => filter.add(key), () => filter.addMany(["a", key])]) {
      assert.throws(call, { name: "TypeError", message: /surrogate/ });
    }
  }
  for (const key of [undefined, null, {}, true, ["a"]]) {
    assert.throws(() => filter.has(key), TypeError);
    for (const name of ["addMany", "hasMany"]) assert.throws(() => filter[name](["a", key]), TypeError);
  }
  for (const keys of ["text", null, undefined, 7, {}, new Uint8Array(3)]) {
    assert.throws(() => filter.hasMany(keys), { name: "TypeError", message: /use \[key\]/ });
  }
  assert.equal(filter.size, 0);
});

test("an integer that a number rounds is refused with the advice to use a BigInt", () => {
  const filter = new CuckooFilter({ capacity: 100 });
  const isAdvice = { message: /above 2\^53 use a BigInt/ };
  for (const key of [2 ** 53, -(2 ** 53), 2 ** 60, 2 ** 64]) {
    for (const name of ["add", "has", "delete", "count", "refute"]) {
      assert.throws(() => filter[name](key), { name: "RangeError", ...isAdvice }, name);
    }
    assert.throws(() => filter.addMany(new Float64Array([key])), { name: "RangeError", ...isAdvice });
    assert.throws(() => new CuckooFilter({ seed: key }), { name: "TypeError", ...isAdvice });
  }
  for (const key of [1.5, NaN, Infinity, -(2n ** 63n) - 1n, 2n ** 64n]) {
    assert.throws(() => filter.hasMany([key]), RangeError);
    assert.throws(() => filter.add(key), ({ message }) => /whole and from -2\^63/.test(message) && !/BigInt/.test(message));
  }
  assert.deepEqual([2n ** 53n, 2 ** 53 - 1].map((key) => filter.add(key)), [true, true]);
});

test("what copies a filter without its keys is refused, and names toBytes", () => {
  const filter = filled({ capacity: 100 }, ["a"]);
  const names = { message: /toBytes\(\)/ };
  const { port1 } = new MessageChannel();
  for (const what of [filter, [filter], { filter }]) {
    assert.throws(() => JSON.stringify(what), { name: "TypeError", ...names });
    assert.throws(() => structuredClone(what), { name: "DataCloneError", ...names });
    assert.throws(() => port1.postMessage(what), { name: "DataCloneError", ...names });
  }
  port1.close();
  assert.ok(CuckooFilter.fromBytes(structuredClone(filter.toBytes())).has("a"));
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

test("add adds a key once, as a Set does, and says whether it was new, one by one and in batches", () => {
  const filter = new CuckooFilter({ capacity: 10 });
  assert.deepEqual([filter.add("a"), filter.add("a"), filter.delete("a"), filter.has("a")], [true, false, true, false]);
  for (const keys of [texts, integers, [...integers], integers.subarray(0, 100), new Set(texts)]) {
    const list = [...keys];
    const [single, many, updated] = [1, 2, 3].map(() => new CuckooFilter({ capacity: list.length }));
    const expected = list.map((key) => single.add(key));
    assert.deepEqual(many.addMany(keys), expected);
    assert.equal(updated.update(keys), expected.filter(Boolean).length);
    assert.deepEqual([many.toBytes(), updated.toBytes()], Array(2).fill(single.toBytes()));
    assert.ok(expected.filter(Boolean).length > 0.99 * list.length);
    assert.deepEqual(many.addMany(keys), list.map(() => false));
    assert.equal(updated.update(keys), 0);
  }
  assert.deepEqual(new CuckooFilter().addMany(["a", "b", "a"]), [true, true, false]);
  const growing = new CuckooFilter({ capacity: 100, growable: true });
  assert.deepEqual([growing.update(texts), growing.update(texts)], [growing.size, 0]);
});

test("copies are added by an option", () => {
  const filter = new CuckooFilter({ capacity: 10, errorRate: 1e-9 });
  const added = [filter.add("a", multi), filter.add("a", multi), filter.add("a", { multi: false }), filter.add("a", {})];
  assert.deepEqual(added, [true, true, false, false]);
  assert.deepEqual([filter.update(["a", "b"], multi), filter.update(["a", "c"]), filter.update(["a"], {})], [2, 1, 0]);
  for (const wrong of [{ multi: 1 }, { many: true }, true, 0, null, ["a"]]) {
    for (const name of ["add", "update"]) assert.throws(() => filter[name](["a"], wrong), TypeError, name);
  }
  // The index that forEach passes is no option.
  assert.throws(() => ["a"].forEach(filter.add, filter), { name: "TypeError", message: /object of options/ });
  assert.equal(filter.size, 5);
});

test("any iterable is a batch", () => {
  const filter = new CuckooFilter({ capacity: 100, errorRate: 1e-9 });
  for (const keys of [new Set(["a", "b"]), new Map([["c", 1]]).keys(), new Int16Array([-3, 4])]) filter.addMany(keys);
  filter.addMany((function* () {
    yield* ["d", 5, 6n];
  })());
  assert.deepEqual(filter.hasMany(["a", "b", "c", "d", 5, 6, -3n, 4, "e"]), [...Array(8).fill(true), false]);
  assert.equal(filter.size, 8);
});

/** What a call throws. */
function thrown(call) {
  try {
    call();
  } catch (error) {
    return error;
  }
  return assert.fail("nothing was thrown");
}

test("a key of a collection that is none leaves the filter as it was", () => {
  const keys = [...integers, 1.5];
  for (const batch of [keys, new Set(keys), [...texts, null]]) {
    for (const name of ["addMany", "update", "deleteMany"]) {
      const filter = filled({ capacity: 50_000 }, [integers[0]]);
      const error = thrown(() => filter[name](batch));
      assert.ok(error instanceof TypeError || error instanceof RangeError);
      assert.deepEqual([error.done, error.answers?.length ?? 0, filter.size], [0, 0, 1], name);
    }
  }
});

test("an iterator that fails has done the keys before", () => {
  for (const at of [0, 10, 16_384, 40_000]) {
    const stream = function* () {
      for (let key = 0; key < at; key += 1) yield key % 30_000;
      throw new Error("the connection is gone");
    };
    const [filter, other] = [new CuckooFilter({ capacity: 50_000 }), new CuckooFilter({ capacity: 50_000 })];
    const error = thrown(() => filter.addMany(stream()));
    assert.match(error.message, /connection is gone/);
    const expected = Array.from({ length: at }, (_, key) => other.add(key % 30_000));
    assert.deepEqual([error.done, error.answers], [at, expected]);
    assert.deepEqual(filter.toBytes(), other.toBytes());
    const bad = thrown(() => filter.deleteMany([null][Symbol.iterator]()));
    assert.deepEqual([bad.done, bad.answers], [0, []]);
  }
});

test("a full filter says which keys of a batch are in", () => {
  const keys = Array.from({ length: 90_000 }, (_, i) => i - (i % 3 === 1 ? 1 : 0));
  for (const batch of [keys, BigUint64Array.from(keys, BigInt), keys.values(), keys.map(String)]) {
    const [filter, single] = [new CuckooFilter({ capacity: 40_000 }), new CuckooFilter({ capacity: 40_000 })];
    const error = thrown(() => filter.addMany(batch));
    const form = typeof batch[0] === "string" ? String : (key) => key;
    const expected = keys.slice(0, error.done).map((key) => single.add(form(key)));
    assert.deepEqual([error.code, error.answers], ["full", expected]);
    assert.deepEqual(filter.toBytes(), single.toBytes());
    assert.throws(() => single.add(form(keys[error.done])), { code: "full" });
  }
  const filter = new CuckooFilter({ capacity: 40_000 });
  const error = thrown(() => filter.update(keys, multi));
  assert.deepEqual([error.done, error.answers, error.code], [filter.size, undefined, "full"]);
});

test("a merge keeps the larger counts unless it is told otherwise, and returns its filter", () => {
  const [filter, other] = [["a", "a", "b"], ["a", "c"]].map((keys) => filled({ capacity: 1000 }, keys));
  assert.equal(filter.merge(other), filter);
  assert.deepEqual(filter.countMany(["a", "b", "c"]), [2, 1, 1]);
  filter.merge(filter, { counts: "sum" });
  assert.deepEqual(filter.countMany(["a", "b", "c"]), [4, 2, 2]);
  assert.throws(() => filter.merge({}), TypeError);
  assert.throws(() => filter.merge(other, { counts: "min" }), TypeError);
});

test("a seed is a number or a bigint, and a secret 16 bytes", () => {
  const secret = new Uint8Array(16).fill(7);
  const bytes = (options) => filled({ capacity: 100, ...options }, ["a"]).toBytes();
  assert.deepEqual(bytes({ seed: 1 }), bytes({ seed: 1n }));
  assert.deepEqual(bytes({ secret }), bytes({ secret: Buffer.from(secret) }));
  for (const wrong of [new Uint8Array(15), "secret", null]) {
    assert.throws(() => new CuckooFilter({ secret: wrong }), { name: "TypeError", message: /16 bytes/ });
  }
  assert.throws(() => new CuckooFilter({ secret, seed: 1 }), /not both/);
});

test("arrays of another realm are keys and files", () => {
  const [key, list, buffer] = runInNewContext("[new Uint8Array([1]), ['a', 'b'], new ArrayBuffer(8)]");
  const filter = filled({ capacity: 10, errorRate: 1e-9 }, [key, ...list]);
  assert.deepEqual(filter.hasMany([new Uint8Array([1]), "a", "b", "c"]), [true, true, true, false]);
  assert.throws(() => CuckooFilter.fromBytes(buffer), { code: "bytes" });
  assert.throws(() => CuckooFilter.fromBytes("koel"), TypeError);
});

test("console.log prints the figures", () => {
  const filter = filled({ capacity: 100 }, ["a"]);
  const line = /^CuckooFilter \{ size: 1, capacity: 100, errorRate: 0.001, byteLength: \d+ \}$/;
  assert.match(inspect(filter), line);
  assert.match(`${filter}`, line);
  filter.free();
  assert.equal(inspect([filter]), "[ CuckooFilter { freed } ]");
  filter[Symbol.dispose]();
});

test("filters that are dropped are freed between tasks", async () => {
  for (let round = 0; round < 60; round += 1) {
    for (let i = 0; i < 10; i += 1) new CuckooFilter({ capacity: 10_000_000 }).add(i);
    globalThis.gc();
    await new Promise((resolve) => setTimeout(resolve));
  }
});

test("a module that has stopped ends no process", () => {
  // More memory than there is, in a loop without a task in between, then dropped filters.
  const script = `
    import { CuckooFilter } from "koel-filter";
    try {
      for (;;) new CuckooFilter({ capacity: 100_000_000 });
    } catch (error) {
      console.log(error.code, /call free\\(\\)/.test(error.message));
    }
    for (let i = 0; i < 5; i += 1) { globalThis.gc(); await new Promise((resolve) => setTimeout(resolve)); }
    const filter = new CuckooFilter({ capacity: 100_000_000 });
    console.log(filter.add("a") && filter.has("a"));
  `.replaceAll("\\\\", "\\");
  const args = ["--expose-gc", "--input-type=module", "-e", script];
  assert.equal(execFileSync(process.execPath, args, { encoding: "utf8" }), "memory true\ntrue\n");
});

test("no two filters are equal to a test that compares properties", () => {
  const [one, other, same] = [["a"], ["b"], ["a"]].map((keys) => filled({ capacity: 100 }, keys));
  for (const filter of [other, same]) {
    assert.notDeepStrictEqual(one, filter);
    assert.notDeepStrictEqual({ list: one }, { list: filter });
    assert.ok(!isDeepStrictEqual(one, filter));
  }
  assert.deepStrictEqual(one, one);
  assert.deepStrictEqual(one.toBytes(), same.toBytes());
});
