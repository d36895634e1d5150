// The figures that the page shows, read from the tables of docs/*.md when the page is built. Nothing
// is copied by hand: a heading, a table or a column that is gone stops the build.

import { readFileSync } from "node:fs";

const FILTERS = {
  part: "Filters",
  page: "BENCHMARKS.md",
  heading: "### 996,147 keys, error rate 0.002 asked for",
  only: { mode: "single" },
  // Other crates with a cheap hash, where they take one: it makes them faster.
  chosen: [
    "koel-fast", "koel-small", "cuckoofilter+mix", "valkey-cuckoo+mix", "scalable_cuckoo_filter+mix",
    "atomic-cuckoo-filter+mix", "qfilter", "fastbloom+mix", "sbbf",
  ],
};
const LOG = { part: "The log store", page: "STORES.md", heading: "## 10 million entries" };
const ORDERED = { part: "The ordered store", page: "STORES.md", heading: "### 10 million entries" };
const VALKEY = { part: "Valkey and Redis", page: "VALKEY.md", heading: "## Time" };

/**
 * What is shown of which table. `bars` are a column each; `lines` share the column `x`; `groups` have
 * a row each, and a bar for each column whose name ends with `value`.
 */
const SHOWN = [
  {
    ...FILTERS,
    title: "Lookups of absent keys, one by one",
    unit: "million a second",
    bars: { label: "filter", value: "miss" },
    summary: "996,147 keys at 0.2 %. The filters of xorf are built at once, and cannot be changed.",
  },
  {
    ...FILTERS,
    title: "Memory",
    unit: "bits per key",
    bars: { label: "filter", value: "bits/key" },
    summary: "cuckoofilter and valkey-cuckoo have 15 times the false-positive rate.",
  },
  {
    ...FILTERS,
    heading: "## By size of the table",
    only: {},
    title: "Lookups of absent keys, by number of keys",
    unit: "million a second",
    lines: { label: "filter", x: "keys", value: "miss" },
    chosen: ["koel-fast", "koel-fast, batch", "qfilter", "fastbloom+mix"],
    summary: "From 4 million keys on, the memory is the limit.",
  },
  {
    ...LOG,
    title: "Loading",
    unit: "us of CPU per entry",
    bars: { label: "store", value: "CPU us" },
    summary: "10 million entries of 116 bytes.",
  },
  {
    ...LOG,
    table: 1,
    title: "Reading a key that is in",
    unit: "ns, median",
    bars: { label: "store", value: "p50" },
    summary: "10 million entries, everything in the page cache.",
  },
  {
    ...LOG,
    table: 1,
    title: "Asking for an absent key",
    unit: "ns of CPU",
    bars: { label: "store", value: "miss CPU" },
    summary: "The index answers without a read.",
  },
  {
    ...ORDERED,
    title: "Loading",
    unit: "us of CPU per entry",
    bars: { label: "store", value: "CPU us" },
    summary: "10 million entries of 116 bytes, merges included. koel is the log store.",
  },
  {
    ...ORDERED,
    table: 1,
    title: "Reading a key that is in",
    unit: "ns, median",
    bars: { label: "store", value: "p50" },
    summary: "10 million entries. koel-unguided has no maplet that names the runs of a key.",
  },
  {
    ...ORDERED,
    table: 1,
    title: "Asking for an absent key",
    unit: "ns of CPU",
    bars: { label: "store", value: "miss CPU" },
    summary: "10 million entries.",
  },
  {
    ...ORDERED,
    table: 1,
    title: "Scanning 100 entries",
    unit: "us of CPU",
    bars: { label: "store", value: "scan" },
    summary: "10 million entries. redb, a B-tree, needs no merge of runs.",
  },
  {
    ...ORDERED,
    heading: "### Absent keys and runs",
    title: "Absent keys, by number of unmerged runs",
    unit: "ns, median",
    lines: { label: "store", x: "runs", value: "p50" },
    summary: "1 million entries. Others ask a Bloom filter for each run, Koel one maplet for all.",
  },
  {
    ...ORDERED,
    heading: "### YCSB",
    title: "The workloads of YCSB",
    unit: "thousand operations a second",
    groups: {
      label: "workload",
      value: " k/s",
      names: {
        A: "A: half reads, half updates", B: "B: 95 % reads", C: "C: reads", D: "D: reads of the newest",
        E: "E: scans", F: "F: read, change, write",
      },
    },
    summary: "1 million entries, one thread. Each workload has a scale of its own.",
  },
  {
    ...VALKEY,
    title: "Adding an item",
    unit: "ns of CPU",
    bars: { label: "", value: "insert" },
    summary: "1,000,000 items, in commands of 1,000. set is the server's own.",
  },
  {
    ...VALKEY,
    title: "Memory",
    unit: "bits per item",
    bars: { label: "", value: "bits per item" },
    summary: "RedisBloom's false-positive rate is 1.5 % and 3 %, Koel's below 0.05 %.",
  },
];

const cells = (row) => row.slice(1, -1).split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("`", ""));

/** The table of this number below a heading, as objects by column. The first of equal columns wins. */
function tableBelow(text, heading, number) {
  const lines = text.split("\n");
  const start = lines.indexOf(heading);
  if (start < 0) throw new Error(`no heading "${heading}"`);
  const level = heading.indexOf(" ");
  const ends = (line) => /^#+ /.test(line) && line.indexOf(" ") <= level;
  const length = lines.slice(start + 1).findIndex(ends);
  const section = lines.slice(start + 1, length < 0 ? undefined : start + 1 + length);
  const tables = section.join("\n").split("\n\n").map((part) => part.trim()).filter((part) => part.startsWith("|"));
  if (!tables[number]) throw new Error(`no table ${number} below "${heading}"`);
  const [head, , ...rows] = tables[number].split("\n").filter((row) => row.startsWith("|")).map(cells);
  return rows.map((cells) => {
    const row = {};
    head.forEach((name, i) => (row[name] ??= cells[i]));
    return row;
  });
}

/** The number at the start of a cell; undefined for "-" and for nothing. */
function numberOf(cell, column) {
  if (cell === undefined) throw new Error(`no column "${column}"`);
  if (cell === "-" || cell === "") return undefined;
  const number = Number.parseFloat(cell.replaceAll(",", ""));
  if (Number.isNaN(number)) throw new Error(`"${cell}" in column "${column}" is no number`);
  return number;
}

/** A bar for each column of a row whose name ends with `value`. */
function groupOf(row, { label, value, names }) {
  const group = names[row[label]];
  if (!group) throw new Error(`no row "${row[label]}" is known`);
  return Object.keys(row)
    .filter((column) => column.endsWith(value))
    .map((column) => ({ group, name: column.slice(0, -value.length), value: numberOf(row[column], column) }));
}

function pointsOf(rows, { bars, lines, groups }) {
  if (groups) return rows.flatMap((row) => groupOf(row, groups));
  const { label, x, value } = bars ?? lines;
  const point = (row) => ({ name: row[label], x: x && numberOf(row[x], x), value: numberOf(row[value], value) });
  return rows.map(point);
}

function figure({ part, page, heading, table = 0, only = {}, chosen, title, unit, summary, ...shape }) {
  const text = readFileSync(new URL(`../docs/${page}`, import.meta.url), "utf8");
  const label = (shape.bars ?? shape.lines ?? shape.groups).label;
  const is = (row) => Object.entries(only).every(([column, cell]) => row[column] === cell);
  const rows = tableBelow(text, heading, table).filter((row) => is(row) && (!chosen || chosen.includes(row[label])));
  const missing = chosen?.filter((name) => !rows.some((row) => row[label] === name)) ?? [];
  if (missing.length) throw new Error(`${page}, "${heading}": no row ${missing.join(", ")}`);
  const points = pointsOf(rows, shape).filter((point) => point.value !== undefined);
  if (points.length < 2) throw new Error(`${page}, "${heading}": fewer than two rows`);
  const source = `${summary} From docs/${page}.`;
  return { part, title, unit, summary: source, points, x: shape.lines?.x, groups: Boolean(shape.groups) };
}

export const figures = () => SHOWN.map(figure);
