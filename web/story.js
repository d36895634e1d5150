// What the picture plays by itself: five short stories. An item of a story is a text, an operation
// on a key, or a function of the story that makes such items when it is reached.

import { beasts, bird } from "./names.js";

/** Keys of the stories that need a table with some entries. */
const SOME = 22;
/** Keys that are added at most while a story waits for something to happen. */
const MOST = 400;

const say = (text) => ({ text });
const add = (key) => ({ add: key });
const ask = (key) => ({ ask: key });
const remove = (key) => ({ remove: key });

/** Adds birds at once, without showing it, as long as `goes` holds for the next one. */
function fill(watched, goes) {
  let number = 0;
  while (number < MOST && goes(bird(number), number)) {
    watched.operate(bird(number), true);
    number += 1;
  }
  watched.finish();
  return bird(number);
}

/** The first two keys with two different buckets that the filter reports so often. */
function two(watched, keys, count) {
  const found = [];
  for (const key of keys) {
    if (watched.count(key) === count && watched.wouldHave(key, () => true)) found.push(key);
    if (found.length === 2) break;
  }
  return found;
}

/** How many of the slots are in use, as text. */
function used({ table }) {
  const slots = table.flat();
  return `${slots.filter((slot) => slot !== "0").length} of ${slots.length}`;
}

const some = (watched) => fill(watched, (_, number) => number < SOME);
const isMove = ({ kind, moves }) => kind === "searched" && moves > 0;
const isRefused = ({ kind, moves }) => kind === "searched" && moves === null;
const isSplit = ({ kind }) => kind === "split";

export const STORIES = [
  {
    name: "Three questions",
    tell: (watched) => {
      some(watched);
      const [absent] = two(watched, beasts(), 0);
      return [
        say(`${watched.figures.keys} birds were added. The filter stores the fingerprints; the names are for you.`),
        ask(bird(1)),
        ask(absent),
        ask(watched.stranger()),
        say("Longer fingerprints make this rarer. Move the slider."),
      ];
    },
  },
  {
    name: "Add and remove",
    tell: (watched) => {
      const [first, second] = two(watched, [0, 1, 2, 3, 4, 5, 6, 7].map(bird), 0);
      return [
        say(`An empty filter: ${watched.table.length} buckets of four slots.`),
        add(first),
        add(second),
        remove(first),
        ask(first),
        ask(second),
      ];
    },
  },
  {
    name: "Wrong removal",
    tell: (watched) => {
      some(watched);
      const stranger = watched.stranger();
      return [
        say(`${watched.figures.keys} birds are in. ${stranger} is not, but its fingerprint matches.`),
        remove(stranger),
        (after) => after.missing().map(ask),
        say("A filter cannot know whose fingerprint it removes. Remove only keys that were added."),
      ];
    },
  },
  {
    name: "Both buckets are full",
    tell: (watched) => {
      const next = fill(watched, (key) => !watched.wouldHave(key, isMove));
      return [
        say(`Many birds are in. Both buckets of the next one, ${next}, are full.`),
        add(next),
        ask(next),
        say("Each fingerprint moved to the other one of its two buckets, so every key is still found."),
      ];
    },
  },
  {
    name: "No room at all",
    tell: (watched) => {
      const next = fill(watched, (key) => !watched.wouldHave(key, isRefused));
      return [
        say(`${used(watched)} slots are in use. Now comes ${next}.`),
        add(next),
        say("A key that is refused changes nothing. A filter may also grow instead: an empty one is filled."),
        (_, begin) => {
          const grows = begin({ grows: true });
          const last = fill(grows, (key) => !grows.wouldHave(key, isSplit));
          return [
            say(`Here ${used(grows)} slots are in use. It gets buckets when ${last} comes.`),
            add(last),
            say("Growing goes on bucket by bucket: no key is needed again, and no pause is long."),
          ];
        },
      ];
    },
  },
];
