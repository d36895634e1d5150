// Size it: keys, false-positive rate and memory, of which two give the third, as `koel plan` does.
// The numbers are the library's (crates/koel-plan); this file reads figures and prints them.

import { barChart } from "./chart.js";
import { element, make, percent, table, whole } from "./format.js";

const UNITS = { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 };
const SIZES = { "": 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

/** A number with a unit, such as 10M or 16 MiB; 0 for nothing, undefined for what is no number. */
export function quantity(text, isSize) {
  const trimmed = text.trim().toLowerCase().replaceAll(",", "");
  if (trimmed === "") return 0;
  const found = /^([0-9.]+(?:e[0-9]+)?) *([kmgt]?)(i?b?)$/.exec(trimmed);
  if (!found || (found[3] && !isSize)) return undefined;
  const units = isSize && found[3] !== "b" ? SIZES : UNITS;
  const value = Number(found[1]) * units[found[2]];
  return value >= 1 ? Math.round(value) : undefined;
}

/** A rate, such as 0.1%, 0.001 or 1/1000; 0 for nothing, undefined for what is no rate. */
export function rate(text) {
  const trimmed = text.trim();
  if (trimmed === "") return 0;
  const found = /^([0-9.]+(?:e-?[0-9]+)?) *(?:(%)|\/ *([0-9.]+))?$/i.exec(trimmed);
  if (!found) return undefined;
  const value = Number(found[1]) / (found[2] ? 100 : Number(found[3] ?? 1));
  return value > 0 && value < 1 ? value : undefined;
}

/** Bytes in the largest unit that leaves a number from 1 on. */
export function size(bytes) {
  const names = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(Math.max(Math.floor(Math.log2(bytes) / 10), 0), 4);
  return `${Number((bytes / 2 ** (10 * power)).toPrecision(4))} ${names[power]}`;
}

const shortRate = (value) => (value < 1e-4 ? value.toExponential(2) : percent(value));

/** Lines that make the filter, for each face. */
function codeLines({ keys, fpr }) {
  const number = String(keys).replace(/\B(?=(\d{3})+$)/g, "_");
  return {
    Rust: `let mut seen = koel::CuckooFilter::builder(${number}, ${fpr}).build()?;`,
    Python: `seen = koel.CuckooFilter(${number}, error_rate=${fpr})`,
    JavaScript: `const seen = new CuckooFilter({ capacity: ${number}, errorRate: ${fpr} });`,
    Command: `koel build INPUT --keys ${keys} --fpr ${fpr} -o OUT`,
    "Valkey, Redis": `CF.RESERVE seen ${keys} ERROR ${fpr} EXPANSION 0`,
  };
}

/** Whether the browser let the page write to the clipboard: not from a host without TLS. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

function codeList(build) {
  const items = Object.entries(codeLines(build)).map(([name, code]) => {
    const copy = make("button", { type: "button", "aria-label": `Copy the line for ${name}` }, "Copy");
    const line = make("code", { tabindex: "0" }, code);
    copy.addEventListener("click", async () => {
      copy.textContent = (await copied(code)) ? "Copied" : "Selected";
      if (copy.textContent === "Selected") getSelection().selectAllChildren(line);
    });
    return make("li", {}, make("b", {}, name), line, copy);
  });
  return make("ul", { class: "lines" }, ...items);
}

/** The figure to compute. */
function unknown([keys, fpr, memory]) {
  if (!memory) return { title: "Memory", of: (answer) => answer.memory, show: size };
  if (!keys) return { title: "Keys", of: (answer) => answer.keys, show: whole };
  return { title: "False-positive rate", of: (answer) => answer.fpr, show: shortRate };
}

function results(plan, given) {
  const { title, of, show } = unknown(given);
  const mark = (can) => (can ? "yes" : "no");
  const rows = plan.rows.map(({ name, add, remove, grow, answer }) => [
    name,
    answer ? answer.bits.toFixed(2) : "-",
    answer ? show(of(answer)) : "not possible",
    mark(add),
    mark(remove),
    mark(remove),
    mark(grow),
  ]);
  const possible = plan.rows.filter((row) => row.answer);
  const bars = possible.map((row) => ({
    name: row.name,
    value: row.answer.bits,
    strong: row.name.startsWith("Koel"),
  }));
  const bits = (value) => value.toFixed(2);
  const texts = { title: "Memory", unit: "bits per key", summary: "Koel beside other filters." };
  return [
    make("div", { class: "sized" },
      make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "All filters" },
        table(["filter", "bits/key", title.toLowerCase(), "add", "remove", "count", "grow"], rows)),
      ...(bars.length ? [barChart(texts, bars, bits)] : [])),
    ...(plan.build ? [make("h3", {}, "Make it"), codeList(plan.build)] : []),
  ];
}

/** `planOf` asks the library: keys, rate and memory, of which one is 0. */
export function startSize(planOf) {
  const inputs = ["size-keys", "size-rate", "size-memory"].map(element);

  function compute() {
    const place = element("sized");
    const [keys, memory] = [quantity(inputs[0].value, false), quantity(inputs[2].value, true)];
    const given = [keys, rate(inputs[1].value), memory];
    const wrong = given.indexOf(undefined);
    element("size-results").replaceChildren();
    if (wrong >= 0) {
      const examples = ["10M or 121570", "0.1% or 1/1000", "16 MiB or 64MB"];
      place.textContent = `"${inputs[wrong].value}" is not a figure here. Write it like ${examples[wrong]}.`;
      return;
    }
    if (given.filter(Boolean).length !== 2) {
      place.textContent = "Fill in two of the three fields, and leave the third one empty.";
      return;
    }
    try {
      const plan = planOf(...given);
      place.textContent = `${unknown(given).title} computed by the library, as koel plan prints it.`;
      element("size-results").replaceChildren(...results(plan, given));
    } catch (error) {
      place.textContent = `Not possible: ${error.message}.`;
    }
  }

  element("size").addEventListener("submit", (event) => {
    event.preventDefault();
    compute();
  });
  compute();
}
