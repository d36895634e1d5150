// Numbers as people read them, and elements of the page.

/** A whole number with commas. */
export const whole = (value) => Math.round(value).toLocaleString("en-US");

/** A share of 1, as per cent. */
export const percent = (value) => `${Number((100 * value).toPrecision(3))} %`;

/** The element with this id. */
export const element = (id) => document.getElementById(id);

/** A new element with these children, which are elements or text. */
export function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** A table with a head and rows of cells. */
export function table(head, rows) {
  const row = (cells, name) => make("tr", {}, ...cells.map((cell) => make(name, {}, cell)));
  return make(
    "table",
    {},
    make("thead", {}, row(head, "th")),
    make("tbody", {}, ...rows.map((cells) => row(cells, "td"))),
  );
}
