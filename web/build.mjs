// Makes target/web/index.html: the page as one file, which works from any static host and from
// file://. Reads the module that `scripts/wasm page` makes, and the figures of docs/.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { figures } from "./figures.mjs";
import { made } from "./made.mjs";

const here = (path) => new URL(path, import.meta.url);
const read = (path) => readFileSync(here(path), "utf8");

// In the order in which they import each other.
const modules = [
  "../crates/koel-wasm/npm/keys.js",
  "../crates/koel-wasm/npm/batches.js",
  "../crates/koel-wasm/npm/options.js",
  "../crates/koel-wasm/npm/module.js",
  "../crates/koel-wasm/npm/handle.js",
  "../crates/koel-wasm/npm/ranges.js",
  "../crates/koel-wasm/npm/remote-filter.js",
  "../crates/koel-wasm/npm/ask.js",
  "../crates/koel-wasm/npm/filter.js",
  "../crates/koel-wasm/npm/instance.js",
  "format.js",
  "chart.js",
  "figures.js",
  "lines.js",
  "use.js",
  "wasm.js",
  "names.js",
  "difference.js",
  "watched.js",
  "words.js",
  "drawing.js",
  "story.js",
  "watch.js",
  "size.js",
  "page.js",
];

const nameOf = (path) => path.split("/").pop();

/** A module as a part of one script: a function that returns what the module exports. */
function part(path) {
  const exported = [];
  const text = read(path)
    .replace(/^import (\{.*\}) from ".*\/(.*)";$/gm, (_, names, from) => `const ${names} = modules["${from}"];`)
    .replace(/^export (function\*?|const|class) (\w+)/gm, (_, kind, name) => {
      exported.push(name);
      return `${kind} ${name}`;
    });
  if (/^(import|export)\b/m.test(text)) throw new Error(`${path}: an import or export that is unknown here`);
  return `modules["${nameOf(path)}"] = (() => {\n${text}return { ${exported.join(", ")} };\n})();\n`;
}

const wasm = readFileSync(made("npm/page.wasm")).toString("base64");
const constant = (name, value) => `const ${name} = ${JSON.stringify(value)};\n`;
const constants = constant("WASM", wasm) + constant("FIGURES", figures());
const script = `"use strict";\n{\n${constants}const modules = {};\n${modules.map(part).join("")}}\n`;
if (script.includes("</script")) throw new Error("a module ends the script");

// A function, because a string would have meanings for "$".
const page = read("index.html")
  .replace("/*STYLE*/", () => `\n${read("style.css")}`)
  .replace("/*SCRIPT*/", () => `\n${script}`);
mkdirSync(made("web"), { recursive: true });
writeFileSync(made("web/index.html"), page);
console.log(`web: ${fileURLToPath(made("web/index.html"))} has ${page.length} bytes`);
