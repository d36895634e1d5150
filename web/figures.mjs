// The figures that the page shows, read from the tables of docs/*.md when the page is built. Nothing
// is copied by hand: a heading, a table or a column that is gone stops the build.

import { readFileSync } from "node:fs";

/** Rows of the filters' table, with names that people know. Others have a cheap hash: it makes them faster. */
const FILTERS = {
  page: "BENCHMARKS.md",
  heading: "### 996,147 keys",
  only: { mode: "single" },
  label: "filter",
  names: {
    "koel-fast": "Koel, built for speed",
    "koel-small": "Koel",
    "fastbloom+mix": "Bloom filter (fastbloom)",
    qfilter: "quotient filter (qfilter)",
  },
};

/** What is shown of which table: a bar for each of `names`, from the column `value`. */
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
    page: "STORES.md",
    heading: "### 10 million entries",
    table: 1,
    label: "store",
    names: {
      koel: "Koel's log store",
      "koel-ordered": "Koel's ordered store",
      fjall: "fjall",
      redb: "redb",
    },
    title: "A key-value store: asking for an absent key",
    unit: "ns of CPU, less is better",
    value: "miss CPU",
    summary: "10 million entries. A maplet of Koel's knows which keys are there.",
  },
  {
    page: "VALKEY.md",
    heading: "#### 1,000,000 items",
    label: "",
    names: { "reserved to size": "Koel's module", "RedisBloom 2.8.2, default": "RedisBloom", set: "the server's set" },
    title: "Valkey and Redis: adding an item",
    unit: "ns of CPU, less is better",
    value: "insert",
    summary: "1,000,000 items, in commands of 1,000.",
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

function figure({ page, heading, table = 0, only = {}, label, names, title, unit, value, summary }) {
  const text = readFileSync(new URL(`../docs/${page}`, import.meta.url), "utf8");
  const is = (row) => Object.entries(only).every(([column, cell]) => row[column] === cell);
  const rows = tableBelow(text, heading, table).filter(is);
  const points = Object.entries(names).map(([name, shown]) => {
    const row = rows.find((row) => row[label] === name);
    if (!row) throw new Error(`${page}, "${heading}": no row ${name}`);
    return { name: shown, value: numberOf(row[value], value) };
  });
  return { title, unit, summary: `${summary} From docs/${page}.`, points };
}

export const figures = () => SHOWN.map(figure);
