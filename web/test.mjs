// The page as users open it, in Chromium: from file://, with a run of each part, no error in the
// console, no request, and no finding of axe. Screenshots go to target/web.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import axe from "axe-core";
import { chromium } from "playwright-core";
import { made } from "./made.mjs";

const folder = made("web/");
const path = (name) => fileURLToPath(new URL(name, folder));
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
// A limit for what hangs, which no busy machine reaches.
const timeout = 120_000;
const wide = { viewport: { width: 1100, height: 900 } };
const phone = { viewport: { width: 360, height: 740 } };

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

/** Makes all steps of the last operation, and returns them. */
async function played(page) {
  while (await page.isEnabled("#step")) await page.click("#step");
  return steps(page);
}

test("steps lead from the key to its slot, and undo takes them back", () =>
  onPage(wide, async (page) => {
    const empty = await picture(page);
    await page.click("#watch-form button >> nth=0");
    assert.match(await steps(page), /^"key 1" has the hash [0-9a-f]{16}\.$/);
    assert.deepEqual(await picture(page), empty);
    assert.match(await played(page), /two buckets: .*fingerprint is .*goes to an empty slot.*is in\.$/s);
    assert.notDeepEqual(await picture(page), empty);
    assert.match(await page.textContent("#table-text"), /1 of 192 slots/);

    await page.fill("#watched-key", "never added");
    await page.click("#watched-remove");
    assert.match(await played(page), /Nothing is removed\.$/);
    await page.click("#undo");
    await page.click("#undo");
    assert.deepEqual(await picture(page), empty);
    assert.ok(await page.isDisabled("#undo"));
  }));

test("a full table moves entries, and refuses a key without a change", () =>
  onPage(wide, async (page) => {
    await page.click("#until-move");
    const before = await picture(page);
    const moved = await played(page);
    const [, slot, from, to] = moved.match(/^(\w+) moves from bucket (\d+) to bucket (\d+)/m);
    const now = await picture(page);
    assert.ok(before[from].includes(slot) && now[to].includes(slot));

    await page.click("#until-full");
    const full = await picture(page);
    assert.match(await played(page), /finds no way to make room\..*is refused, and no byte has changed/s);
    assert.deepEqual(await picture(page), full);
  }));

test("copies get two slots and a counter, and are removed as often", () =>
  onPage(wide, async (page) => {
    const empty = await picture(page);
    for (let copy = 0; copy < 4; copy += 1) {
      await page.fill("#watched-key", "twice");
      await page.click("#watch-form button >> nth=0");
    }
    assert.match(await played(page), /counter beside the table counts 2 copies.*is in 4 times/s);
    assert.match(await page.textContent("#table-text"), /2 of 192 slots/);
    for (let copy = 0; copy < 4; copy += 1) {
      await page.fill("#watched-key", "twice");
      await page.click("#watched-remove");
    }
    assert.match(await played(page), /is taken out.*One copy of "twice" is removed\.$/s);
    assert.deepEqual(await picture(page), empty);
  }));

test("the trap: removing a key that was never added loses another one", () =>
  onPage(wide, async (page) => {
    await page.click("#trap");
    assert.match(await steps(page), /Add some more keys/);
    for (let tens = 0; tens < 6; tens += 1) await page.click("#ten");
    await page.click("#trap");
    await page.click("#watched-remove");
    assert.match(await played(page), /"stranger \d+" was never added\..*A key was lost: "key \d+" is not found any more\.$/s);
    await page.click("#undo");
    assert.match(await page.textContent("#table-text"), /Keys: 60\./);
  }));

test("a table that grows splits one bucket after the other", () =>
  onPage({ ...wide, reducedMotion: "reduce" }, async (page) => {
    await page.check("#grows");
    const before = (await picture(page)).length;
    await page.click("#until-full");
    // Without motion, all steps are made at once.
    await page.click("#play");
    const [, bucket, into] = (await steps(page)).match(/Bucket (\d+) is split: .* bucket (\d+)\./);
    assert.deepEqual([Number(bucket), Number(into)], [0, before]);
    assert.equal((await picture(page)).length, before + 1);
    await page.click("#until-full");
    assert.match(await played(page), /Bucket 1 is split/);
  }));

test("a real list and own keys can be watched, and play plays", () =>
  onPage(wide, async (page) => {
    await page.selectOption("#source", "list");
    assert.match(await page.inputValue("#watched-key"), /\./);
    await page.click("#ten");
    await page.selectOption("#source", "own");
    await page.fill("#own-keys", "first\nsecond");
    assert.equal(await page.inputValue("#watched-key"), "first");
    await page.selectOption("#speed", "4");
    await page.click("#watch-form button >> nth=0");
    await page.click("#play");
    await page.waitForFunction(() => /"first" is in\./.test(document.querySelector("#steps").textContent));
    assert.equal(await page.inputValue("#watched-key"), "second");
  }));

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

test("the figures of the pages are charts, each with a text and its numbers", () =>
  onPage(wide, async (page) => {
    const count = await page.locator("#figures figure").count();
    assert.ok(count >= 14);
    const parts = ["Filters", "The log store", "The ordered store", "Valkey and Redis"];
    assert.deepEqual(await page.locator("#figures h3").allTextContents(), parts);
    assert.equal(await page.locator("#figures figure svg[aria-label]").count(), count);
    assert.equal(await page.locator("#figures figure details table").count(), count);
    const text = readFileSync(new URL("../docs/STORES.md", import.meta.url), "utf8");
    const shown = await page.textContent("#figures");
    const [, us] = text.match(/^\| koel \| ([0-9.]+) \|/m);
    assert.match(shown, new RegExp(`koel${us}`));
    // Of a row of YCSB, the second column of operations a second.
    const [, first, second] = text.match(/^\| A \| ([0-9.]+) \| [0-9.]+ \| ([0-9.]+) \|/m);
    assert.match(shown, new RegExp(`koel ${first}koel-ordered ${second}`));
    // A point of the chart of runs.
    const [, runs] = text.match(/^\| fjall \| 16 \| [0-9.]+ \| ([0-9.]+) \|/m);
    const row = page.locator("#figures figure:has-text('unmerged runs') tbody tr:has(td:text-is('16')) td");
    assert.equal((await row.allTextContents()).pop().replaceAll(",", ""), runs);
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
    await page.waitForFunction(() => /^1 keys/.test(document.querySelector("#opened").textContent));
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

/** Measures a small filter, and waits for the end. */
async function measured(page) {
  await page.selectOption("#capacity", "2000");
  await page.click("#run button");
  await page.waitForFunction(() => /^The first key/.test(document.querySelector("#measured").textContent));
}

test("a measurement is drawn while it runs, and can be stopped", () =>
  onPage(wide, async (page) => {
    await page.selectOption("#capacity", "200000");
    // Presses the button when the third point is drawn.
    await page.evaluate(() => {
      const charts = document.querySelector("#charts");
      const isThird = () => charts.querySelector("tbody").children.length === 3;
      const press = () => document.querySelector("#measure-button").click();
      new MutationObserver(() => isThird() && press()).observe(charts, { childList: true });
    });
    await page.click("#run button:text('Measure')");
    await page.waitForFunction(() => document.querySelector("#measured").textContent === "Stopped.");
    await page.waitForSelector("#run button:text('Measure')");
    assert.equal(await page.locator("#charts figure >> nth=0 >> tbody tr").count(), 3);
  }));

test("the measured figures keep the library's promises, and are drawn", () =>
  onPage(wide, async (page) => {
    await measured(page);
    assert.equal(await page.locator("#charts figure svg[aria-label]").count(), 3);
    const text = await page.textContent("#measured");
    const [, load, full, wrong] = text.match(/at ([\d.]+) %.* and ([\d.]+) %.*capacity, ([\d.]+) %/);
    assert.ok(Number(load) > 80 && Number(full) >= 100, text);
    // Of 50,000 absent keys: five standard deviations above 1 %.
    assert.ok(Number(wrong) < 1.23, text);
    assert.ok((await page.locator("#charts figure >> nth=1 >> tbody tr").count()) > 30);
  }));

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
      await measured(page);
      await page.click("#until-move");
      while (!/ moves from /.test(await steps(page))) await page.click("#step");
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
    assert.match(await steps(page), /"key 1" is in\.$/);
    await page.focus("#rate");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("#built").textContent);
    await page.focus("#questions");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    assert.equal(await page.locator("#answers tbody tr").count(), 2);
  }));
