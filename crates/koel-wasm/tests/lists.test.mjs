// Known mistakes and patches: what a list that is published needs.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { CuckooFilter } from "koel-filter";

const folder = mkdtempSync(join(tmpdir(), "koel-lists-"));
after(() => rmSync(folder, { recursive: true }));
const inFolder = (name) => join(folder, name);
const koel = (...args) => execFileSync(process.env.KOEL, args, { encoding: "utf8" });
const lines = (names) => names.map((name) => `${name}\n`).join("");

const names = (from, to) => Array.from({ length: to - from }, (_, i) => `host${from + i}.example.org`);
const MEMBERS = names(0, 2000);
const ALLOWED = names(10_000, 40_000);
/** A filter with copies of these keys. */
function filled(options, keys) {
  const filter = new CuckooFilter(options);
  filter.update(keys, { multi: true });
  return filter;
}

const blocked = (options) => filled({ capacity: 2000, errorRate: 0.05, ...options }, MEMBERS);
const isFull = { name: "KoelError", code: "full" };

test("refuted keys are absent, and members stay", () => {
  for (const form of [(keys) => keys, (keys) => new Set(keys), (keys) => keys.values()]) {
    const filter = blocked();
    const wrong = ALLOWED.filter((name) => filter.has(name));
    assert.ok(wrong.length > 100);
    assert.equal(filter.refuteMany(form(ALLOWED)), wrong.length);
    assert.equal(filter.corrections, wrong.length);
    assert.equal(filter.refuteMany(form(ALLOWED)), 0);
    assert.ok(!filter.hasMany(ALLOWED).includes(true) && !ALLOWED.some((name) => filter.has(name)));
    assert.ok(filter.hasMany(MEMBERS).every(Boolean));
    assert.deepEqual([filter.count(wrong[0]), filter.delete(wrong[0]), filter.size], [0, false, 2000]);
    const opened = CuckooFilter.fromBytes(filter.toBytes());
    assert.deepEqual([opened.corrections, opened.hasMany(wrong).includes(true)], [wrong.length, false]);
  }
});

test("one key is refuted, integers too, and adding it takes its correction back", () => {
  const filter = filled({ capacity: 1000, errorRate: 0.1 }, BigUint64Array.from({ length: 1000 }, (_, i) => BigInt(i)));
  let wrong = 1000;
  while (!filter.has(wrong)) wrong += 1;
  assert.deepEqual([filter.refute(wrong), filter.has(wrong), filter.corrections], [true, false, 1]);
  assert.deepEqual([filter.refute(wrong), filter.corrections], [false, 1]);
  filter.add(wrong);
  assert.deepEqual([filter.has(wrong), filter.corrections, filter.delete(wrong)], [true, 0, true]);
  const asked = BigUint64Array.from({ length: 5000 }, (_, i) => BigInt(1000 + i));
  const made = filter.refuteMany(asked);
  assert.ok(made > 100 && made === filter.corrections);
  for (const add of [(keys) => filter.update(keys, { multi: true }), (keys) => filter.addMany(keys)]) {
    const some = asked.filter((key) => filter.refute(key) || !filter.has(key)).slice(0, 20);
    add(some);
    assert.ok(filter.hasMany(some).every(Boolean));
    some.forEach((key) => filter.delete(key));
  }
  const unknown = new CuckooFilter({ capacity: 100, errorRate: 1e-9 });
  assert.deepEqual([unknown.refute("absent"), unknown.corrections], [false, 0]);
});

test("a filter that grows, merges or is cleared keeps its members", () => {
  const filter = blocked({ growable: true });
  const wrong = ALLOWED.filter((name) => filter.has(name));
  filter.refuteMany(wrong, { force: true });
  filter.update(ALLOWED);
  assert.ok(filter.hasMany(ALLOWED).every(Boolean) && filter.hasMany(MEMBERS).every(Boolean));
  assert.equal(filter.corrections, 0);

  const [ours, theirs] = [blocked(), filled({ capacity: 2000, errorRate: 0.05 }, wrong.slice(0, 9))];
  ours.refuteMany(wrong, { force: true });
  ours.merge(theirs);
  assert.ok(ours.hasMany([...MEMBERS, ...wrong.slice(0, 9)]).every(Boolean));
  ours.clear();
  assert.deepEqual([ours.size, ours.corrections], [0, 0]);
});

test("more corrections than slots are refused, and none is made", () => {
  const filter = filled({ capacity: 100, errorRate: 0.2 }, MEMBERS.slice(0, 100));
  const before = filter.toBytes();
  assert.throws(() => filter.refuteMany(ALLOWED), { ...isFull, message: /corrections/ });
  assert.deepEqual(filter.toBytes(), before);
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
  assert.equal(filter.refuteMany(MEMBERS.slice(0, 100), { force: true }), 96);
  assert.ok(!filter.hasMany(MEMBERS.slice(0, 100)).includes(true));
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
  assert.deepEqual([filter.refuteMany([]), filter.refuteMany(new BigUint64Array())], [0, 0]);
});

test("the command and the package refute alike", () => {
  writeFileSync(inFolder("list"), lines(MEMBERS));
  writeFileSync(inFolder("allowed"), lines(ALLOWED));
  koel("build", inFolder("list"), "--keys", "2000", "--fpr", "0.05", "--never", inFolder("allowed"), "-o", inFolder("never.koel"));
  const filter = blocked();
  filter.refuteMany(ALLOWED);
  assert.deepEqual(Buffer.from(filter.toBytes()), readFileSync(inFolder("never.koel")));
});

const options = { capacity: 50_000, errorRate: 0.001 };
/** A list of 40,000 hosts, and that of the next night: 200 are gone, 200 new, one is there twice. */
const monday = () => filled(options, names(0, 40_000));
const tuesday = () => filled(options, [...names(200, 40_200), "host300.example.org"]);

test("a patch makes the new filter, with its counts and corrections", () => {
  const [old, newer] = [monday(), tuesday()];
  old.refuteMany(names(90_000, 130_000));
  newer.refuteMany(names(100_000, 140_000));
  const [before, patch] = [old.toBytes(), old.patchTo(newer)];
  // 401 entries and some 20 corrections of 8 bytes.
  assert.ok(patch.length > 400 && patch.length < 2000, `${patch.length}`);
  for (const bytes of [patch, patch.buffer]) {
    const patched = old.patched(bytes);
    assert.deepEqual([patched.size, patched.corrections], [newer.size, newer.corrections]);
    assert.ok(patched.hasMany(names(200, 40_200)).every(Boolean));
    assert.ok(patched.count("host300.example.org") >= 2);
    assert.ok(!patched.hasMany(names(100_000, 140_000)).includes(true));
    assert.deepEqual(patched.hasMany(names(50_000, 90_000)), newer.hasMany(names(50_000, 90_000)));
    assert.deepEqual(patched.deleteMany(names(200, 40_200)).includes(false), false);
  }
  assert.deepEqual(old.toBytes(), before);
});

test("the command applies the package's patches, and the other way round", () => {
  const [old, newer] = [monday(), tuesday()];
  writeFileSync(inFolder("old.koel"), old.toBytes());
  writeFileSync(inFolder("new.koel"), newer.toBytes());
  writeFileSync(inFolder("ours.patch"), old.patchTo(newer));
  koel("patch", inFolder("old.koel"), inFolder("ours.patch"), "-o", inFolder("patched.koel"));
  koel("diff", inFolder("old.koel"), inFolder("new.koel"), "--patch", inFolder("theirs.patch"));
  const patched = old.patched(readFileSync(inFolder("theirs.patch")));
  assert.deepEqual(Buffer.from(patched.toBytes()), readFileSync(inFolder("patched.koel")));
});

test("a patch that is damaged, cut short or none is refused", () => {
  const [old, newer] = [monday(), tuesday()];
  const [before, patch] = [old.toBytes(), old.patchTo(newer)];
  const isDamaged = { name: "KoelError", code: "bytes" };
  for (let at = 0; at < patch.length; at += 5) {
    for (const bit of [1, 128]) {
      const damaged = patch.slice();
      damaged[at] ^= bit;
      assert.throws(() => old.patched(damaged), isDamaged, `byte ${at}`);
    }
  }
  for (const length of [0, 7, 8, 40, 100, patch.length - 1]) {
    assert.throws(() => old.patched(patch.subarray(0, length)), isDamaged, `${length} bytes`);
  }
  assert.throws(() => old.patched(new Uint8Array([...patch, 0])), isDamaged);
  assert.throws(() => old.patched(before), { ...isDamaged, message: /not a patch/ });
  assert.throws(() => CuckooFilter.fromBytes(patch), isDamaged);
  for (const none of ["patch", undefined, null, {}, [1, 2], newer]) {
    assert.throws(() => old.patched(none), { name: "TypeError", message: /Uint8Array or an ArrayBuffer/ });
  }
  assert.deepEqual(old.toBytes(), before);
});

test("a patch of another filter is refused, and says what to do", () => {
  const [old, newer] = [monday(), tuesday()];
  const patch = old.patchTo(newer);
  const isOther = (message) => ({ name: "KoelError", code: "base", message });
  assert.throws(() => newer.patched(patch), isOther(/has the changes of this patch already/));
  assert.throws(() => old.patched(patch).patched(patch), isOther(/already/));
  assert.throws(() => new CuckooFilter(options).patched(patch), isOther(/get the whole new filter/));
  assert.throws(() => new CuckooFilter({ ...options, seed: 7 }).patched(patch), isOther(/other settings/));
});

test("a filter that has grown is patched", () => {
  const [old, later] = [[], ["late"]].map((late) =>
    filled({ capacity: 100, growable: true }, [...MEMBERS, ...late]),
  );
  const patched = old.patched(old.patchTo(later));
  assert.ok(!old.has("late") && patched.has("late") && MEMBERS.every((key) => patched.has(key)));
});

test("filters that no patch joins say how to build them", () => {
  const old = monday();
  const isUnlike = (message) => ({ name: "KoelError", code: "settings", message });
  const unlike = (settings) => new CuckooFilter({ ...options, ...settings });
  assert.throws(() => old.patchTo(unlike({ seed: 7 })), isUnlike(/differ in hash; build the new one/));
  assert.throws(() => old.patchTo(unlike({ capacity: 90_000 })), isUnlike(/fixed number of keys/));
  for (const none of [{}, null, "koel", old.toBytes()]) {
    assert.throws(() => old.patchTo(none), { name: "TypeError", message: /expected a CuckooFilter/ });
  }
  old.free();
  assert.throws(() => monday().patchTo(old), { code: "freed" });
  assert.throws(() => old.patched(new Uint8Array(80)), { code: "freed" });
});
