// Runs the scenarios of docs/conformance with a class CuckooFilter: that of the npm package or of its
// reader (conformance.test.mjs), or of the page's module (web/conformance.mjs).

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

// Fields of a step that no door can lack.
const PLAIN = new Set(
  "do filter is at_most error key keys of from to with patch capacity url".split(" "),
);
const NO_KEYS = { fraction: 1.5, true: true, null: null, surrogate: "\ud800" };

const hexOf = (bytes) => Buffer.from(bytes).toString("hex");
const bytesOf = (digits) => new Uint8Array(Buffer.from(digits, "hex"));

function range([from, to], make) {
  return Array.from({ length: to - from }, (_, i) => make(from + i));
}

function keysOf({ key, keys = key === undefined ? [] : [key] }) {
  if (Array.isArray(keys)) return keys;
  if (keys.integers) return range(keys.integers, (i) => i);
  return range(keys.range, (i) => keys.texts.replaceAll("{}", i));
}

function kindOf(key) {
  if (typeof key === "number") return "integer";
  if (typeof key === "string") return key ? "text" : "empty";
  return Object.keys(key)[0];
}

/** What a door must be able to do: docs/conformance/README.md. */
function needsOf({ steps }) {
  const needs = new Set();
  for (const step of steps) {
    needs.add(step.do);
    for (const [field, value] of Object.entries(step)) {
      if (field === "error") needs.add(`error ${value}`);
      else if (field === "counts" || field === "prefer") needs.add(`${step.do} ${field} ${value}`);
      else if (!PLAIN.has(field)) needs.add(`${step.do} ${field}`);
    }
    for (const key of keysOf(step)) needs.add(`key ${kindOf(key)}`);
    if (step.keys?.length === 0) needs.add("no keys");
  }
  return needs;
}

function made(key) {
  if (typeof key !== "object") return key;
  if (key.hex !== undefined) return bytesOf(key.hex);
  return key.u64 === undefined ? NO_KEYS[key.none] : BigInt(key.u64);
}

/** The code of an error. One of settings is that two filters differ, where there are two. */
function codeOf(verb, error) {
  if (error instanceof TypeError || error instanceof RangeError) return "key";
  if (error.code === "settings" && verb !== "build") return "different";
  if (error.code === undefined) throw error;
  return error.code;
}

function edited(bytes, { flip, cut = 0, append = "" }) {
  const changed = Uint8Array.from(bytes);
  if (flip !== undefined) changed[flip] ^= 1;
  return Buffer.concat([changed.subarray(0, changed.length - cut), bytesOf(append)]);
}

/** Filters and patches by their names. */
class Door {
  filters = new Map();
  patches = new Map();

  constructor(CuckooFilter) {
    this.CuckooFilter = CuckooFilter;
  }

  async run(step) {
    const { do: verb, filter = "f", of, patch } = step;
    const open = (bytes) => this.CuckooFilter.fromBytes(bytes);
    const makers = {
      build: () => this.built(step),
      list: () => open(bytesOf(step.image)),
      open: () => {
        const image = step.image === undefined && this.filters.get(of).toBytes();
        return open(edited(image || bytesOf(step.image), step));
      },
      copy: () => open(this.filters.get(of).toBytes()),
      reopen: () => open(this.filters.get(filter).toBytes()),
      patched: () => this.filters.get(of).patched(edited(this.patches.get(patch), step)),
    };
    if (makers[verb]) {
      this.filters.set(filter, makers[verb]());
      return undefined;
    }
    if (verb !== "patch") return this.asked(step, this.filters.get(filter));
    this.patches.set(patch, this.filters.get(step.from).patchTo(this.filters.get(step.to)));
    return hexOf(this.patches.get(patch));
  }

  built({ capacity, rate, grow, prefer, seed, secret }) {
    return new this.CuckooFilter({
      capacity: BigInt(capacity),
      errorRate: rate,
      growable: grow,
      prefer,
      seed: seed === undefined ? undefined : BigInt(seed),
      secret: secret === undefined ? undefined : bytesOf(secret),
    });
  }

  asked(step, filter) {
    const keys = keysOf(step).map(made);
    const other = this.filters.get(step.with);
    const multi = { multi: step.copies ?? false };
    const verbs = {
      add: () => filter.add(keys[0], multi),
      add_many: () => filter.update(keys, multi),
      remove: () => filter.delete(keys[0]),
      remove_many: () => filter.deleteMany(keys),
      contains: () => filter.has(keys[0]),
      contains_many: () => filter.hasMany(keys),
      contains_url: () => filter.hasUrl(step.url),
      count: () => filter.count(keys[0]),
      count_many: () => filter.countMany(keys),
      refute: () => filter.refute(keys[0]),
      refute_many: () => filter.refuteMany(keys, step.force ? { force: true } : undefined),
      clear: () => filter.clear(),
      merge: () => void filter.merge(other, { counts: step.counts }),
      bytes: () => Buffer.compare(filter.toBytes(), other.toBytes()) === 0,
      header: () => hexOf(filter.toBytes().subarray(0, 192)),
      len: () => filter.size,
      capacity: () => filter.capacity,
      rate: () => filter.errorRate,
      corrections: () => filter.corrections,
      growable: () => filter.growable,
      line_options: () => filter.lineOptions,
    };
    return verbs[step.do]();
  }
}

async function runScenario(CuckooFilter, theme, { name, steps }) {
  const door = new Door(CuckooFilter);
  for (const [i, step] of steps.entries()) {
    const place = `${theme}.json, "${name}", step ${i + 1}: ${JSON.stringify(step)}`;
    let answer;
    let code;
    try {
      answer = await door.run(step);
    } catch (error) {
      code = codeOf(step.do, error);
    }
    assert.equal(code, step.error, place);
    if (Array.isArray(answer) && !Array.isArray(step.is)) {
      answer = answer.reduce((sum, one) => sum + Number(one), 0);
    }
    if (step.is !== undefined) assert.deepEqual(answer, step.is, place);
    if (step.at_most !== undefined) assert.ok(answer <= step.at_most, `${place}: ${answer}`);
  }
  for (const filter of door.filters.values()) filter.free();
}

/** Tests that a door of docs/conformance does what it can. `folder` is the URL of that folder. */
export function conform(name, CuckooFilter, folder, title = name) {
  const read = (file) => JSON.parse(readFileSync(new URL(file, folder), "utf8"));
  const { cannot } = read("doors.json")[name];
  const needed = new Set();
  let skipped = 0;
  let ran = 0;
  for (const file of readdirSync(folder).sort()) {
    if (!file.endsWith(".json") || file === "doors.json") continue;
    test(`${title} does what the scenarios say: ${file}`, async () => {
      for (const scenario of read(file).scenarios) {
        const needs = needsOf(scenario);
        for (const need of needs) needed.add(need);
        if ([...needs].some((need) => need in cannot)) {
          skipped += 1;
          continue;
        }
        await runScenario(CuckooFilter, file.slice(0, -5), scenario);
        ran += 1;
      }
    });
  }
  test(`every lack of ${title} is one of a scenario`, () => {
    assert.deepEqual(Object.keys(cannot).filter((need) => !needed.has(need)), []);
    console.log(`${title}: ran ${ran} scenarios, skipped ${skipped}`);
  });
}
