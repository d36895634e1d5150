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
/** Keys that are asked at once. */
const AT_ONCE = 16;

/** What a filter says of a key that it finds so often. One that lies elsewhere does not count. */
const present = (found) => (found === true ? "present" : `present, ${found === 1 ? "once" : `${whole(found)} times`}`);

/** What a filter says of a key, whose text is given, too. `absent` is what it says of an absent one. */
async function answerTo(filter, key, text, absent) {
  try {
    const found = filter.count ? filter.count(key) : await filter.has(key);
    if (found) return present(found);
    const isAbove = filter.lineOptions.includes("--format hosts") && (await filter.hasUrl(text));
    return isAbove ? "a domain above it is present" : absent;
  } catch (error) {
    if (error.code !== "lines") throw error;
    // Text that could be no key of this filter.
    return `no answer: ${error.message}`;
  }
}

/** What a filter says of each of these keys: rows of a table. Some are asked at once. */
async function rowsOf(filter, keys, absent) {
  const decoder = new TextDecoder();
  const rowOf = async (key) => {
    const text = decoder.decode(key);
    return [text, await answerTo(filter, key, text, absent)];
  };
  const rows = [];
  for (let at = 0; at < keys.length; at += AT_ONCE) {
    rows.push(...(await Promise.all(keys.slice(at, at + AT_ONCE).map(rowOf))));
  }
  return rows;
}

/** What a filter that lies elsewhere has taken so far. */
function trafficOf({ requests, bytesRead, byteLength }) {
  const asked = requests === 1 ? "1 request" : `${whole(requests)} requests`;
  return `Read so far: ${whole(bytesRead)} of its ${whole(byteLength)} bytes, in ${asked}.`;
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

export function startUse(CuckooFilter, RemoteFilter, module) {
  let asked;
  let absent;
  let opening;

  /**
   * The filter that is asked from now on; none if there is no filter. Where its keys are whole lines
   * of a list of hosts, it cannot tell whether a host is in the list.
   */
  function take(filter, isMisread = false) {
    asked?.free();
    [asked, opening] = [filter, undefined];
    absent = isMisread ? "no such line" : "absent for certain";
    element("opened").textContent = filter ? describe(filter) : "No filter yet.";
    element("answers").replaceChildren();
    element("save").hidden = !filter?.toBytes;
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

  element("far").addEventListener("click", async () => {
    take(undefined);
    const place = element("opened");
    place.textContent = "Opening it ...";
    // What is chosen meanwhile counts, and a second address.
    const before = (opening = {});
    try {
      const filter = await RemoteFilter.open(element("address").value.trim());
      if (opening === before) take(filter);
      else filter.free();
    } catch (error) {
      if (opening === before) report(place, error);
    }
  });

  element("address").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    element("far").click();
  });

  // A list becomes a filter as soon as it is chosen.
  element("list").addEventListener("change", () => element("build").requestSubmit());
  takeDrops(element("build"), element("list"));
  takeDrops(element("ask"), element("file"));

  element("ask").addEventListener("submit", async (event) => {
    event.preventDefault();
    const place = element("answers");
    if (!asked) {
      place.textContent = "Make a filter or open a file first.";
      return;
    }
    const filter = asked;
    const keys = typed(element("questions").value);
    try {
      const rows = await rowsOf(filter, keys.slice(0, MOST), absent);
      if (asked !== filter) return;
      const notes = [`"present" is wrong for ${percent(filter.currentErrorRate)} of the keys that are absent.`];
      if (filter.requests) notes.push(trafficOf(filter));
      place.replaceChildren(
        table(["key", "answer"], rows),
        ...(keys.length > MOST ? [make("p", {}, `Only the first ${whole(MOST)} of ${whole(keys.length)} keys were asked.`)] : []),
        ...notes.map((note) => make("p", { class: "key" }, note)),
      );
    } catch (error) {
      if (asked === filter) report(place, error);
    }
  });
}
