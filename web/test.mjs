// The page as users open it, in Chromium: from file://, with a run of each part, no error in the
// console, no request, and no finding of axe. Screenshots go to target/web.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import axe from "axe-core";
import { gzipSync } from "node:zlib";
import { chromium } from "playwright-core";
import { instanceOf } from "../crates/koel-wasm/npm/instance.js";
import { pictureOf } from "./difference.js";
import { made } from "./made.mjs";
import { PageModule } from "./wasm.js";
import { Watched } from "./watched.js";
import { sentence } from "./words.js";

const folder = made("web/");
const path = (name) => fileURLToPath(new URL(name, folder));
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
// A limit for what hangs, which no busy machine reaches.
const timeout = 120_000;
const wide = { viewport: { width: 1100, height: 900 } };
const phone = { viewport: { width: 390, height: 844 } };

/** The button that asks. */
const ASK = "#ask button:not([type])";

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath, timeout, args: ["--no-sandbox"] });
});
after(() => browser.close());

/**
 * Runs `work` on a page, which must log nothing and request nothing but itself, and what begins with
 * `elsewhere`. With `clock` its time is that of the test.
 */
async function onPage(options, work, url = new URL("index.html", folder).href) {
  const { clock, elsewhere = "blob:", ...settings } = options;
  const context = await browser.newContext(settings);
  context.setDefaultTimeout(timeout);
  const page = await context.newPage();
  if (clock) await page.clock.install();
  const complaints = [];
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    const isAllowed = ["blob:", elsewhere].some((start) => request.url().startsWith(start));
    if (request.url() !== url && !isAllowed) complaints.push(request.url());
  });
  await page.goto(url);
  await page.waitForSelector("html[data-ready]");
  await work(page);
  assert.deepEqual(complaints, []);
  await context.close();
}

/** What axe has to say about the page as it is. */
async function findings(page) {
  // The policy of the page forbids scripts from elsewhere, so this one is evaluated.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(", ")}`);
}

/** The buckets of the picture, as text. */
const picture = (page) => page.locator("#table li:not(.over)").allTextContents();

/** The steps so far, as one text. */
const steps = async (page) => (await page.locator("#steps li").allTextContents()).join("\n");

/** Ends the story, and begins with an empty table. */
async function empty(page) {
  await page.click("#anew");
  assert.match(await steps(page), /The table is empty\. Add a key\.$/);
}

/** Makes the steps that are to come, on a page without motion. */
async function all(page) {
  if ((await page.textContent("#play")) === "All steps") await page.click("#play");
  return steps(page);
}

/** Does it with a key, and returns the steps. */
async function operate(page, button, key) {
  if (key !== undefined) await page.fill("#watched-key", key);
  await page.click(`#watch-form button:text-is("${button}")`);
  return all(page);
}

const still = { ...wide, reducedMotion: "reduce" };

/** Makes the steps of an operation. Each leads to the next table, and each move is to the other bucket. */
function follow(watched, grows) {
  let before = watched.table;
  for (const step of watched.steps.filter(({ table }) => table)) {
    const slots = before.flat();
    const changed = step.table.flat().filter((slot, i) => slot !== slots[i]);
    if (step.kind === "written") {
      assert.deepEqual(changed, [step.new]);
      assert.ok(before[step.bucket].includes(step.old));
    }
    if (step.kind === "written" && step.from !== null) {
      const places = [...watched.keys.keys()].map((key) => watched.locate(key).buckets);
      const isOneOf = (place) => place.includes(step.from) && place.includes(step.bucket);
      assert.ok(places.some(isOneOf), `${step.new} from ${step.from} to ${step.bucket}`);
    }
    if (["searched", "counted", "narrow"].includes(step.kind)) assert.deepEqual(changed, []);
    // An entry is in its other bucket before its slot is written. In a table that grows it may have fewer bits there.
    const isIn = (table, { buckets, fingerprints }) => buckets.some((own, i) => table[own].includes(fingerprints[i]));
    const keys = grows ? [] : [...watched.keys].filter(([, { copies }]) => copies > 0);
    assert.deepEqual(keys.filter(([, place]) => isIn(before, place) && !isIn(step.table, place)), []);
    before = step.table;
  }
  watched.finish();
  assert.deepEqual([before, watched.table], Array(2).fill(pictureOf(watched.image()).table));
}

const pageModule = async () => {
  return new PageModule(instanceOf(await WebAssembly.compile(readFileSync(made("npm/page.wasm")))));
};

test("the steps of random operations lead from each table to the next", async () => {
  const module = await pageModule();
  for (const grows of [false, true]) {
    const kinds = {};
    let random = 1;
    for (let table = 0; table < 10; table += 1) {
      const watched = new Watched(module, { grows });
      for (let operation = 0; operation < 300; operation += 1) {
        random = (Math.imul(random, 1664525) + 1013904223) >>> 0;
        const key = `key ${(random >>> 16) % 60}`;
        watched.operate(key, random >>> 30 > 0 || watched.copies(key) === 0);
        for (const { kind, moves } of watched.steps) kinds[kind + (moves ?? "")] = 1 + (kinds[kind + (moves ?? "")] ?? 0);
        follow(watched, grows);
      }
      watched.free();
    }
    const expected = ["written", "counted", "searched1", "searched2", ...(grows ? ["widened", "narrow", "split"] : ["searched"])];
    for (const kind of expected) assert.ok(kinds[kind] > 0, kind);
    assert.ok((kinds.moved ?? 0) <= (grows ? 10 : 0), `${kinds.moved}`);
  }
});

test("a story plays by itself, and can be paused, stepped and played again", () =>
  onPage(wide, async (page) => {
    await page.waitForFunction(() => document.querySelectorAll("#steps li").length > 2);
    assert.equal(await page.textContent("#play"), "Pause");
    await page.click("#play");
    const paused = await steps(page);
    assert.equal(await page.textContent("#play"), "Play");
    await page.waitForTimeout(3000);
    assert.equal(await steps(page), paused);
    await page.click("#step");
    assert.ok((await steps(page)).length > paused.length);
    while (await page.isEnabled("#step")) await page.click("#step");
    assert.match(await steps(page), /"\w+" is present\..*"\w+" is absent\. That is certain\..*: a false positive\./s);
    await page.click("#play");
    assert.match(await steps(page), /^\d+ birds were added/);
  }));

test("the first story takes twenty seconds, with a question before each answer and a false positive", () =>
  onPage({ ...wide, clock: true }, async (page) => {
    await page.clock.runFor(20_000);
    assert.equal(await page.textContent("#play"), "Play again");
    const [, ...told] = await page.locator("#steps li").allInnerTexts();
    for (const [i, answer] of [/^Yes.* is present\.$/, /^No: .* is absent\. That is certain\.$/, /^Yes.*: a false positive\.$/].entries()) {
      assert.match(told[2 * i], /^Was \w+ added\?\nIts hash names .* Is it there\?$/);
      assert.match(told[2 * i + 1], answer);
    }
    assert.match(told.at(-1), /Move the slider/);
  }));

test("without motion nothing plays, and each step of a story waits for Step", () =>
  onPage(still, async (page) => {
    for (const story of await page.locator("#stories button").all()) {
      await story.click();
      assert.equal(await page.locator("#steps li").count(), 1);
      let made = 1;
      for (; await page.isEnabled("#step"); made += 1) {
        assert.equal(await page.textContent("#play"), "All steps");
        await page.click("#step");
        assert.equal(await page.locator("#steps li").count(), made + 1);
      }
      const stepped = await steps(page);
      await story.click();
      assert.deepEqual([await all(page), made > 5], [stepped, true]);
    }
  }));

test("the slider shows fewer false positives of longer fingerprints, expected and measured", () =>
  onPage(still, async (page) => {
    const asked = (await all(page)).match(/Was (\w+) added\?(?!.*Was)/s)[1];
    const [birds, shares] = [await page.textContent("#table-text"), []];
    for (const bits of [8, 10, 12, 14, 16]) {
      await page.locator("#bits").fill(`${bits}`);
      const text = await page.textContent("#rate-row");
      const [, shown, expected, measured] = text.match(/of (\d+) bits.*: ([\d.]+) % expected, ([\d.]+) % of 100,000 measured/s);
      assert.equal(Number(shown), bits);
      // So many in 100,000: within five standard deviations, as the number of random hits has.
      const [mean, seen] = [1000 * expected, 1000 * measured];
      assert.ok(Math.abs(mean - seen) <= 5 * Math.sqrt(mean) + 1, text);
      // Two buckets with 22 of 48 slots in use, and 2^bits - 1 fingerprints.
      assert.ok(Math.abs((mean / 1e5) * 2 ** bits / ((8 * 22) / 48) - 1) < 0.05, text);
      shares.push(mean);
    }
    assert.ok(shares.every((share, i) => i === 0 || share < shares[i - 1] / 3));
    // The last question is asked again, and the keys are those from before.
    assert.match(await all(page), new RegExp(`Built anew: a filter with 16-bit fingerprints.* 22 keys added again\\..*"${asked}" is absent\\. That is certain\\.$`, "s"));
    assert.equal((await page.textContent("#table-text")).split(" Marked")[0], birds.split(" Marked")[0]);
    for (let change = 0; change < 5; change += 1) await page.click("#undo");
    assert.match(await page.textContent("#rate-row"), /of 8 bits/);
  }));

test("a sentence about a key is true in every state", async () => {
  const module = await pageModule();
  const seen = new Set();
  let random = 7;
  const next = (below) => ((random = (Math.imul(random, 1664525) + 1013904223) >>> 0) >>> 8) % below;
  for (const grows of [false, true]) {
    for (let table = 0; table < 40; table += 1) {
      const watched = new Watched(module, { grows });
      const [copies, ever] = [new Map(), new Set()];
      const isIn = (key) => module.wasm.koel_count(watched.filter, module.key(key)) > 0;
      for (let operation = 0; operation < 120; operation += 1) {
        const key = `key ${next(400)}`;
        const wasIn = isIn(key);
        const verb = ["add", "add", "remove", "ask", "ask"][next(5)];
        const had = copies.get(key) ?? 0;
        if (verb === "ask") watched.ask(key);
        else if (watched.operate(key, verb === "add")) copies.set(key, Math.max(had + (verb === "add" ? 1 : -1), 0));
        const text = sentence(watched.steps.at(-1));
        const kind = text.replaceAll(/"key \d+"/g, "KEY").replaceAll(/\d+/g, "N");
        seen.add(kind);
        const told = (words) => text.includes(words);
        if (told("was never added")) assert.ok(!ever.has(key), text);
        if (told("was removed before")) assert.ok(ever.has(key) && had === 0, text);
        if (verb === "ask") {
          assert.equal(text.startsWith("Yes"), wasIn, text);
          // A fingerprint that matches is in a slot, unless there was none for it.
          const { found } = watched.steps.at(-1);
          assert.ok(found.length > 0 ? wasIn : !wasIn || watched.picture.stashed > 0, text);
          assert.equal(told("false positive"), wasIn && had === 0, text);
          assert.equal(told("although it was added"), !wasIn && had > 0, text);
          const isSound = [...copies].every(([name, count]) => count === 0 || isIn(name));
          assert.equal(told("That is certain"), !wasIn && had === 0 && isSound, text);
        } else {
          assert.equal(told("Nothing is removed"), verb === "remove" && !wasIn, text);
          if (verb === "add" && !told("refused")) ever.add(key);
        }
      }
      watched.free();
    }
  }
  assert.ok(seen.size > 12, [...seen].join("\n"));
});

test("Add, Ask and Remove play by themselves, and undo takes a change back", () =>
  onPage(wide, async (page) => {
    await page.click("#anew");
    const before = await picture(page);
    assert.equal(before.length, 12);
    await page.fill("#watched-key", "grace");
    await page.click("#watch-form button >> nth=0");
    await page.waitForFunction(() => /"grace" is in\.$/.test(document.querySelector("#steps").textContent));
    const text = await steps(page);
    assert.match(text, /names buckets \d+ and \d+, and the fingerprint .*has an empty slot: .* goes there\./s);
    assert.ok((await picture(page)).some((bucket) => bucket.includes("grace")));
    assert.match(await page.textContent("#table-text"), /^1 key: 1 fingerprint in 48 slots \(12 buckets of four\)\./);
    await page.click("#undo");
    assert.deepEqual(await picture(page), before);
    assert.ok(await page.isDisabled("#undo"));
  }));

test("the picture is that of the library: asking, copies and removals", () =>
  onPage(still, async (page) => {
    await empty(page);
    const before = await picture(page);
    assert.match(await operate(page, "Remove", "never"), /"never" was never added\. Nothing is removed\.$/);
    assert.match(await operate(page, "Ask", "twice"), /Was twice added\?Its hash names .* Is it there\?\nNo: "twice" is absent\. That is certain\.$/s);
    for (let copy = 0; copy < 3; copy += 1) await operate(page, "Add", "twice");
    assert.match(await steps(page), /counts one more copy, which needs no slot\..*"twice" is in 3 times/s);
    assert.match(await operate(page, "Add", "twice"), /counts 2 more copies, which need no slot\..*is in 4 times/s);
    assert.match(await page.textContent("#table-text"), /^4 keys: 2 fingerprints in 48 slots \(12 buckets of four\) and 2 beside the table\./);
    assert.match(await operate(page, "Ask", "twice"), /Yes, in bucket \d+: "twice" is present\.$/);
    for (let copy = 0; copy < 4; copy += 1) await operate(page, "Remove", "twice");
    assert.match(await steps(page), /is taken out of bucket .*"twice" is removed\.$/s);
    assert.deepEqual(await picture(page), before);
    assert.match(await operate(page, "Remove", "twice"), /"twice" was removed before\. Nothing is removed\.$/);
  }));

/** What a story tells, and its picture at the end. */
async function told(page, name) {
  await page.click(`#stories button:text-is("${name}")`);
  return all(page);
}

test("a story tells why a false positive happens", () =>
  onPage(still, async (page) => {
    const text = await told(page, "Three questions");
    const [, other, key] = text.match(/Yes, in bucket \d+, where "(\w+)" put it\. But "(\w+)" was never added: a false positive\./);
    assert.ok(!text.includes(`"${key}" is in.`));
    // The marked slot is that of the other key.
    assert.match(await operate(page, "Ask", key), new RegExp(`"${other}" put it.*false positive\\.$`));
    assert.match(await page.locator("#table .new").first().textContent(), new RegExp(other.slice(0, 4)));
  }));

test("a key that a wrong removal took is reported absent although it was added", () =>
  onPage(still, async (page) => {
    const text = await told(page, "Wrong removal");
    const [, lost] = text.match(/was never added, but its fingerprint matched\. The fingerprint of "(\w+)" is gone: a key is lost\./);
    assert.match(text, new RegExp(`No: "${lost}" is reported absent although it was added\\. .*\nA filter cannot know`));
    assert.ok(!text.includes("certain"));
    // Neither is another absence certain now, nor is anything else said that is not so.
    assert.match(await operate(page, "Ask", "yeti"), /No: "yeti" is absent\.$/);
    assert.match(await operate(page, "Remove", lost), new RegExp(`Nothing is removed: "${lost}" was added, but a removal took`));
    assert.match(await operate(page, "Add", lost), new RegExp(`"${lost}" was added 2 times, and is in once: a removal took the rest\\.$`));
  }));

test("a story tells what happens when both buckets are full", () =>
  onPage(still, async (page) => {
    const text = await told(page, "Both buckets are full");
    const [, key, home, other] = text.match(/^Add (\w+)Its hash names buckets (\d+) and (\d+),/m);
    const now = await picture(page);
    assert.ok(now[home].includes(key) || now[other].includes(key));
    assert.match(text, /Both buckets are full\. A search finds the shortest way to make room/);
    const [, slot, to] = text.match(/The fingerprint (\w+).* moves from bucket \d+ to bucket (\d+), its other bucket\./);
    assert.ok((await picture(page))[to].includes(slot));
    assert.match(text, /is present\./);
  }));

test("a story tells how a key is refused without a change, and how a table grows", () =>
  onPage(still, async (page) => {
    const text = await told(page, "No room at all");
    assert.match(text, /finds no way to make room\.\n".*" is refused, and nothing has changed: no room was found\./);
    assert.match(text, /Bucket 0 is split: about half of its fingerprints move to the new bucket 12\./);
    assert.ok((await picture(page)).length > 12);
  }));

/** The numbers of the text below the table. */
async function figures(page) {
  const [, ...numbers] = (await page.textContent("#table-text")).match(
    /^(\d+) keys?: (\d+) fingerprints? in (\d+) slots \((\d+) buckets of four\)(?: and (\d+) beside the table)?\./,
  );
  const [keys, used, slots, buckets, beside] = numbers.map((number) => Number(number ?? 0));
  assert.deepEqual([used + beside, 4 * buckets], [keys, slots]);
  return { keys, used, slots };
}

test("Add ten says how many keys were added", () =>
  onPage(still, async (page) => {
    await empty(page);
    let before = 0;
    for (let tens = 0; tens < 8; tens += 1) {
      await page.click("#ten");
      const [, told, refused] = (await steps(page)).match(/(\d+) keys? (?:was|were) added at once\.( "[\w ]+" is refused: no room was found\.)?$/);
      const { keys } = await figures(page);
      assert.deepEqual([Number(told), refused !== undefined], [keys - before, keys - before < 10]);
      before = keys;
    }
    assert.match(await steps(page), /\n0 keys were added at once\. "[\w ]+" is refused/);
  }));

test("Grow when full keeps the keys, and says what it did", () =>
  onPage(still, async (page) => {
    await empty(page);
    for (let tens = 0; tens < 4; tens += 1) await page.click("#ten");
    await operate(page, "Add", "wren");
    assert.equal((await figures(page)).keys, 41);
    await page.check("#grows");
    assert.match(await steps(page), /which grows when full\. 41 keys added again\.$/);
    assert.equal((await figures(page)).keys, 41);
    for (let tens = 0; tens < 3; tens += 1) await page.click("#ten");
    assert.ok((await figures(page)).keys === 71 && (await picture(page)).length > 12);
    await page.uncheck("#grows");
    const [, kept] = (await steps(page)).match(/which keeps its size\. (\d+) keys added again\. No room was found for .+\.$/);
    assert.equal((await figures(page)).keys, Number(kept));
    assert.equal((await picture(page)).length, 12);
    await page.click("#undo");
    assert.ok((await figures(page)).keys === 71 && (await page.isChecked("#grows")));
  }));

test("keys, fingerprints and slots add up at each step of each story", () =>
  onPage(still, async (page) => {
    for (const story of await page.locator("#stories button").all()) {
      await story.click();
      while (await page.isEnabled("#step")) {
        // Between two tables of the filter no number of keys is told.
        const text = await page.textContent("#table-text");
        if (!/^\d+ fingerprints? in \d+ slots/.test(text)) await figures(page);
        await page.click("#step");
      }
      assert.ok((await figures(page)).keys > 0);
    }
  }));

test("no fingerprint is cut off on a phone, also where a table has grown", () =>
  onPage({ ...phone, reducedMotion: "reduce" }, async (page) => {
    for (const bits of [8, 16]) {
      await told(page, "No room at all");
      await page.locator("#bits").fill(`${bits}`);
      await page.click("#ten");
      const slots = await page.evaluate(() =>
        [...document.querySelectorAll("#table span")].map((slot) => {
          const digits = document.createRange();
          digits.setStart(slot, 0);
          digits.setEndBefore(slot.querySelector("small"));
          const [inner, outer] = [digits.getBoundingClientRect(), slot.getBoundingClientRect()];
          return { text: `${digits}`, size: parseFloat(getComputedStyle(slot).fontSize), isWhole: inner.right <= outer.right && inner.left >= outer.left && inner.bottom <= outer.bottom };
        }),
      );
      assert.ok(slots.some(({ text }) => text.length > 3));
      assert.deepEqual(slots.filter(({ size, isWhole }) => !isWhole || size < 12), []);
      await page.screenshot({ path: path(`grown-${bits}.png`) });
    }
  }));

for (const [name, viewport] of Object.entries({
  laptop: { width: 1366, height: 660 },
  window: { width: 1280, height: 720 },
  phone: { width: 390, height: 844 },
})) {
  test(`table, steps and buttons are in sight at once: ${name}`, () =>
    onPage({ viewport, reducedMotion: "reduce" }, async (page) => {
      await told(page, "Both buckets are full");
      for (const part of ["#stories", "#table", "#bits", "#rate-text", "#steps li:last-child", "#play", "#watch-form"]) {
        const { x, y, width, height } = await page.locator(part).boundingBox();
        assert.ok(x >= 0 && y >= 0 && x + width <= viewport.width && y + height <= viewport.height, `${part} ${y + height}`);
      }
      const isAtEnd = ({ scrollTop, scrollHeight, clientHeight }) => scrollTop + clientHeight >= scrollHeight - 1;
      assert.ok(await page.locator("#log").evaluate(isAtEnd));
      await page.screenshot({ path: path(`first-${name}.png`) });
    }));
}

/** The rows of the sizes, as numbers of `koel plan`. */
const planned = (options) =>
  JSON.parse(execFileSync(process.env.KOEL, ["plan", "--json", ...options], { encoding: "utf8" }));

for (const [name, [keys, rate, memory], options, column] of [
  ["memory", ["10M", "0.1%", ""], ["--keys", "10M", "--fpr", "0.1%"], "memory_in_bytes"],
  ["rate", ["2M", "", "4 MiB"], ["--keys", "2M", "--memory", "4MiB"], "fpr"],
  ["keys", ["", "1/1000", "1MB"], ["--fpr", "0.001", "--memory", "1MB"], "keys"],
]) {
  test(`sizes are those of koel plan: ${name}`, () =>
    onPage(wide, async (page) => {
      await page.fill("#size-keys", keys);
      await page.fill("#size-rate", rate);
      await page.fill("#size-memory", memory);
      await page.click("#size button");
      const rows = await page.locator("#size-results .wide tbody tr").all();
      const expected = planned(options);
      assert.equal(rows.length, expected.length);
      for (const [i, row] of rows.entries()) {
        const cells = await row.locator("td").allTextContents();
        assert.equal(cells[0], expected[i].filter);
        assert.equal(cells[1], expected[i].bits_per_key.toFixed(2), cells[0]);
        assert.equal(cells[3] === "yes", expected[i].can_add);
        assert.equal(cells[6] === "yes", expected[i].can_grow);
        if (column === "keys") assert.equal(Number(cells[2].replaceAll(",", "")), expected[i].keys);
      }
      const line = await page.textContent("#size-results li:has-text('Command') code");
      const args = line.split(" ").slice(1);
      assert.deepEqual(args.slice(0, 2), ["build", "INPUT"]);
      writeFileSync(path("sized.txt"), "ada\n");
      args.splice(1, 1, path("sized.txt"));
      args.splice(-1, 1, path("sized.koel"));
      execFileSync(process.env.KOEL, args);
      const file = JSON.parse(execFileSync(process.env.KOEL, ["info", "--json", path("sized.koel")]));
      assert.equal(file.size_in_bytes ?? file.bytes, expected[0].memory_in_bytes);
    }));
}

test("what is no figure is named, and what cannot be built says why", () =>
  onPage(wide, async (page) => {
    const compute = async (...figures) => {
      for (const [i, id] of ["keys", "rate", "memory"].entries()) await page.fill(`#size-${id}`, figures[i]);
      await page.click("#size button");
      return page.textContent("#sized");
    };
    assert.match(await compute("ten", "0.1%", ""), /"ten" is not a figure/);
    assert.match(await compute("10", "2", ""), /"2" is not a figure/);
    assert.match(await compute("10", "", ""), /two of the three/);
    assert.match(await compute("10", "1e-30", ""), /^Not possible: /);
    assert.equal(await page.locator("#size-results > *").count(), 0);
  }));

test("four charts have the figures of the pages, each with a text and its numbers", () =>
  onPage(wide, async (page) => {
    for (const part of ["", " svg[aria-label]", " details table"]) {
      assert.equal(await page.locator(`#figures figure${part}`).count(), 4);
    }
    const text = readFileSync(new URL("../docs/BENCHMARKS.md", import.meta.url), "utf8");
    const [, bits] = text.match(/^\| koel-small \| single \|(?: [^|]* \|){11} ([0-9.]+) \|/m);
    assert.match(await page.textContent("#figures figure >> nth=1"), new RegExp(`Koel${bits}`));
  }));

test("a list becomes a filter, which is saved, opened and asked", () =>
  onPage(wide, async (page) => {
    await page.click(ASK);
    assert.match(await page.textContent("#answers"), /Make a filter or open a file first/);
    await page.click("#build button >> nth=0");
    await page.waitForFunction(() => document.querySelector("#built").textContent);
    assert.match(await page.textContent("#built"), /^3 keys in [0-9,]+ bytes/);

    const [download] = await Promise.all([page.waitForEvent("download"), page.click("#save")]);
    assert.equal(download.suggestedFilename(), "keys.koel");
    await download.saveAs(path("keys.koel"));

    await page.reload();
    await page.setInputFiles("#file", path("keys.koel"));
    await page.waitForFunction(() => /3 keys/.test(document.querySelector("#opened").textContent));
    await page.click(ASK);
    const cells = await page.locator("#answers td").allTextContents();
    assert.deepEqual(cells, [
      "ada@example.org",
      "present, once",
      "alan@example.org",
      "absent for certain",
    ]);

    // Hosts in another form are found, and what could be no key gets no answer.
    const list = "0.0.0.0 ads.example\n0.0.0.0 b\u00fccher.example\n";
    execFileSync(process.env.KOEL, ["build", "--format", "hosts", "-o", path("hosts.koel")], { input: list });
    await page.setInputFiles("#file", path("hosts.koel"));
    await page.waitForFunction(() => /--format hosts/.test(document.querySelector("#opened").textContent));
    await page.fill("#questions", "https://Ads.Example/x\nB\u00dcCHER.example\nwww.ads.example\nexample\ntwo words\n");
    await page.click(ASK);
    const answers = await page.locator("#answers td:nth-child(2)").allTextContents();
    assert.deepEqual(answers.slice(0, 4), ["present, once", "present, once", "a domain above it is present", "absent for certain"]);
    assert.match(answers[4], /^no answer: the keys of this filter are hosts/);

    const damaged = readFileSync(path("keys.koel"));
    damaged[damaged.length - 1] ^= 1;
    writeFileSync(path("damaged.koel"), damaged);
    await page.setInputFiles("#file", path("damaged.koel"));
    await page.waitForFunction(() => /damaged/.test(document.querySelector("#opened").textContent));
    // No answer comes from the filter that was open before.
    assert.equal(await page.textContent("#answers"), "");
    await page.click(ASK);
    assert.match(await page.textContent("#answers"), /Make a filter or open a file first/);
    assert.ok(await page.isHidden("#save"));
  }));

test("a list makes the filter that the command makes of it", () =>
  onPage(wide, async (page) => {
    const latin = Buffer.from("caf\xe9\r\nna\xefve\n\xff\xfe\n", "latin1");
    const lists = {
      "latin.txt": latin,
      "packed.txt.gz": gzipSync(latin),
      "marked.txt": Buffer.from("\ufeffada\n\ufeffgr\u00fcn\n"),
      "wide.txt": Buffer.from("\ufeffada\ngr\u00fcn\n", "utf16le"),
    };
    for (const [name, bytes] of Object.entries(lists)) {
      writeFileSync(path(name), bytes);
      const asked = ["build", path(name), "--keys", bytes === lists["marked.txt"] || name === "wide.txt" ? "2" : "3"];
      execFileSync(process.env.KOEL, [...asked, "--fpr", "0.001", "-o", path("list.koel")]);
      await page.evaluate(() => (document.querySelector("#built").textContent = ""));
      await page.setInputFiles("#list", path(name));
      await page.waitForFunction(() => document.querySelector("#built").textContent);
      const [download] = await Promise.all([page.waitForEvent("download"), page.click("#save")]);
      assert.deepEqual(readFileSync(await download.path()), readFileSync(path("list.koel")), name);
    }
  }));

test("a file that has no lines makes no filter", () =>
  onPage(wide, async (page) => {
    const others = {
      "(\xb5/\xfd\0": "compressed with zstd",
      "\x5e*M\x18\0": "compressed with zstd",
      "\xfd7zXZ\0\0": "compressed with xz",
      "BZh91AY&SY": "compressed with bzip2",
      "\x04\"M\x18": "compressed with lz4",
      "\x1f\x9d\x90": "compressed with compress",
      "LZIP\x01": "compressed with lzip",
      "PK\x03\x04\n": "a zip archive",
      "7z\xbc\xaf\x27\x1c": "a 7z archive",
      "koel\r\n\x1a\n\x01": "a filter; open it below",
    };
    for (const [i, [bytes, what]] of Object.entries(others).entries()) {
      const name = `other${i}`;
      writeFileSync(path(name), Buffer.from(bytes, "latin1"));
      await page.evaluate(() => (document.querySelector("#built").textContent = ""));
      await page.setInputFiles("#list", path(name));
      await page.waitForFunction(() => document.querySelector("#built").textContent);
      const said = await page.textContent("#built");
      assert.ok(said.startsWith(`Not possible: ${name} is ${what}`), said);
      assert.ok(await page.isHidden("#save"));
    }
  }));

test("a list of hosts is noticed, and no host is absent for certain from its lines", () =>
  onPage(wide, async (page) => {
    const said = async (list, question) => {
      await page.fill("#keys", list);
      await page.evaluate(() => (document.querySelector("#built").textContent = ""));
      await page.click("#build button >> nth=0");
      await page.waitForFunction(() => document.querySelector("#built").textContent);
      await page.fill("#questions", question);
      await page.click(ASK);
      return [await page.textContent("#built"), await page.textContent("#answers td:nth-child(2)")];
    };
    const hosts = `${"# head\n".repeat(2000)}0.0.0.0 ads.example\r\n0.0.0.0 b.example\r\n`;
    const [hint, answer] = await said(hosts, "ads.example");
    assert.match(hint, /looks like a hosts file, .*"koel build --format hosts" reads the hosts\.$/);
    assert.equal(answer, "no such line");
    const [rules, none] = await said("||ads.example^\n||b.example^", "ads.example");
    assert.match(rules, /looks like ad-block rules, .*--format adblock/);
    assert.equal(none, "no such line");
    const [plain, sure] = await said("ads.example\nb.example", "c.example");
    assert.doesNotMatch(plain, /looks like/);
    assert.equal(sure, "absent for certain");
  }));

test("questions that were not asked are no answers", () =>
  onPage(wide, async (page) => {
    await page.click("#build button >> nth=0");
    await page.waitForFunction(() => document.querySelector("#built").textContent);
    await page.fill("#questions", Array.from({ length: 1001 }, (_, i) => `key ${i}`).join("\n"));
    await page.click(ASK);
    assert.match(await page.textContent("#answers"), /Only the first 1,000 of 1,001 keys were asked\./);
  }));

test("what is typed after a file was chosen counts, and an empty list is said", () =>
  onPage(wide, async (page) => {
    writeFileSync(path("chosen.txt"), "a\nb\nc\nd\n");
    await page.setInputFiles("#list", path("chosen.txt"));
    await page.waitForFunction(() => /^4 keys/.test(document.querySelector("#built").textContent));
    await page.fill("#keys", "one\ntwo");
    await page.click("#build button >> nth=0");
    await page.waitForFunction(() => /^2 keys/.test(document.querySelector("#built").textContent));
    await page.fill("#keys", "");
    await page.click("#build button >> nth=0");
    await page.waitForFunction(() => /^0 keys/.test(document.querySelector("#built").textContent));
    assert.match(await page.textContent("#built"), /an empty filter, in which no key is present\.$/);
  }));

test("a file of lines is used instead of the text", () =>
  onPage(wide, async (page) => {
    const lines = Array.from({ length: 10_000 }, (_, i) => `key ${i}\r\n`).join("");
    writeFileSync(path("list.txt"), lines);
    await page.setInputFiles("#list", path("list.txt"));
    await page.click("#build button >> nth=0");
    await page.waitForFunction(() => /^10,000 keys/.test(document.querySelector("#built").textContent));
    await page.fill("#questions", "key 9999\nkey 7");
    await page.click(ASK);
    const answers = await page.locator("#answers td:nth-child(2)").allTextContents();
    assert.ok(answers.every((answer) => answer.startsWith("present")));
  }));

test("a file that is dropped is used as if it was chosen", () =>
  onPage(wide, async (page) => {
    const drop = async (form, name, bytes) => {
      const files = await page.evaluateHandle(
        ([name, bytes]) => {
          const dropped = new DataTransfer();
          dropped.items.add(new File([new Uint8Array(bytes)], name));
          return dropped;
        },
        [name, [...bytes]],
      );
      await page.dispatchEvent(form, "dragover", { dataTransfer: files });
      assert.equal(await page.getAttribute(form, "class"), "over");
      await page.dispatchEvent(form, "drop", { dataTransfer: files });
      assert.equal(await page.getAttribute(form, "class"), "");
    };
    await drop("#build", "list.txt", Buffer.from("ada\ngrace\n"));
    await page.waitForFunction(() => /^2 keys/.test(document.querySelector("#built").textContent));
    writeFileSync(path("dropped.txt"), "mary\n");
    execFileSync(process.env.KOEL, ["build", path("dropped.txt"), "-o", path("dropped.koel")]);
    await drop("#ask", "dropped.koel", readFileSync(path("dropped.koel")));
    await page.waitForFunction(() => /^1 key /.test(document.querySelector("#opened").textContent));
    await page.fill("#questions", "mary\nada");
    await page.click(ASK);
    const answers = await page.locator("#answers td:nth-child(2)").allTextContents();
    assert.deepEqual(answers, ["present, once", "absent for certain"]);
  }));

/** A server of static files with ranges, which other sites may read. Tells what it has sent. */
async function serve(files) {
  const sent = { requests: 0, bytes: 0 };
  const server = createServer(({ url, headers, method }, response) => {
    response.setHeader("access-control-allow-origin", "*");
    response.setHeader("access-control-allow-headers", "range");
    response.setHeader("access-control-allow-private-network", "true");
    response.setHeader("access-control-expose-headers", "content-range, etag");
    if (method === "OPTIONS") return response.writeHead(204).end();
    const [file, [first, last]] = [files[url], headers.range.match(/\d+/g).map(Number)];
    const body = file.subarray(first, last + 1);
    sent.requests += 1;
    sent.bytes += body.length;
    return response.writeHead(206, { etag: `"${url}"`, "content-range": `bytes ${first}-${first + body.length - 1}/${file.length}` }).end(body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, sent, at: `http://127.0.0.1:${server.address().port}` };
}

test("a filter on a server is asked where it lies, and the page says what that took", async () => {
  const names = Array.from({ length: 200_000 }, (_, i) => `host${i}.example.org\n`).join("");
  writeFileSync(path("far.txt"), names);
  const build = (options, name) => {
    execFileSync(process.env.KOEL, ["build", ...options, path("far.txt"), "-o", path(name), "--force"]);
    return readFileSync(path(name));
  };
  const { server, sent, at } = await serve({ "/far.koel": build([], "far.koel"), "/hosts.koel": build(["--format", "hosts"], "hosts.koel"), "/none": Buffer.alloc(500) });
  await onPage({ ...wide, elsewhere: at }, async (page) => {
    const open = async (name, key) => {
      await page.fill("#address", `${at}/${name}`);
      await (key ? page.press("#address", key) : page.click("#far"));
      await page.waitForFunction(() => !/Opening it/.test(document.querySelector("#opened").textContent));
      return page.textContent("#opened");
    };
    const ask = async (...keys) => {
      await page.fill("#questions", keys.join("\n"));
      await page.click(ASK);
      await page.waitForSelector("#answers td");
      return page.locator("#answers td:nth-child(2)").allTextContents();
    };
    assert.match(await open("far.koel"), /^200,000 keys in 310,\d+ bytes; one absent key in 1,\d+ is reported/);
    assert.ok(await page.isHidden("#save"));
    assert.deepEqual(await ask("host7.example.org", "nobody.example"), ["present", "absent for certain"]);
    const figure = (number) => number.toLocaleString("en");
    const told = `Read so far: ${figure(sent.bytes)} of its 310,`;
    const text = await page.textContent("#answers");
    assert.ok(text.includes(told) && text.includes(`bytes, in ${sent.requests} requests.`), `${told}: ${text}`);
    assert.ok(sent.bytes < 40_000 && sent.requests <= 5);
    assert.deepEqual(await findings(page), []);
    assert.match(await open("hosts.koel", "Enter"), /Keys were made of lines with --format hosts\./);
    assert.deepEqual(await ask("https://www.host7.example.org/x", "Host8.Example.Org", "nobody.example", "no host"), [
      "a domain above it is present",
      "present",
      "absent for certain",
      'no answer: the keys of this filter are hosts, and "no host" has none',
    ]);
    assert.match(await open("none"), /^Not possible: .*not a Koel filter/);
    await page.click(ASK);
    assert.match(await page.textContent("#answers"), /Make a filter or open a file first/);
  });
  server.close();
});

test("a line is copied, or selected where the browser does not let the page copy", () =>
  onPage({ ...wide, permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
    const line = "#size-results li:has-text('Rust')";
    const code = await page.textContent(`${line} code`);
    await page.click(`${line} button`);
    await page.waitForSelector(`${line} button:text('Copied')`);
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), code);
    await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
    await page.click(`${line} button`);
    await page.waitForSelector(`${line} button:text('Selected')`);
    assert.equal(await page.evaluate(() => String(getSelection())), code);
  }));

test("the page works from a host, which it asks for nothing but itself", async () => {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.setHeader("content-type", "text/html").end(readFileSync(path("index.html")));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const work = async (page) => {
    await page.click("#build button >> nth=0");
    await page.waitForFunction(() => /^3 keys/.test(document.querySelector("#built").textContent));
  };
  await onPage(wide, work, `http://127.0.0.1:${server.address().port}/koel`);
  server.close();
  assert.deepEqual(asked, ["/koel"]);
});

for (const [name, options] of Object.entries({
  light: { ...wide, colorScheme: "light" },
  dark: { ...wide, colorScheme: "dark", reducedMotion: "reduce" },
  phone: { ...phone, colorScheme: "light" },
})) {
  test(`axe finds nothing, and nothing is cut off: ${name}`, () =>
    onPage(options, async (page) => {
      await page.click("#build button >> nth=0");
      await page.waitForFunction(() => document.querySelector("#built").textContent);
      await page.click(ASK);
      await page.click("#stories button >> nth=3");
      while (!/ moves from /.test(await steps(page))) await page.click("#step");
      await page.click("#play");
      await page.screenshot({ path: path(`${name}.png`), fullPage: true });
      assert.deepEqual(await findings(page), []);
      const beyond = () => document.documentElement.scrollWidth - window.innerWidth;
      assert.ok((await page.evaluate(beyond)) <= 0);
    }));
}

test("the page works with the keyboard alone", () =>
  onPage(wide, async (page) => {
    await page.focus("#watched-key");
    await page.keyboard.press("Enter");
    await page.focus("#step");
    for (let step = 0; step < 10 && (await page.isEnabled("#step")); step += 1) {
      await page.keyboard.press("Space");
    }
    assert.match(await steps(page), /"\w+" is in\.$/);
    await page.focus("#rate");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("#built").textContent);
    await page.focus("#questions");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    assert.equal(await page.locator("#answers tbody tr").count(), 2);
  }));
