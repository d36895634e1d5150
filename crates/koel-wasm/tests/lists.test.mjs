// Known mistakes and patches: what the scenarios of docs/conformance cannot say, which is about forms
// of arguments and iterators.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CuckooFilter } from "koel-filter";

const names = (from, to) => Array.from({ length: to - from }, (_, i) => `host${from + i}.example.org`);
const MEMBERS = names(0, 2000);
const ALLOWED = names(10_000, 40_000);

/** A filter with copies of these keys. */
function filled(options, keys) {
  const filter = new CuckooFilter(options);
  filter.update(keys, { multi: true });
  return filter;
}

const blocked = () => filled({ capacity: 2000, errorRate: 0.05 }, MEMBERS);

test("keys of any iterable are refuted alike, and integers are", () => {
  const forms = [ALLOWED, new Set(ALLOWED), ALLOWED.values()].map((keys) => {
    const filter = blocked();
    const made = filter.refuteMany(keys);
    assert.ok(made > 100 && made === filter.corrections);
    assert.deepEqual([filter.refuteMany(ALLOWED), filter.hasMany(ALLOWED).includes(true)], [0, false]);
    return filter.toBytes();
  });
  assert.deepEqual(forms, Array(3).fill(forms[0]));
  const integers = filled({ capacity: 1000, errorRate: 0.1 }, Array.from({ length: 1000 }, (_, i) => i));
  const asked = BigUint64Array.from({ length: 5000 }, (_, i) => BigInt(1000 + i));
  const reported = integers.hasMany(asked).filter(Boolean).length;
  assert.deepEqual([integers.refuteMany(asked), reported > 100], [reported, true]);
});

test("keys that were added are not refuted by accident", () => {
  const filter = blocked();
  const before = filter.toBytes();
  const areMembers = { name: "KoelError", code: "members", message: /are reported, and chance explains/ };
  for (const keys of [MEMBERS.slice(0, 10), new Set(MEMBERS), [...MEMBERS.slice(0, 900), ...ALLOWED].values()]) {
    assert.throws(() => filter.refuteMany(keys), areMembers);
  }
  assert.throws(() => filter.refuteMany(MEMBERS, { force: 1 }), /force: expected a boolean/);
  assert.throws(() => filter.refuteMany(MEMBERS, { forced: true }), /no option forced/);
  assert.deepEqual(filter.toBytes(), before);
  assert.equal(filter.refuteMany([...MEMBERS.slice(0, 4), ...MEMBERS.slice(0, 4)]), 4);
});

test("keys of refuteMany that fail in between leave the filter as it was", () => {
  const filter = blocked();
  const before = filter.toBytes();
  const stream = function* () {
    yield* ALLOWED;
    throw new Error("no more");
  };
  assert.throws(() => filter.refuteMany(stream()), /no more/);
  for (const wrong of [[...ALLOWED, 1.5], new Set([...ALLOWED, null]), [...ALLOWED, "\ud800"].values()]) {
    assert.throws(() => filter.refuteMany(wrong), (error) => error instanceof TypeError || error instanceof RangeError);
  }
  assert.throws(() => filter.refuteMany("text"), /use \[key\]/);
  assert.throws(() => filter.refute(NaN), RangeError);
  assert.deepEqual(filter.toBytes(), before);
  assert.equal(filter.refuteMany(new BigUint64Array()), 0);
});

test("a patch is bytes of either form, and for and of a filter", () => {
  const [old, newer] = [blocked(), filled({ capacity: 2000, errorRate: 0.05 }, MEMBERS.slice(10))];
  const patch = old.patchTo(newer);
  assert.deepEqual(old.patched(patch).toBytes(), old.patched(patch.buffer).toBytes());
  assert.throws(() => old.patched(old.toBytes()), { name: "KoelError", code: "bytes", message: /not a patch/ });
  for (const none of ["patch", undefined, null, {}, [1, 2], newer]) {
    assert.throws(() => old.patched(none), { name: "TypeError", message: /Uint8Array or an ArrayBuffer/ });
  }
  for (const none of [{}, null, "koel", old.toBytes()]) {
    assert.throws(() => old.patchTo(none), { name: "TypeError", message: /expected a CuckooFilter/ });
  }
  old.free();
  assert.throws(() => newer.patchTo(old), { code: "freed" });
  assert.throws(() => old.patched(patch), { code: "freed" });
});
