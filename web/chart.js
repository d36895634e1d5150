// Charts as SVG, each with its figures as a table for those who do not see it.
//
// The texts of a chart are its `title`, the `unit` of its values, and a `summary`, which is a
// sentence about them.

import { make, table } from "./format.js";

const WIDTH = 330;
const HEIGHT = 220;
const LEFT = 58;
const BOTTOM = 44;
const TOP = 12;
const RIGHT = 14;
/** The height of a bar with its name above it. */
const BAR = 36;
/** The height of a bar with its name to the right, and of the name of a group of these. */
const SLIM_BAR = 17;
const GROUP = 24;

export function svg(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawing(height, { title, unit, summary }) {
  const label = `${title}, ${unit}. ${summary}`;
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label });
}

function figure({ title, unit, summary }, picture, legend, head, rows) {
  return make(
    "figure",
    {},
    make("figcaption", {}, title, make("small", {}, unit)),
    picture,
    ...legend,
    make("p", { class: "key" }, summary),
    make("details", {}, make("summary", {}, "The figures"), table(head, rows)),
  );
}

/** The lines of a figure, in the order in which they are drawn, differ in colour and in dashes. */
const STYLES = ["solid", "dashed", "dotted", "dash-dotted"];

/** The names of the lines beside samples of them. */
function legendOf(lines) {
  if (lines.length < 2) return [];
  const items = lines.map((line, number) => {
    const sample = svg("polyline", { points: "0,5 32,5", class: STYLES[number] });
    const picture = svg("svg", { viewBox: "0 0 32 10", class: "sample", "aria-hidden": "true" }, sample);
    return make("li", {}, picture, line.name);
  });
  return [make("ul", { class: "legend" }, ...items)];
}

/** The next larger number with one digit, which an axis can end at. */
function ceiling(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 4, 6, 8, 10].find((digit) => digit * power >= value * 0.999);
}

/** From a value to its place on the x axis, and the values that are written there. */
function axisOf({ values, logarithmic }) {
  const scale = logarithmic ? Math.log : (value) => value;
  const [first, last] = [values[0], values[values.length - 1]];
  const [low, high] = logarithmic ? [first, last] : [0, ceiling(last)];
  const middle = (scale(low) + scale(high)) / 2;
  const distance = (value) => Math.abs(scale(value) - middle);
  const nearest = values.reduce((best, value) => (distance(value) < distance(best) ? value : best));
  const place = (value) => (scale(value) - scale(low)) / (scale(high) - scale(low) || 1);
  return {
    across: (value) => LEFT + place(value) * (WIDTH - LEFT - RIGHT),
    marks: [low, logarithmic ? nearest : middle, high],
  };
}

/**
 * A figure of up to four lines over the same x.
 *
 * `x` and each of `lines` have a name, values and a function `show` from a value to text. `x` may
 * be `logarithmic`. A value that a line lacks is undefined.
 */
export function chart(texts, x, lines) {
  const known = lines.flatMap((line) => line.values).filter((value) => value !== undefined);
  const most = ceiling(Math.max(...known) || 1);
  const { across, marks } = axisOf(x);
  const up = (value) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - BOTTOM - TOP);
  const picture = drawing(HEIGHT, texts);
  for (const share of [0, 0.5, 1]) {
    const y = up(share * most);
    picture.append(
      svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y }),
      svg("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, lines[0].show(share * most)),
    );
  }
  marks.forEach((mark, i) => {
    const place = { x: across(mark), y: HEIGHT - BOTTOM + 17, "text-anchor": ["start", "middle", "end"][i] };
    picture.append(svg("text", place, x.show(mark)));
  });
  const middle = { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 8, "text-anchor": "middle" };
  picture.append(svg("text", { ...middle, class: "axis" }, x.name));
  lines.forEach((line, number) => {
    const points = x.values
      .map((value, i) => [value, line.values[i]])
      .filter(([, y]) => y !== undefined)
      .map(([value, y]) => `${across(value)},${up(y)}`);
    picture.append(svg("polyline", { points: points.join(" "), class: STYLES[number] }));
  });
  const cell = (line, i) => (line.values[i] === undefined ? "-" : line.show(line.values[i]));
  const rows = x.values.map((value, i) => [x.show(value), ...lines.map((line) => cell(line, i))]);
  return figure(texts, picture, legendOf(lines), [x.name, ...lines.map((line) => line.name)], rows);
}

const longest = (rows) => Math.max(...rows.map((row) => row.value)) || 1;
const classOf = ({ strong }) => (strong ? "strong" : "other");

/** A figure of bars. Each of `rows` has a name, a value and perhaps `strong`; `show` makes text. */
export function barChart(texts, rows, show) {
  const most = longest(rows);
  const picture = drawing(BAR * rows.length + 4, texts);
  rows.forEach((row, i) => {
    const y = BAR * i + 14;
    const width = Math.max((row.value / most) * (WIDTH - 70), 1);
    picture.append(
      svg("text", { x: 2, y }, row.name),
      svg("rect", { x: 2, y: y + 4, width, height: 12, class: classOf(row) }),
      svg("text", { x: width + 7, y: y + 15 }, show(row.value)),
    );
  });
  const cells = rows.map(({ name, value }) => [name, show(value)]);
  return figure(texts, picture, [], ["", texts.unit], cells);
}

/** A figure of `groups` of bars, with a name and rows. The longest bars of all groups are equally long. */
export function groupChart(texts, groups, show) {
  const height = groups.reduce((sum, { rows }) => sum + GROUP + SLIM_BAR * rows.length, 6);
  const picture = drawing(height, texts);
  let y = 0;
  for (const { name, rows } of groups) {
    const most = longest(rows);
    picture.append(svg("text", { x: 2, y: y + 18, class: "group" }, name));
    y += GROUP;
    for (const row of rows) {
      const width = Math.max((row.value / most) * (WIDTH - 150), 1);
      picture.append(
        svg("rect", { x: 2, y, width, height: 12, class: classOf(row) }),
        svg("text", { x: width + 7, y: y + 11 }, `${row.name} ${show(row.value)}`),
      );
      y += SLIM_BAR;
    }
  }
  const cells = groups.flatMap(({ name, rows }) => rows.map((row) => [name, row.name, show(row.value)]));
  return figure(texts, picture, [], ["", "", texts.unit], cells);
}
