// Watch it: a small table, drawn bucket by bucket, and each operation step by step.

import { svg } from "./chart.js";
import { element, make, percent } from "./format.js";
import { linesOf } from "./use.js";
import { Watched } from "./watched.js";

/** Milliseconds a step at the usual speed. */
const PAUSE = 900;
/** The length of the head of an arrow, in pixels. */
const HEAD = 10;
/** Keys that "Fill it" adds at most: a table that grows is never full. */
const MOST = 400;

const plural = (number, one, many) => (number === 1 ? `one ${one}` : `${number} ${many}`);

function written({ bucket, old, new: slot, from }) {
  if (slot === "0") return `Bucket ${bucket}: ${old} is taken out, and its slot is empty.`;
  const place = old === "0" ? "an empty slot" : `the slot of ${old}`;
  if (from === null) return `Bucket ${bucket}: the fingerprint ${slot} goes to ${place}.`;
  return `${slot} moves from bucket ${from} to bucket ${bucket}, its other bucket, into ${place}.`;
}

function searched({ slots, moves }) {
  const begin = `Both buckets are full. A search looks at ${plural(slots, "slot", "slots")}`;
  if (moves === null) return `${begin} and finds no way to make room.`;
  if (moves === 1) return `${begin} and finds the shortest way to make room: one entry must move.`;
  return `${begin} and finds the shortest way to make room: ${moves} entries must move, the last one first.`;
}

function ended({ key, adds, error, removed, wasAdded, missing }) {
  if (error) return `"${key}" is refused, and no byte has changed: ${error}.`;
  if (adds && wasAdded) return `"${key}" is in ${wasAdded + 1} times. Remove it as often.`;
  if (adds) return `"${key}" is in.`;
  if (!removed) return "Neither bucket has this fingerprint: the key was never added. Nothing is removed.";
  if (!wasAdded && !missing.length) {
    return `"${key}" was never added. Another key has the same fingerprint, and lost a copy.`;
  }
  if (missing.length) {
    const verb = missing.length === 1 ? "is" : "are";
    const begin = wasAdded ? "" : `"${key}" was never added. It had the fingerprint of another key. `;
    return `${begin}A key was lost: ` +
      `${missing.map((name) => `"${name}"`).join(", ")} ${verb} not found any more.`;
  }
  return `One copy of "${key}" is removed.`;
}

/** A step in words. */
export function sentence(step) {
  switch (step.kind) {
    case "hash":
      return `"${step.key}" has the hash ${step.hash}.`;
    case "buckets": {
      const [home, other] = step.buckets;
      return home === other ? `Its only bucket is ${home}.` : `The hash names two buckets: ${home} and ${other}.`;
    }
    case "fingerprint": {
      const [first, second] = step.fingerprints;
      const both = first === second ? first : `${first} in the first bucket, ${second} in the second`;
      return `Its fingerprint is ${both}. Only that is stored, not the key.`;
    }
    case "searched":
      return searched(step);
    case "written":
      return written(step);
    case "widened":
      return "The table is full and begins to grow: every slot gets more bits, for the splits to come.";
    case "narrow":
      if (step.left === 0) return "All buckets have wider slots now.";
      return `Some buckets got wider slots, the last ones first. Others have to wait: ${step.left}.`;
    case "split":
      return `Bucket ${step.bucket} is split: about half of its entries move to the new bucket ${step.into}.`;
    case "counted":
      if (step.copies === 0) return "The counter beside the table is not needed any more.";
      return `A counter beside the table counts ${plural(step.copies, "copy", "copies")}, which need no slot.`;
    case "totals":
      return `Keys in the filter: ${step.keys}. Slots in use: ${step.slots}.`;
    default:
      return ended(step);
  }
}

/** The buckets that a step is about. */
const marksOf = (step) => step?.buckets ?? [step?.bucket, step?.from, step?.into];

/** The number of the slot of a bucket that changed, or -1. */
const changedSlot = (now, before) => now.findIndex((slot, i) => slot !== before?.[i]);

/** The table as elements, one list item a bucket. */
class Picture {
  constructor(place) {
    this.place = place;
    this.before = [];
  }

  draw(buckets, step) {
    const marks = marksOf(step);
    const items = buckets.map((slots, bucket) => {
      const changed = step?.kind === "written" ? changedSlot(slots, this.before[bucket]) : -1;
      const cells = slots.map((slot, i) => {
        const kind = slot === "0" ? "empty" : i === changed ? "new" : "used";
        return make("span", { class: kind }, slot === "0" ? "\u00b7" : slot);
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

/** The keys that "Add" and "Fill it" take, one after the other. */
class Source {
  constructor(list) {
    this.list = list;
    this.next = 0;
  }

  peek() {
    switch (element("source").value) {
      case "list":
        return this.list[this.next % this.list.length];
      case "own": {
        const own = linesOf(element("own-keys").value);
        return own[this.next % Math.max(own.length, 1)] ?? "";
      }
      default:
        return `key ${this.next + 1}`;
    }
  }

  /** Goes on to the next key if this one was taken from here. */
  taken(key) {
    if (key === this.peek()) this.next += 1;
    element("watched-key").value = this.peek();
  }
}

class Watch {
  constructor(module, list) {
    this.module = module;
    this.source = new Source(list);
    this.picture = new Picture(element("table"));
    this.begin();
  }

  begin() {
    this.stop();
    this.watched?.free();
    this.watched = new Watched(this.module, element("grows").checked);
    this.source.next = 0;
    element("watched-key").value = this.source.peek();
    this.tell("The table is empty. Add a key.");
  }

  /** Replaces the steps by a sentence, and draws the table. */
  tell(line) {
    element("steps").replaceChildren(make("li", {}, line));
    this.draw();
  }

  draw(step) {
    const { watched } = this;
    const buckets = watched.buckets();
    this.picture.draw(buckets, step);
    const used = buckets.flat().filter((slot) => slot !== "0").length;
    const { keys, rate } = watched.figures;
    const marks = marksOf(step).filter((bucket) => Number.isInteger(bucket));
    element("table-text").textContent =
      `${buckets.length} buckets of four slots. ${used} of ${4 * buckets.length} slots are in use ` +
      `(${percent(used / (4 * buckets.length))}). Keys: ${keys}. ` +
      `False-positive rate: ${percent(rate)}.` +
      (marks.length ? ` Marked: bucket ${[...new Set(marks)].join(", ")}.` : "");
    element("undo").disabled = watched.history.length === 0;
    element("step").disabled = element("play").disabled = watched.isDone;
    element("play").textContent = this.timer ? "Pause" : "Play";
  }

  stop() {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  step() {
    const step = this.watched.step();
    if (this.watched.made === 1) element("steps").replaceChildren();
    element("steps").append(make("li", {}, sentence(step)));
    element("log").scrollTop = element("log").scrollHeight;
    if (this.watched.isDone) this.stop();
    this.draw(step.kind === "end" ? undefined : step);
  }

  operate(adds) {
    this.stop();
    const key = element("watched-key").value;
    this.watched.operate(key, adds);
    if (adds) this.source.taken(key);
    element("steps").replaceChildren();
    this.step();
  }

  play() {
    if (this.timer) {
      this.stop();
      this.draw();
      return;
    }
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (isStill) while (!this.watched.isDone) this.step();
    else this.timer = setInterval(() => this.step(), PAUSE / Number(element("speed").value));
    element("play").textContent = this.timer ? "Pause" : "Play";
  }

  /** Adds keys until `stops` holds for the operation of one, whose steps are left to be made. */
  fill(most, stops) {
    this.stop();
    for (let number = 0; number < most; number += 1) {
      const key = this.source.peek();
      this.watched.operate(key, true);
      this.source.taken(key);
      if (stops(this.watched.steps)) {
        element("steps").replaceChildren();
        this.step();
        return;
      }
    }
    this.watched.finish();
    this.tell(`Keys in the filter: ${this.watched.figures.keys}.`);
  }

  undo() {
    this.stop();
    this.watched.undo();
    this.tell("The last operation is undone.");
  }

  /** Takes a key that was never added, but matches. */
  trap() {
    this.watched.finish();
    const key = this.watched.stranger();
    if (key === undefined) {
      this.tell("No key that was not added matches yet. Add some more keys.");
      return;
    }
    element("watched-key").value = key;
    this.tell(`"${key}" was never added, but a fingerprint matches it by chance. Press Remove.`);
  }
}

export function startWatch(module, list) {
  const watch = new Watch(module, list);
  const on = (id, work) => element(id).addEventListener("click", work);
  const isMove = (step) => step.kind === "searched" && step.moves > 0;
  const isEnd = (step) => step.error || step.kind === "split";
  element("watch-form").addEventListener("submit", (event) => {
    event.preventDefault();
    watch.operate(true);
  });
  on("watched-remove", () => watch.operate(false));
  on("ten", () => watch.fill(10, () => false));
  on("until-move", () => watch.fill(MOST, (steps) => steps.some(isMove)));
  on("until-full", () => watch.fill(MOST, (steps) => steps.some(isEnd)));
  on("trap", () => watch.trap());
  on("step", () => {
    watch.stop();
    watch.step();
  });
  on("play", () => watch.play());
  on("undo", () => watch.undo());
  on("anew", () => watch.begin());
  element("grows").addEventListener("change", () => watch.begin());
  element("source").addEventListener("change", () => {
    element("own").hidden = element("source").value !== "own";
    watch.begin();
  });
  element("own-keys").addEventListener("input", () => watch.begin());
}
