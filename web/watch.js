// Watch it: a small table, drawn bucket by bucket, and each operation step by step. It plays a story
// by itself, until the reader does something.

import { Drawing, marksOf } from "./drawing.js";
import { element, make, percent } from "./format.js";
import { bird } from "./names.js";
import { STORIES } from "./story.js";
import { Watched } from "./watched.js";
import { sentence } from "./words.js";

/** Milliseconds for a step, and for each letter of its sentence: the time to read it. */
const [PAUSE, LETTER] = [700, 30];

const VERBS = { add: "Add", ask: "Ask for", remove: "Remove" };

class Watch {
  constructor(module) {
    this.module = module;
    this.drawing = new Drawing(element("table"));
    this.tell(0);
  }

  /** An empty table, and nothing to come. */
  begin(grows) {
    this.watched?.free();
    this.watched = new Watched(this.module, grows);
    element("grows").checked = grows;
    return this.watched;
  }

  /** Begins a story, and plays it. */
  tell(number) {
    this.story = number;
    [...element("stories").children].forEach((button, i) => button.setAttribute("aria-pressed", i === number));
    element("steps").replaceChildren();
    this.coming = STORIES[number].tell(this.begin(false));
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
    const [, key] = this.heading ?? [];
    const line = make("li", key === undefined ? {} : { class: "first" }, sentence(step));
    if (this.heading) line.prepend(make("b", {}, `${this.heading[0]} ${key}`));
    this.heading = undefined;
    element("steps").append(line);
    element("log").scrollTop = element("log").scrollHeight;
    this.draw(step);
    return line.textContent.length;
  }

  take(item) {
    if (typeof item === "function") {
      this.coming.unshift(...item(this.watched, (grows) => this.begin(grows)));
      return this.take(this.coming.shift());
    }
    if (item === undefined) return undefined;
    const [verb, key] = Object.entries(item)[0];
    if (verb === "text") return this.watched.show([{ kind: "text", text: key }]);
    this.heading = [VERBS[verb], key];
    return verb === "ask" ? this.watched.ask(key) : this.watched.operate(key, verb === "add");
  }

  draw(step) {
    const { watched } = this;
    const buckets = watched.table;
    const nameOf = (bucket, slot) => watched.names(bucket, slot)[0] ?? "";
    this.drawing.draw(buckets, step, nameOf);
    const used = buckets.flat().filter((slot) => slot !== "0").length;
    const { keys, rate } = watched.figures;
    const marks = marksOf(step).filter((bucket) => Number.isInteger(bucket));
    element("table-text").textContent =
      `${buckets.length} buckets of four slots, ${used} of ${4 * buckets.length} in use. Keys: ${keys}. ` +
      `False-positive rate: ${percent(rate)}.` +
      (marks.length ? ` Marked: bucket ${[...new Set(marks)].join(", ")}.` : "");
    this.buttons();
  }

  buttons() {
    element("undo").disabled = this.watched.history.length === 0;
    element("step").disabled = this.isDone;
    element("play").textContent = this.timer ? "Pause" : this.isDone ? "Play again" : "Play";
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.buttons();
  }

  /** Makes the steps that are to come, each after the time to read the one before. */
  play() {
    this.stop();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      while (!this.isDone) this.next();
      return;
    }
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

  fill(keys) {
    this.interrupt();
    for (let number = 0; number < keys; number += 1) {
      this.watched.operate(element("watched-key").value, true);
      this.propose();
    }
    this.watched.finish();
    this.note(`${keys} keys were added at once. The filter has ${this.watched.figures.keys}.`);
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
  const anew = () => {
    watch.interrupt();
    element("steps").replaceChildren();
    watch.begin(element("grows").checked);
    watch.propose();
    watch.note("The table is empty. Add a key.");
  };
  on("anew", anew);
  element("grows").addEventListener("change", anew);
  on("step", () => {
    watch.stop();
    watch.next();
  });
  on("play", () => {
    if (watch.timer) watch.stop();
    else if (watch.isDone) watch.tell(watch.story);
    else watch.play();
  });
  on("undo", () => {
    watch.interrupt();
    watch.watched.undo();
    watch.note("The last change is undone.");
  });
  watch.propose();
}
