// Filters that the command built from lines are asked as the command asks them.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CuckooFilter } from "koel-filter";

const folder = mkdtempSync(join(tmpdir(), "koel-"));
const koel = (words, input) => execFileSync(process.env.KOEL, words, { cwd: folder, input, stdio: ["pipe", "pipe", "ignore"] });

/** The bytes of the filter that the command builds of these lines. */
function built(lines, ...options) {
  koel(["build", ...options, "-o", "list"], lines);
  return readFileSync(join(folder, "list"));
}

const code = (error) => error.code;
const lines = (run) => assert.throws(run, (error) => code(error) === "lines");

test("what is no host and no text is an error in every form", () => {
  const blocked = CuckooFilter.fromBytes(built("ads.example\n", "--format", "hosts"));
  for (const ask of [() => blocked.add(""), () => blocked.hasMany(["two words"]), () => blocked.hasUrl("data:x")]) lines(ask);
  for (const key of [1, 1n]) {
    for (const ask of [() => blocked.has(key), () => blocked.hasMany([key]), () => blocked.refuteMany([key]), () => blocked.update(new Set([key]))]) {
      assert.throws(ask, { name: "TypeError", message: /made of lines/ });
    }
  }
  assert.throws(() => blocked.hasMany(new BigUint64Array(2)), /made of lines/);
  assert.throws(() => blocked.hasUrl(new URL("http://x/")), TypeError);
});

test("a filter of plain lines is asked for a URL as it is, too", () => {
  const names = CuckooFilter.fromBytes(built("data:x\n"));
  assert.deepEqual([names.hasUrl("data:x"), names.has(7)], [true, false]);
  lines(() => names.hasUrl("data:y"));
});

// The parser of URLs is JavaScript's here and the crate `url` in the command.
test("the URLs of the standard have the hosts that the command finds", () => {
  const cases = JSON.parse(readFileSync(new URL("url-hosts.json", import.meta.url), "utf8"));
  // None with the NUL between them. The crate takes no host before a drive letter.
  const isAlike = (url) => !url.includes("\0") && url.isWellFormed() && !/^file:.*\/C:\/$/.test(url);
  const urls = [...new Set(cases.map(([url]) => url))].filter(isAlike);
  const hosts = cases.map(([, host]) => host).filter((host, i) => host && i % 3 !== 0);
  const bytes = built(hosts.map((host) => `http://${host}\n`).join(""), "--format", "hosts", "--fpr", "1e-7");
  const filter = CuckooFilter.fromBytes(bytes);
  writeFileSync(join(folder, "urls"), urls.join("\0"));
  const of = (...options) => {
    const out = koel(["check", "--url", "-0", ...options, "list", "urls"]).toString();
    return out.split("\0").slice(0, -1);
  };
  const answers = { true: [], false: [], lines: [] };
  for (const url of urls) {
    try {
      answers[filter.hasUrl(url)].push(url);
    } catch (error) {
      answers[code(error)].push(url);
    }
  }
  assert.deepEqual(answers.true, of());
  assert.deepEqual(answers.false, of("-v"));
  assert.ok(answers.true.length > 100 && answers.false.length > 10 && answers.lines.length > 100);
});
