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
import { pictureOf } from "./difference.js";
import { made } from "./made.mjs";
import { Module } from "./wasm.js";
import { Watched } from "./watched.js";

const folder = made("web/");
const path = (name) => fileURLToPath(new URL(name, folder));
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
// A limit for what hangs, which no busy machine reaches.
const timeout = 120_000;
const wide = { viewport: { width: 1100, height: 900 } };
const phone = { viewport: { width: 390, height: 844 } };

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath, timeout, args: ["--no-sandbox"] });
});
after(() => browser.close());

/** Runs `work` on a page, which must log nothing and request nothing but itself. */
async function onPage(options, work, url = new URL("index.html", folder).href) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(timeout);
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    if (request.url() !== url && !request.url().startsWith("blob:")) complaints.push(request.url());
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

/** Does it with a key, and returns the steps, which are all made at once without motion. */
async function operate(page, button, key) {
  if (key !== undefined) await page.fill("#watched-key", key);
  await page.click(`#watch-form button:text-is("${button}")`);
  return steps(page);
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

test("the steps of random operations lead from each table to the next", async () => {
  const { instance } = await WebAssembly.instantiate(readFileSync(made("npm/page.wasm")));
  for (const grows of [false, true]) {
    const kinds = {};
    let random = 1;
    for (let table = 0; table < 10; table += 1) {
      const watched = new Watched(new Module(instance.exports), grows);
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
    assert.match(await steps(page), /"\w+" is present\..*"\w+" is absent\. That is certain\..*"(\w+)" is removed\..*"\1" is absent/s);
    await page.click("#play");
    assert.match(await steps(page), /^A filter remembers keys/);
  }));

test("Add, Ask and Remove play by themselves, and undo takes a change back", () =>
  onPage(wide, async (page) => {
    await page.click("#anew");
    const before = await picture(page);
    assert.equal(before.length, 12);
    await page.fill("#watched-key", "grace");
    await page.click("#watch-form button >> nth=0");
    await page.waitForFunction(() => /"grace" is in\.$/.test(document.querySelector("#steps").textContent));
    const text = await steps(page);
    assert.match(text, /names two buckets, \d+ and \d+, and a fingerprint, .*has an empty slot: .* goes there\./s);
    assert.ok((await picture(page)).some((bucket) => bucket.includes("grace")));
    assert.match(await page.textContent("#table-text"), /1 of 48 in use\. Keys: 1\./);
    await page.click("#undo");
    assert.deepEqual(await picture(page), before);
    assert.ok(await page.isDisabled("#undo"));
  }));

test("the picture is that of the library: asking, copies and removals", () =>
  onPage(still, async (page) => {
    await empty(page);
    const before = await picture(page);
    assert.match(await operate(page, "Remove", "never"), /"never" was never added\. Nothing is removed\.$/);
    assert.match(await operate(page, "Ask", "twice"), /No slot of these buckets has .*absent\. That is certain\.$/s);
    for (let copy = 0; copy < 3; copy += 1) await operate(page, "Add", "twice");
    assert.match(await steps(page), /counts one more copy, which needs no slot\..*"twice" is in 3 times/s);
    assert.match(await operate(page, "Add", "twice"), /counts 2 more copies, which need no slot\..*is in 4 times/s);
    assert.match(await page.textContent("#table-text"), /2 of 48 in use/);
    assert.match(await operate(page, "Ask", "twice"), /A slot of bucket \d+ has .*"twice" is present\.$/s);
    for (let copy = 0; copy < 4; copy += 1) await operate(page, "Remove", "twice");
    assert.match(await steps(page), /is taken out of bucket .*"twice" is removed\.$/s);
    assert.deepEqual(await picture(page), before);
  }));

/** What a story tells, and its picture at the end. */
async function told(page, name) {
  await page.click(`#stories button:text-is("${name}")`);
  return steps(page);
}

test("a story tells why a false positive happens", () =>
  onPage(still, async (page) => {
    const text = await told(page, "A false positive");
    const [, key, other] = text.match(
      /"(\w+)" is reported as present, but was never added\. That is a false positive: "(\w+)" has the same fingerprint/,
    );
    assert.ok(!text.includes(`"${key}" is in.`));
    // The marked slot is that of the other key.
    assert.match(await operate(page, "Ask", key), new RegExp(`false positive: "${other}"`));
    assert.match(await page.locator("#table .new").first().textContent(), new RegExp(other.slice(0, 4)));
  }));

test("a story tells why the removal of an absent key is wrong", () =>
  onPage(still, async (page) => {
    const text = await told(page, "A wrong removal");
    const [, lost] = text.match(/was never added, but its fingerprint matched\. The fingerprint of "(\w+)" was removed: a key is lost\./);
    assert.match(text, new RegExp(`"${lost}" is absent\\. That is certain\\.\nA filter cannot know`));
  }));

test("a story tells what happens when both buckets are full", () =>
  onPage(still, async (page) => {
    const text = await told(page, "Both buckets are full");
    const [, key, home, other] = text.match(/^Add (\w+)The hash of .* names two buckets, (\d+) and (\d+),/m);
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
    assert.match(text, /finds no way to make room\.\n".*" is refused, and nothing has changed: the table is full/);
    assert.match(text, /Bucket 0 is split: about half of its entries move to the new bucket 12\./);
    assert.ok((await picture(page)).length > 12);
    // By hand: ten keys at a time.
    await page.click("#anew");
    assert.equal((await picture(page)).length, 12);
    for (let tens = 0; tens < 6; tens += 1) await page.click("#ten");
    assert.ok((await picture(page)).length > 12);
    await page.uncheck("#grows");
    assert.match(await page.textContent("#table-text"), /0 of 48 in use/);
  }));

for (const [name, viewport] of Object.entries({
  laptop: { width: 1366, height: 660 },
  window: { width: 1280, height: 720 },
  phone: { width: 390, height: 844 },
})) {
  test(`table, steps and buttons are in sight at once: ${name}`, () =>
    onPage({ viewport, reducedMotion: "reduce" }, async (page) => {
      await told(page, "Both buckets are full");
      for (const part of ["#stories", "#table", "#steps li:last-child", "#play", "#watch-form"]) {
        const { x, y, width, height } = await page.locator(part).boundingBox();
        assert.ok(x >= 0 && y >= 0 && x + width <= viewport.width && y + height <= viewport.height, `${part} ${y + height}`);
      }
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
    await page.click("#ask button");
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
    await page.click("#ask button");
    const cells = await page.locator("#answers td").allTextContents();
    assert.deepEqual(cells, [
      "ada@example.org",
      "present, once",
      "alan@example.org",
      "absent for certain",
    ]);

    const damaged = readFileSync(path("keys.koel"));
    damaged[damaged.length - 1] ^= 1;
    writeFileSync(path("damaged.koel"), damaged);
    await page.setInputFiles("#file", path("damaged.koel"));
    await page.waitForFunction(() => /damaged/.test(document.querySelector("#opened").textContent));
    // No answer comes from the filter that was open before.
    assert.equal(await page.textContent("#answers"), "");
    await page.click("#ask button");
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
    writeFileSync(path("list.zst"), Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0]));
    await page.setInputFiles("#list", path("list.zst"));
    await page.waitForFunction(() => /zstd/.test(document.querySelector("#built").textContent));
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
    await page.click("#ask button");
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
    await page.click("#ask button");
    const answers = await page.locator("#answers td:nth-child(2)").allTextContents();
    assert.deepEqual(answers, ["present, once", "absent for certain"]);
  }));

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
      await page.click("#ask button");
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
