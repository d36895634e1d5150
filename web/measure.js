// Measure it: fills a filter past its capacity, and draws what happens while it happens.

import { chart } from "./chart.js";
import { element, percent, whole } from "./format.js";

const STEPS = 40;
/** Absent keys that are asked for at each step. */
const ASKED = 50_000;

/** Keys that no other call makes: numbers from `first` on. */
const numbers = (first, count) => BigUint64Array.from({ length: count }, (_, i) => BigInt(first + i));

/** Adds so many keys one by one. Returns how many were refused. */
function addEach(filter, first, count) {
  let refused = 0;
  for (let key = first; key < first + count; key += 1) {
    try {
      filter.add(key);
    } catch (error) {
      if (error.code !== "full") throw error;
      refused += 1;
    }
  }
  return refused;
}

/** Fills a filter, and passes on a row after each step. */
function* measure(CuckooFilter, capacity, errorRate) {
  const filter = new CuckooFilter({ capacity, errorRate });
  try {
    const absent = numbers(2 ** 40, ASKED);
    const size = Math.ceil(capacity / STEPS);
    for (let first = 0; first < 4 * capacity; first += size) {
      const refused = addEach(filter, first, size) / size;
      const wrong = filter.hasMany(absent).filter(Boolean).length / ASKED;
      yield {
        load: filter.loadFactor,
        full: filter.size / capacity,
        refused,
        wrong,
        expected: filter.currentErrorRate,
        promised: errorRate,
        bits: (8 * filter.byteLength) / filter.size,
      };
      if (refused > 0.5) return;
    }
  } finally {
    filter.free();
  }
}

const lastBelowCapacity = (rows) => rows.findLast((row) => row.full <= 1) ?? rows[0];
const firstRefused = (rows) => rows.find((row) => row.refused > 0);

/** One chart: `lines` are names of the columns of `rows` and of the lines. */
function draw(title, unit, summary, rows, lines, show) {
  const load = { name: "share of slots in use", values: rows.map((row) => row.load), show: percent };
  const line = ([column, name]) => ({ name, values: rows.map((row) => row[column]), show });
  return chart({ title, unit, summary }, load, Object.entries(lines).map(line));
}

function charts(rows) {
  const [first, last] = [firstRefused(rows), lastBelowCapacity(rows)];
  const none = first ? `None up to ${percent(first.load)}.` : "None so far.";
  const answers = { wrong: "measured", expected: "computed by the library", promised: "promised" };
  // From a quarter of the slots on: a nearly empty table has any number of bits per key.
  const filled = rows.filter((row) => row.load > 0.25);
  return [
    draw("Refused keys", "share of the keys of a step", none, rows, { refused: "refused" }, percent),
    draw("False positives", "share of absent keys", `${percent(last.wrong)} at the capacity.`, rows, answers, percent),
    ...(filled.length
      ? [draw("Memory", "bits per key", `${last.bits.toFixed(1)} at the capacity.`, filled, { bits: "bits" }, bitsText)]
      : []),
  ];
}

const bitsText = (bits) => bits.toFixed(1);

function conclusion(rows) {
  const [first, last] = [firstRefused(rows) ?? rows[rows.length - 1], lastBelowCapacity(rows)];
  return (
    `The first key was refused at ${percent(first.load)} of the slots and ${percent(first.full)} of the ` +
    `capacity. At the capacity, ${percent(last.wrong)} of ${whole(ASKED)} absent keys were reported as ` +
    `present; promised was at most ${percent(last.promised)}.`
  );
}

export function startMeasure({ CuckooFilter }) {
  const button = element("measure-button");
  const told = element("measured");
  let state = "idle";

  async function run(capacity, errorRate) {
    const rows = [];
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    told.textContent = "Measuring ...";
    for (const row of measure(CuckooFilter, capacity, errorRate)) {
      rows.push(row);
      if (!isStill) element("charts").replaceChildren(...charts(rows));
      // The browser draws, and takes a press on "Stop".
      await new Promise((resolve) => setTimeout(resolve));
      if (state === "stopping") {
        told.textContent = "Stopped.";
        return;
      }
    }
    element("charts").replaceChildren(...charts(rows));
    told.textContent = conclusion(rows);
  }

  element("run").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (state !== "idle") {
      state = "stopping";
      return;
    }
    state = "running";
    button.textContent = "Stop";
    await run(Number(element("capacity").value), Number(element("measured-rate").value));
    state = "idle";
    button.textContent = "Measure";
  });
}
