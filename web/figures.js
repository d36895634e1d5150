// The figures of the repository's measurements, as charts. build.mjs reads them from its pages.

import { barChart, chart, groupChart } from "./chart.js";
import { element, make, whole } from "./format.js";

const show = (value) => (value >= 1000 ? whole(value) : String(Number(value.toPrecision(3))));
const isOurs = (name) => /^(koel|reserved|prefer|grown|window)/i.test(name);

/** A whole number with the unit that leaves up to three digits before it. */
function short(value) {
  const [size, unit] = [[1e9, " G"], [1e6, " M"], [1e3, " k"], [1, ""]].find(([size]) => value >= size) ?? [1, ""];
  return Number((value / size).toPrecision(value < 1000 ? 3 : 2)) + unit;
}

/** The different values of a column, in the order in which they come. */
const different = (points, column) => [...new Set(points.map((point) => point[column]))];

function lineChart({ points, x, ...texts }) {
  const values = different(points, "x").sort((a, b) => a - b);
  const lines = different(points, "name").map((name) => {
    const at = (value) => points.find((point) => point.name === name && point.x === value)?.value;
    return { name, values: values.map(at), show };
  });
  return chart(texts, { name: x, values, show: short, logarithmic: true }, lines);
}

/** A figure as build.mjs reads it. */
export function drawFigure(figure) {
  if (figure.x) return lineChart(figure);
  const rows = figure.points.map((point) => ({ ...point, strong: isOurs(point.name) }));
  if (!figure.groups) return barChart(figure, rows, show);
  const groups = different(rows, "group").map((name) => ({
    name,
    rows: rows.filter((row) => row.group === name),
  }));
  return groupChart(figure, groups, show);
}

export function startFigures(figures) {
  element("figures").append(make("div", { class: "charts" }, ...figures.map(drawFigure)));
}
