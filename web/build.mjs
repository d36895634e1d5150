// Makes target/web/index.html: the page as one file, which works from any static host and from
// file://. Reads the npm package that scripts/wasm makes.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const here = (path) => new URL(path, import.meta.url);
const read = (path) => readFileSync(here(path), "utf8");

// In the order in which they import each other.
const modules = ["../crates/koel-wasm/npm/filter.js", "format.js", "chart.js", "use.js", "measure.js", "page.js"];

/** A module as a part of one script: without imports and exports. */
function part(path) {
  const text = read(path).replace(/^import .*;\n/gm, "").replace(/^export /gm, "");
  if (/^(import|export)\b/m.test(text)) throw new Error(`${path}: write an import on one line`);
  return text;
}

const wasm = readFileSync(here("../target/npm/koel-filter/koel.wasm")).toString("base64");
const script = `"use strict";\n{\nconst WASM = "${wasm}";\n${modules.map(part).join("\n")}}\n`;
if (script.includes("</script")) throw new Error("a module ends the script");

// A function, because a string would have meanings for "$".
const page = read("index.html")
  .replace("/*STYLE*/", () => `\n${read("style.css")}`)
  .replace("/*SCRIPT*/", () => `\n${script}`);
mkdirSync(here("../target/web"), { recursive: true });
writeFileSync(here("../target/web/index.html"), page);
console.log(`web: target/web/index.html has ${page.length} bytes`);
