// The page as users open it, in Chromium: from file://, with a run of each part, no error in the
// console, no request, and no finding of axe. Screenshots go to target/web.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import axe from "axe-core";
import { chromium } from "playwright-core";

const folder = new URL("../target/web/", import.meta.url);
const path = (name) => fileURLToPath(new URL(name, folder));
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const wide = { viewport: { width: 1100, height: 900 } };
const phone = { viewport: { width: 360, height: 740 } };

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
});
after(() => browser.close());

/** Runs `work` on the page, which must log nothing and request nothing but itself. */
async function onPage(options, work) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    if (!/^(file|blob):/.test(request.url())) complaints.push(request.url());
  });
  await page.goto(new URL("index.html", folder).href);
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

test("a list becomes a filter, which is saved, opened and asked", () =>
  onPage(wide, async (page) => {
    await page.click("#ask button");
    assert.match(await page.textContent("#answers"), /Make a filter or open a file first/);
    await page.click("#build > button >> nth=0");
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
    await page.click("#build > button >> nth=0");
    await page.waitForFunction(() => /^10,000 keys/.test(document.querySelector("#built").textContent));
    await page.fill("#questions", "key 9999\nkey 7");
    await page.click("#ask button");
    const answers = await page.locator("#answers td:nth-child(2)").allTextContents();
    assert.ok(answers.every((answer) => answer.startsWith("present")));
  }));

test("the measured figures keep the library's promises, and are drawn", () =>
  onPage(wide, async (page) => {
    await page.selectOption("#capacity", "2000");
    await page.click("#run button");
    await page.waitForSelector("#charts figure");
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
      await page.click("#build > button >> nth=0");
      await page.waitForFunction(() => document.querySelector("#built").textContent);
      await page.click("#ask button");
      await page.selectOption("#capacity", "2000");
      await page.click("#run button");
      await page.waitForSelector("#charts figure");
      await page.screenshot({ path: path(`${name}.png`), fullPage: true });
      assert.deepEqual(await findings(page), []);
      const beyond = () => document.documentElement.scrollWidth - window.innerWidth;
      assert.ok((await page.evaluate(beyond)) <= 0);
    }));
}

test("the page works with the keyboard alone", () =>
  onPage(wide, async (page) => {
    await page.focus("#rate");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("#built").textContent);
    await page.focus("#questions");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    assert.equal(await page.locator("#answers tbody tr").count(), 2);
  }));
