// Makes docs/watch.svg, the picture of README.md: the table of the page while an entry moves to its
// other bucket. `scripts/web picture` runs it.

import { writeFileSync } from "node:fs";
import { chromium } from "playwright-core";
import { made } from "./made.mjs";

const here = (path) => new URL(path, import.meta.url);
/** The viewport, in which the table has three columns. */
const WIDTH = 1280;

/** The elements of the table as they are drawn: boxes with colours and text, and the arrow. */
function drawn() {
  const isText = (node) => node.nodeType === Node.TEXT_NODE;
  const own = (element) => [...(element?.childNodes ?? [])].filter(isText).map((node) => node.data).join("");
  const frame = document.querySelector("#table").getBoundingClientRect();
  const box = (element) => {
    const { left, top, width, height } = element.getBoundingClientRect();
    const style = getComputedStyle(element);
    return {
      ...{ x: left - frame.left, y: top - frame.top, width, height },
      ...{ name: element.className || element.localName, text: own(element), key: own(element.querySelector("small")) },
      ...{ color: style.color, ground: style.backgroundColor, edge: style.borderTopColor },
      outline: style.outlineStyle === "none" ? undefined : style.outlineColor,
    };
  };
  const elements = document.querySelectorAll("#table b, #table span, #table .marked");
  const arrow = document.querySelector("#table .arrow");
  return {
    height: frame.height,
    width: frame.width,
    boxes: [...elements].map(box),
    arrow: {
      path: arrow.children[0].getAttribute("d"),
      head: arrow.children[1].getAttribute("points"),
      color: getComputedStyle(arrow.children[0]).stroke,
    },
  };
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const options = { viewport: { width: WIDTH, height: 900 }, colorScheme: "light" };
const page = await (await browser.newContext(options)).newPage();
await page.goto(made("web/index.html").href);
await page.waitForSelector("html[data-ready]");
await page.click("#stories button >> nth=3");
const last = () => page.textContent("#steps li:last-child");
while (!/ moves from /.test(await last())) await page.click("#step");
const [{ width: table, height, boxes, arrow }, sentence] = [await page.evaluate(drawn), await last()];
await browser.close();

const round = (value) => Math.round(value);
const rounded = (text) => text.replace(/\d+\.\d+/g, (number) => round(Number(number)));
const rect = ({ x, y, width, height }, more) =>
  `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" rx="3" ${more}/>`;
const label = ({ x, y, width, height, text }, more) =>
  `<text x="${round(x + width / 2)}" y="${round(y + height / 2 + 5)}" ${more}>${text}</text>`;
const shape = (box) => {
  if (box.name === "marked") return rect(box, `fill="none" stroke="${box.outline}" stroke-width="3"`);
  if (box.name === "b") return label(box, `fill="${box.color}" font-weight="bold"`);
  const dots = box.name === "empty" ? ' stroke-dasharray="1 2"' : "";
  const ground = box.name === "empty" ? "none" : box.ground;
  const [upper, lower] = [{ ...box, y: box.y - 9 }, { ...box, y: box.y + 11, text: box.key }];
  return [
    rect(box, `fill="${ground}" stroke="${box.edge}"${dots}`),
    label(upper, `fill="${box.color}"`),
    label(lower, `fill="${box.color}" font-family="sans-serif" font-size="12"`),
  ].join("");
};
const picture = [
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-8 -8 ${round(table) + 16} ${round(height) + 48}"`,
  ` font-family="monospace" font-size="15" text-anchor="middle" role="img">`,
  `<title>${sentence}</title>`,
  `<rect x="-8" y="-8" width="${round(table) + 16}" height="${round(height) + 48}" fill="#fff"/>`,
  ...boxes.map(shape),
  `<path d="${rounded(arrow.path)}" fill="none"`,
  ` stroke="${arrow.color}" stroke-width="3" stroke-dasharray="7 4"/>`,
  `<polygon points="${rounded(arrow.head)}" fill="${arrow.color}"/>`,
  `<text x="0" y="${round(height) + 26}" text-anchor="start" font-family="sans-serif" fill="#333">${sentence}</text>`,
  "</svg>\n",
].join("\n");
writeFileSync(here("../docs/watch.svg"), picture);
console.log(`web: docs/watch.svg has ${picture.length} bytes: ${sentence}`);
