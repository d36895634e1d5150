// Watch it: a small table, drawn bucket by bucket, and each operation step by step. It plays a story
// by itself, until the reader does something. Where motion is unwanted nothing plays: the reader makes
// each step.

import { Drawing, marksOf } from "./drawing.js";
import { element, make, percent, whole } from "./format.js";
import { bird } from "./names.js";
import { STORIES } from "./story.js";
import { Watched } from "./watched.js";
import { sentence } from "./words.js";

/** Milliseconds for a step, and for each letter of its sentence: the time to read it. */
const [PAUSE, LETTER] = [700, 30];

/** What stands above the steps of an operation. */
const HEADINGS = { add: (key) => `Add ${key}`, ask: (key) => `Was ${key} added?`, remove: (key) => `Remove ${key}` };

const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

const counted = (number, name) => `${number} ${name}${number === 1 ? "" : "s"}`;

/** How the slots are filled, and with which keys where that is known: some are copies or left over. */
function filled(buckets, keys) {
  const slots = buckets.flat();
  const used = slots.filter((slot) => slot !== "0").length;
  const text = `${counted(used, "fingerprint")} in ${slots.length} slots (${buckets.length} buckets of four)`;
  if (keys === undefined) return `${text}.`;
  return `${counted(keys, "key")}: ${text}${keys > used ? ` and ${keys - used} beside the table` : ""}.`;
}

class Watch {
  constructor(module) {
    this.module = module;
    this.drawing = new Drawing(element("table"));
    this.tell(0);
  }

  /** An empty table, and nothing to come. */
  begin(settings) {
    this.watched?.free();
    this.watched = new Watched(this.module, settings);
    this.asked = undefined;
    return this.watched;
  }

  /** Begins a story, and plays it. */
  tell(number) {
    this.story = number;
    [...element("stories").children].forEach((button, i) => button.setAttribute("aria-pressed", i === number));
    element("steps").replaceChildren();
    this.coming = STORIES[number].tell(this.begin());
    this.propose();
    this.next();
    this.play();
  }

  /** What the reader does ends the story. */
  interrupt() {
    this.coming = [];
    this.watched.finish();
    [...element("stories").children].forEach((button) => button.setAttribute("aria-pressed", false));
  }

  get isDone() {
    return this.watched.isDone && this.coming.length === 0;
  }

  /** Makes a step of the operation, or begins the next item of the story. */
  next() {
    if (this.watched.isDone) this.take(this.coming.shift());
    if (this.watched.isDone) return;
    const step = this.watched.step();
    const line = make("li", this.heading ? { class: "first" } : {}, sentence(step));
    if (this.heading) line.prepend(make("b", {}, this.heading));
    this.heading = undefined;
    element("steps").append(line);
    this.draw(step);
    element("log").scrollTop = element("log").scrollHeight;
  }

  take(item) {
    if (typeof item === "function") {
      this.coming.unshift(...item(this.watched, (settings) => this.begin(settings)));
      return this.take(this.coming.shift());
    }
    if (item === undefined) return undefined;
    const [verb, key] = Object.entries(item)[0];
    if (verb === "text") return this.watched.show([{ kind: "text", text: key }]);
    this.heading = HEADINGS[verb](key);
    this.asked = verb === "ask" ? key : undefined;
    return verb === "ask" ? this.watched.ask(key) : this.watched.operate(key, verb === "add");
  }

  draw(step) {
    const { watched } = this;
    const buckets = watched.table;
    const nameOf = (bucket, slot) => watched.names(bucket, slot)[0] ?? "";
    this.drawing.draw(buckets, step, nameOf);
    const marks = marksOf(step).filter((bucket) => Number.isInteger(bucket));
    element("table-text").textContent =
      filled(buckets, watched.isBetween ? undefined : watched.figures.keys) +
      (marks.length ? ` Marked: bucket ${[...new Set(marks)].join(", ")}.` : "");
    this.drawRate();
    this.buttons();
  }

  /** The false-positive rate, measured again after each change. */
  drawRate() {
    const { figures, settings } = this.watched;
    if (this.drawn === figures) return;
    this.drawn = figures;
    element("grows").checked = settings.grows;
    element("bits").value = settings.bits;
    element("bits-text").textContent = settings.bits;
    const { share, keys } = this.watched.reported();
    element("rate-text").textContent =
      `False positives: ${percent(figures.rate)} expected, ${percent(share)} of ${whole(keys)} measured.`;
  }

  buttons() {
    element("undo").disabled = this.watched.history.length === 0;
    element("step").disabled = this.isDone;
    element("play").textContent = this.timer ? "Pause" : this.isDone ? "Play again" : isStill() ? "All steps" : "Play";
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.buttons();
  }

  /** Makes the steps that are to come, each after the time to read the one before. */
  play() {
    this.stop();
    if (isStill()) return;
    const letters = element("steps").lastChild?.textContent.length ?? 0;
    this.timer = setTimeout(() => {
      this.next();
      if (this.isDone) this.stop();
      else this.play();
    }, PAUSE + LETTER * letters);
    this.buttons();
  }

  /** An operation of the reader, which plays by itself. */
  operate(item) {
    this.interrupt();
    this.coming = [item];
    this.next();
    this.play();
  }

  note(text) {
    this.operate({ text });
  }

  /** Adds birds at once, up to the first that is refused. */
  fill(keys) {
    this.interrupt();
    let added = 0;
    while (added < keys && this.watched.operate(element("watched-key").value, true)) {
      added += 1;
      this.propose();
    }
    this.watched.finish();
    const refused = added < keys ? ` "${element("watched-key").value}" is refused: no room was found.` : "";
    this.note(`${counted(added, "key")} ${added === 1 ? "was" : "were"} added at once.${refused}`);
  }

  /** The same keys in a filter with other settings, which gets the last question again. */
  rebuild(settings) {
    this.interrupt();
    const refused = this.watched.rebuild(settings);
    const { settings: now, figures } = this.watched;
    const lost = refused.length ? ` No room was found for ${refused.join(", ")}.` : "";
    const kind = `${now.bits}-bit fingerprints, which ${now.grows ? "grows when full" : "keeps its size"}`;
    this.coming = this.asked === undefined ? [] : [{ ask: this.asked }];
    this.coming.unshift({ text: `Built anew: a filter with ${kind}. ${counted(figures.keys, "key")} added again.${lost}` });
    this.next();
    this.play();
  }

  /** Writes the first bird that is not in into the field. */
  propose() {
    let number = 0;
    while (this.watched.copies(bird(number)) > 0) number += 1;
    element("watched-key").value = bird(number);
  }
}

export function startWatch(module) {
  element("stories").replaceChildren(
    ...STORIES.map(({ name }) => make("button", { type: "button" }, name)),
  );
  const watch = new Watch(module);
  const on = (id, work) => element(id).addEventListener("click", work);
  const key = () => element("watched-key").value;
  [...element("stories").children].forEach((button, number) => {
    button.addEventListener("click", () => watch.tell(number));
  });
  element("watch-form").addEventListener("submit", (event) => {
    event.preventDefault();
    watch.operate({ add: key() });
    watch.propose();
  });
  on("watched-ask", () => watch.operate({ ask: key() }));
  on("watched-remove", () => watch.operate({ remove: key() }));
  on("ten", () => watch.fill(10));
  on("anew", () => {
    watch.interrupt();
    element("steps").replaceChildren();
    watch.begin(watch.watched.settings);
    watch.propose();
    watch.note("The table is empty. Add a key.");
  });
  const { grows, bits } = { grows: element("grows"), bits: element("bits") };
  grows.addEventListener("change", () => watch.rebuild({ grows: grows.checked }));
  bits.addEventListener("input", () => watch.rebuild({ bits: Number(bits.value) }));
  on("step", () => {
    watch.stop();
    watch.next();
  });
  on("play", () => {
    if (watch.timer) watch.stop();
    else if (watch.isDone) watch.tell(watch.story);
    else if (isStill()) while (!watch.isDone) watch.next();
    else watch.play();
  });
  on("undo", () => {
    watch.interrupt();
    watch.watched.undo();
    watch.note("The last change is undone.");
  });
}
