// A line chart as SVG, with its figures as a table for those who do not see it.

import { make, table } from "./format.js";

const WIDTH = 360;
const HEIGHT = 220;
const LEFT = 58;
const BOTTOM = 34;
const TOP = 12;
const RIGHT = 14;

function svg(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/**
 * A figure of one or two lines over the same x.
 *
 * `x` and each of `lines` have a name, values and a function `show` from a value to text.
 */
export function chart(title, summary, x, lines) {
  const most = Math.max(...lines.flatMap((line) => line.values), Number.MIN_VALUE);
  const [low, high] = [x.values[0], x.values[x.values.length - 1]];
  const across = (value) => LEFT + ((value - low) / (high - low)) * (WIDTH - LEFT - RIGHT);
  const up = (value) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - BOTTOM - TOP);
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}. ${summary}` });
  for (const share of [0, 0.5, 1]) {
    const y = up(share * most);
    picture.append(
      svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y }),
      svg("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, lines[0].show(share * most)),
    );
    const at = low + share * (high - low);
    const anchor = ["start", "middle", "end"][2 * share];
    picture.append(
      svg("text", { x: across(at), y: HEIGHT - BOTTOM + 16, "text-anchor": anchor }, x.show(at)),
    );
  }
  lines.forEach((line, number) => {
    const points = x.values.map((value, i) => `${across(value)},${up(line.values[i])}`);
    picture.append(svg("polyline", { points: points.join(" "), class: number ? "second" : "first" }));
  });
  const names = lines.map((line, number) => `${number ? "dashed" : "solid"}: ${line.name}`);
  const rows = x.values.map((value, i) => [x.show(value), ...lines.map((line) => line.show(line.values[i]))]);
  return make(
    "figure",
    {},
    make("figcaption", {}, title),
    picture,
    make("p", { class: "key" }, `${names.join("; ")}. Across: ${x.name}. ${summary}`),
    make(
      "details",
      { tabindex: "0" },
      make("summary", {}, "The figures"),
      table([x.name, ...lines.map((line) => line.name)], rows),
    ),
  );
}
