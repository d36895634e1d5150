// Use it: makes a filter of a list, saves it, opens one, and asks it.

import { element, make, percent, table, whole } from "./format.js";
import { linesOfFile, typed } from "./lines.js";

/** Shows the sentence of an error. */
function report(place, error) {
  place.textContent = `Not possible: ${error.message}.`;
}

function describe(filter) {
  const size = `${whole(filter.size)} ${filter.size === 1 ? "key" : "keys"} in ${whole(filter.byteLength)} bytes`;
  const made = filter.lineOptions ? ` Keys were made of lines with ${filter.lineOptions}.` : "";
  if (filter.lineOptions === undefined) return `${size}, made of lines in a way that this page does not know: no answers.`;
  if (filter.size === 0) return `${size}: an empty filter, in which no key is present.`;
  return `${size}; one absent key in ${whole(1 / filter.currentErrorRate)} is reported as present.${made}`;
}

/** Most questions that are answered at once. */
const MOST = 1000;

/** What a filter says of a key, whose text is given, too. `absent` is what it says of an absent one. */
function answerTo(filter, key, text, absent) {
  try {
    const count = filter.count(key);
    if (count) return `present, ${count === 1 ? "once" : `${whole(count)} times`}`;
    const isAbove = filter.lineOptions.includes("--format hosts") && filter.hasUrl(text);
    return isAbove ? "a domain above it is present" : absent;
  } catch (error) {
    // Text that could be no key of this filter.
    return `no answer: ${error.message}`;
  }
}

/** A file that is dropped on the form is as if it was chosen in its input. */
function takeDrops(form, input) {
  const mark = (isOver) => form.classList.toggle("over", isOver);
  form.addEventListener("dragover", (event) => {
    event.preventDefault();
    mark(true);
  });
  form.addEventListener("dragleave", () => mark(false));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    mark(false);
    if (event.dataTransfer.files.length === 0) return;
    input.files = event.dataTransfer.files;
    input.dispatchEvent(new Event("change"));
  });
}

export function startUse({ CuckooFilter }, module) {
  let asked;
  let absent;

  /**
   * The filter that is asked from now on; none if there is no filter. Where its keys are whole lines
   * of a list of hosts, it cannot tell whether a host is in the list.
   */
  function take(filter, isMisread = false) {
    asked?.free();
    asked = filter;
    absent = isMisread ? "no such line" : "absent for certain";
    element("opened").textContent = filter ? describe(filter) : "No filter yet.";
    element("answers").replaceChildren();
    element("save").hidden = !filter;
  }

  element("build").addEventListener("submit", async (event) => {
    event.preventDefault();
    const place = element("built");
    try {
      const [list] = element("list").files;
      const keys = list ? await linesOfFile(list) : typed(element("keys").value);
      const errorRate = Number(element("rate").value);
      const filter = new CuckooFilter({ capacity: Math.max(keys.length, 1), errorRate });
      // Each line is added, as `koel build` does.
      filter.update(keys, { multi: true });
      const likeness = module.likeness(keys);
      const hint = likeness && ` It looks like ${likeness[0]}, but whole lines are keys here: "koel build --format ${likeness[1]}" reads the hosts.`;
      place.textContent = describe(filter) + (hint ?? "");
      take(filter, likeness !== null);
    } catch (error) {
      take(undefined);
      report(place, error);
    }
  });
  // The last choice counts: what is typed replaces a file.
  element("keys").addEventListener("input", () => {
    element("list").value = "";
  });

  element("save").addEventListener("click", () => {
    const url = URL.createObjectURL(new Blob([asked.toBytes()]));
    const link = document.createElement("a");
    [link.href, link.download] = [url, "keys.koel"];
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  });

  element("file").addEventListener("change", async () => {
    const [file] = element("file").files;
    if (!file) return;
    try {
      take(CuckooFilter.fromBytes(await file.arrayBuffer()));
    } catch (error) {
      // No answer comes from the filter before.
      take(undefined);
      report(element("opened"), error);
    }
  });

  // A list becomes a filter as soon as it is chosen.
  element("list").addEventListener("change", () => element("build").requestSubmit());
  takeDrops(element("build"), element("list"));
  takeDrops(element("ask"), element("file"));

  element("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    const place = element("answers");
    if (!asked) {
      place.textContent = "Make a filter or open a file first.";
      return;
    }
    const keys = typed(element("questions").value);
    const decoder = new TextDecoder();
    const rows = keys.slice(0, MOST).map((key) => [decoder.decode(key), answerTo(asked, key, decoder.decode(key), absent)]);
    const wrong = percent(asked.currentErrorRate);
    place.replaceChildren(
      table(["key", "answer"], rows),
      ...(keys.length > MOST ? [make("p", {}, `Only the first ${whole(MOST)} of ${whole(keys.length)} keys were asked.`)] : []),
      make("p", { class: "key" }, `"present" is wrong for ${wrong} of the keys that are absent.`),
    );
  });
}
