// No call answers false, 0 or nothing because it has not understood its input.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CuckooFilter } from "koel-filter";

/** A filter for so many keys, with these. */
function filled(capacity, ...keys) {
  const filter = new CuckooFilter({ capacity });
  filter.addMany(keys);
  return filter;
}

/** A typed array whose buffer was moved, as `postMessage` moves it. */
function moved(array) {
  structuredClone(array.buffer, { transfer: [array.buffer] });
  return array;
}

/** A typed array whose buffer has shrunk below its end. */
function shrunk(Type) {
  const buffer = new ArrayBuffer(64, { maxByteLength: 64 });
  const array = new Type(buffer, 0, 8);
  buffer.resize(0);
  return array;
}

const isLost = { name: "TypeError", message: /lost its buffer/ };

test("a key whose buffer was moved is not the empty key", () => {
  const filter = filled(10, "");
  for (const key of [moved(new Uint8Array(3)), moved(Buffer.from(new ArrayBuffer(3))), shrunk(Uint8Array)]) {
    for (const name of ["has", "add", "count", "delete", "refute"]) {
      assert.throws(() => filter[name](key), isLost, name);
    }
    assert.throws(() => filter.addMany(["a", key]), isLost);
    assert.throws(() => CuckooFilter.fromBytes(key), isLost);
    assert.throws(() => filter.patched(key), isLost);
  }
  assert.throws(() => CuckooFilter.fromBytes(moved(new Uint8Array(3)).buffer), TypeError);
  assert.equal(filter.size, 1);
  assert.ok(filter.has(new Uint8Array()) && filter.has(new Uint8Array(new ArrayBuffer(8), 8)));
});

test("a batch whose buffer was moved is not an empty batch", () => {
  const filter = new CuckooFilter({ capacity: 10 });
  for (const Type of [BigUint64Array, BigInt64Array, Int32Array, Float64Array]) {
    for (const keys of [moved(new Type(8)), ...(Type.BYTES_PER_ELEMENT === 8 ? [shrunk(Type)] : [])]) {
      for (const name of ["hasMany", "addMany", "update", "countMany", "deleteMany", "refuteMany"]) {
        assert.throws(() => filter[name](keys), isLost, name);
      }
    }
    assert.deepEqual(filter.hasMany(new Type()), []);
  }
});

test("a text in an object is not a batch of its characters", () => {
  const filter = new CuckooFilter({ capacity: 10 });
  for (const name of ["hasMany", "addMany", "refuteMany"]) {
    assert.throws(() => filter[name](new String("abc")), { name: "TypeError", message: /use \[key\]/ });
  }
  assert.throws(() => filter.has(new String("abc")), TypeError);
  assert.equal(filter.size, 0);
});

test("what is no object of options makes no empty filter", async () => {
  const filter = filled(10, "a");
  const bytes = filter.toBytes();
  const none = [["a", "b"], new Set(["a"]), new Map(), filter, bytes, bytes.buffer, Promise.resolve({}), () => ({}), null, "a", 7n];
  for (const options of none) {
    assert.throws(() => new CuckooFilter(options), { name: "TypeError", message: /object of options/ });
  }
  const { CuckooFilter: Other } = await import("koel-filter/init");
  assert.throws(() => new Other(filter), { name: "TypeError", message: /object of options/ });
  assert.equal(new CuckooFilter(Object.assign(Object.create(null), { capacity: 10 })).capacity, 10);
  assert.equal(new CuckooFilter(undefined).size, 0);
});

test("an option that does not exist is not ignored", () => {
  assert.throws(() => new CuckooFilter({ capcity: 10 }), { name: "TypeError", message: /no option capcity/ });
  const filter = filled(10, "a");
  assert.throws(() => filter.merge(filter, { count: "sum" }), { name: "TypeError", message: /no option count/ });
  assert.throws(() => filter.merge(filter, "sum"), TypeError);
  assert.equal(filter.count("a"), 1);
});

test("a filter that is freed by its own batch throws, and its handle is not taken for another", () => {
  for (const name of ["hasMany", "addMany", "update", "countMany", "deleteMany", "refuteMany"]) {
    const filter = filled(100_000, "a", "b");
    let other;
    const keys = function* () {
      yield "a";
      filter.free();
      other = filled(100_000, "b");
      yield "b";
    };
    assert.throws(() => filter[name](keys()), { code: "freed" }, name);
    assert.equal(other.size, 1);
    assert.throws(() => filter[name]([]), { code: "freed" }, name);
  }
  const filter = new CuckooFilter();
  filter.free();
  for (const name of ["size", "capacity", "corrections", "errorRate", "loadFactor", "byteLength", "growable"]) {
    assert.throws(() => filter[name], { code: "freed" }, name);
  }
  for (const name of ["has", "count", "delete", "refute", "toBytes", "clear", "merge", "patchTo"]) {
    assert.throws(() => filter[name](name === "merge" || name === "patchTo" ? filter : "a"), { code: "freed" }, name);
  }
});

test("a batch that finds no room passes on no key twice, whatever its iterator does at the end", () => {
  const [filter, plain, other] = [new CuckooFilter({ capacity: 100 }), new CuckooFilter({ capacity: 100 }), new CuckooFilter()];
  const keys = function* () {
    try {
      for (let key = 0; ; key += 1) yield key;
    } finally {
      other.addMany(["done"]);
    }
  };
  const full = { code: "full" };
  assert.throws(() => filter.addMany(keys()), full);
  assert.throws(() => plain.addMany(Array.from({ length: 16_384 }, (_, key) => key)), full);
  assert.deepEqual(filter.toBytes(), plain.toBytes());
  assert.ok(other.has("done"));
});

test("what looks like a batch and is none throws", () => {
  const filter = new CuckooFilter({ capacity: 10 });
  const asynchronous = (async function* () {
    yield "a";
  })();
  for (const keys of [{ length: 2, 0: "a", 1: "b" }, asynchronous, Promise.resolve(["a"]), new DataView(new ArrayBuffer(8)), new ArrayBuffer(8), true, 0, Symbol("a")]) {
    assert.throws(() => filter.hasMany(keys), { name: "TypeError", message: /use \[key\]/ });
  }
  assert.throws(() => filter.hasMany(new Map([["a", 1]])), TypeError);
  assert.throws(() => filter.hasMany(new Array(3)), TypeError);
  assert.throws(() => filter.hasMany(new Float64Array([1, NaN])), RangeError);
});
