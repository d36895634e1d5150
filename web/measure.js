// Measure it: fills a filter past its capacity, and draws what happens on the way.

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

/** Fills a filter. Returns a row for each step. */
export function measure(CuckooFilter, capacity, errorRate) {
  const filter = new CuckooFilter({ capacity, errorRate });
  const absent = numbers(2 ** 40, ASKED);
  const size = Math.ceil(capacity / STEPS);
  const rows = [];
  for (let first = 0; first < 4 * capacity; first += size) {
    const refused = addEach(filter, first, size) / size;
    const wrong = filter.hasMany(absent).filter(Boolean).length / ASKED;
    rows.push({
      load: filter.loadFactor,
      full: filter.size / capacity,
      refused,
      wrong,
      expected: filter.currentErrorRate,
      bits: (8 * filter.byteLength) / filter.size,
    });
    if (refused > 0.5) break;
  }
  filter.free();
  return rows;
}

/** From a quarter of the slots on: a nearly empty table has any number of bits per key. */
function bitsChart(rows, atCapacity) {
  const load = { name: "share of slots in use", values: rows.map((row) => row.load), show: percent };
  return chart("Bits per key", `${atCapacity.bits.toFixed(1)} at the capacity.`, load, [
    { name: "bits", values: rows.map((row) => row.bits), show: (bits) => bits.toFixed(1) },
  ]);
}

export function startMeasure({ CuckooFilter }) {
  element("run").addEventListener("submit", (event) => {
    event.preventDefault();
    const capacity = Number(element("capacity").value);
    const promised = Number(element("measured-rate").value);
    const rows = measure(CuckooFilter, capacity, promised);
    const column = (name) => rows.map((row) => row[name]);
    const load = { name: "share of slots in use", values: column("load"), show: percent };
    const first = rows.find((row) => row.refused > 0) ?? rows[rows.length - 1];
    const atCapacity = rows.findLast((row) => row.full <= 1) ?? rows[0];
    element("measured").textContent =
      `The first key was refused at ${percent(first.load)} of the slots and ` +
      `${percent(first.full)} of the capacity. At the capacity, ${percent(atCapacity.wrong)} of ` +
      `${whole(ASKED)} absent keys were reported as present; promised was at most ${percent(promised)}.`;
    element("charts").replaceChildren(
      chart("Refused keys", `None up to ${percent(first.load)}.`, load, [
        { name: "refused of each step's keys", values: column("refused"), show: percent },
      ]),
      chart("False positives", `${percent(atCapacity.wrong)} at the capacity.`, load, [
        { name: "measured", values: column("wrong"), show: percent },
        { name: "computed by the library", values: column("expected"), show: percent },
      ]),
      bitsChart(rows.filter((row) => row.load > 0.25), atCapacity),
    );
  });
}
