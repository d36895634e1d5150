// The figures that the page shows, read from docs/figures when the page is built. Nothing is copied
// by hand: a table, a row or a column that is gone stops the build.

import { readFileSync } from "node:fs";

/** Rows of the filters' table, with names that people know. Others have a cheap hash: it makes them faster. */
const FILTERS = {
  of: "filters",
  only: { mode: "single" },
  names: {
    "koel-fast": "Koel, built for speed",
    "koel-small": "Koel",
    "fastbloom+mix": "Bloom filter (fastbloom)",
    qfilter: "quotient filter (qfilter)",
  },
  page: "BENCHMARKS.md",
};

/** What is shown: a bar for each row in `names`, from the column `value` of a table of docs/figures. */
const SHOWN = [
  {
    ...FILTERS,
    title: "Speed: lookups of absent keys",
    unit: "million a second, more is better",
    value: "miss",
    summary: "A million keys, an error rate of 0.2 %, one key after the other. fastbloom cannot delete.",
  },
  {
    ...FILTERS,
    title: "Memory",
    unit: "bits per key, less is better",
    value: "bits/key",
    summary: "A million keys, an error rate of 0.2 %. fastbloom cannot delete.",
  },
  {
    of: "stores",
    table: 1,
    names: {
      koel: "Koel's log store",
      "koel-ordered": "Koel's ordered store",
      fjall: "fjall",
      redb: "redb",
    },
    page: "STORES.md",
    title: "A key-value store: asking for an absent key",
    unit: "ns of CPU, less is better",
    value: "miss CPU",
    summary: "10 million entries. A maplet of Koel's knows which keys are there.",
  },
  {
    of: "valkey",
    table: 2,
    names: { reserved: "Koel's module", "RedisBloom, default": "RedisBloom", set: "the server's set" },
    page: "VALKEY-OPERATING.md",
    title: "Valkey and Redis: adding an item",
    unit: "ns of CPU, less is better",
    value: "insert, ns",
    summary: "1,000,000 items, in commands of 1,000.",
  },
];

/** The rows of a table of docs/figures, whose first cell is the name. The first of equal columns wins. */
function rowsOf(name, number) {
  const { tables } = JSON.parse(readFileSync(new URL(`../docs/figures/${name}.json`, import.meta.url), "utf8"));
  if (!tables[number]) throw new Error(`${name}.json has no table ${number}`);
  const { columns, rows } = tables[number];
  return rows.map((cells) => {
    const row = { name: cells[0] };
    columns.forEach((column, i) => (row[column] ??= cells[i]));
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

function figure({ of, table = 0, only = {}, names, page, title, unit, value, summary }) {
  const is = (row) => Object.entries(only).every(([column, cell]) => row[column] === cell);
  const rows = rowsOf(of, table).filter(is);
  const points = Object.entries(names).map(([name, shown]) => {
    const row = rows.find((row) => row.name === name);
    if (!row) throw new Error(`${of}.json has no row ${name}`);
    return { name: shown, value: numberOf(row[value], value) };
  });
  return { title, unit, summary: `${summary} From docs/${page}.`, points };
}

export const figures = () => SHOWN.map(figure);
