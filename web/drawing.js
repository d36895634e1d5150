// The table as elements, one list item a bucket, with an arrow for what moves.

import { svg } from "./chart.js";
import { make } from "./format.js";

/** The length of the head of an arrow, in pixels. */
const HEAD = 10;

/** The buckets that a step is about. */
export const marksOf = (step) => step?.buckets ?? [step?.bucket, step?.from, step?.into];

/** A slot as text, which may be broken in the middle if it is long. */
function digits(slot) {
  if (slot === "0") return ["\u00b7"];
  const middle = Math.ceil(slot.length / 2);
  return slot.length > 3 ? [slot.slice(0, middle), make("wbr"), slot.slice(middle)] : [slot];
}

/** The number of the slot of a bucket that changed, or -1. */
const changedSlot = (now, before) => now.findIndex((slot, i) => slot !== before?.[i]);

export class Drawing {
  constructor(place) {
    this.place = place;
    this.before = [];
  }

  /** Draws the slots of all buckets. `nameOf` returns the key that a slot stands for. */
  draw(buckets, step, nameOf) {
    const marks = marksOf(step);
    const matches = (bucket, slot) =>
      step?.found?.some((found) => found.bucket === bucket && found.slot === slot);
    const items = buckets.map((slots, bucket) => {
      const changed = step?.kind === "written" ? changedSlot(slots, this.before[bucket]) : -1;
      const cells = slots.map((slot, i) => {
        const isNew = i === changed && slot !== "0";
        const kind = slot === "0" ? "empty" : isNew || matches(bucket, slot) ? "new" : "used";
        const name = slot === "0" ? "" : nameOf(bucket, slot);
        return make("span", { class: kind }, ...digits(slot), make("small", {}, name));
      });
      const attributes = marks.includes(bucket) ? { class: "marked" } : {};
      return make("li", attributes, make("b", {}, `${bucket}`), ...cells);
    });
    this.before = buckets;
    this.place.classList.toggle("long", buckets.flat().some((slot) => slot.length > 3));
    this.place.replaceChildren(...items);
    if (step?.kind === "written" && step.from !== null) {
      const slotOf = (bucket, slot) => items[bucket].children[buckets[bucket].indexOf(slot) + 1];
      this.arrow(slotOf(step.from, step.new), items[step.bucket].querySelector(".new"));
    }
    if (step?.kind === "split") this.arrow(items[step.bucket], items[step.into]);
  }

  /** Draws an arrow from one element to another, over the table. It covers the text of neither. */
  arrow(from, to) {
    if (!from || !to) return;
    const frame = this.place.getBoundingClientRect();
    const [first, second] = [from, to].map((item) => {
      const box = item.getBoundingClientRect();
      return { x: box.left + box.width / 2 - frame.left, top: box.top - frame.top, bottom: box.bottom - frame.top };
    });
    // From the edge of one to the edge of the other, or in a bow above both.
    const [goesDown, goesUp] = [first.bottom <= second.top, second.bottom <= first.top];
    const start = [first.x, goesDown ? first.bottom : first.top];
    const end = [second.x, goesUp ? second.bottom : second.top];
    const side = goesUp ? 1 : -1;
    const height = goesDown || goesUp ? 14 : 26;
    const leave = `${start[0]} ${start[1] - side * (goesDown || goesUp ? height : -height)}`;
    const arrive = `${end[0]} ${end[1] + side * (height + HEAD)}`;
    const path = svg("path", { d: `M ${start.join(" ")} C ${leave} ${arrive} ${end[0]} ${end[1] + side * HEAD}` });
    const corners = [[0, 0], [-HEAD / 1.6, side * HEAD], [HEAD / 1.6, side * HEAD]];
    const points = corners.map(([x, y]) => `${end[0] + x},${end[1] + y}`).join(" ");
    const head = svg("polygon", { points });
    const size = { width: frame.width, height: frame.height };
    const layer = svg("svg", { class: "arrow", "aria-hidden": "true", ...size }, path, head);
    this.place.append(make("li", { class: "over", "aria-hidden": "true" }, layer));
  }
}
