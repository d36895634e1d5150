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

/** The first two keys with two different buckets. */
function two(watched, keys) {
  const found = [];
  for (const key of keys) {
    if (watched.wouldHave(key, () => true)) found.push(key);
    if (found.length === 2) break;
  }
  return found;
}

const some = (watched) => fill(watched, (_, number) => number < SOME);
const isMove = ({ kind, moves }) => kind === "searched" && moves > 0;
const isRefused = ({ kind, moves }) => kind === "searched" && moves === null;
const isSplit = ({ kind }) => kind === "split";

export const STORIES = [
  {
    name: "Add and ask",
    tell: (watched) => {
      const [first, second] = two(watched, [0, 1, 2, 3, 4, 5, 6, 7].map(bird));
      const [absent] = two(watched, beasts());
      return [
        say("A filter remembers keys in a few bits each. This one has a dozen buckets of four slots."),
        add(first),
        add(second),
        ask(second),
        ask(absent),
        remove(first),
        ask(first),
        say("Absent is always right. Present is right too, but for a false positive now and then."),
      ];
    },
  },
  {
    name: "A false positive",
    tell: (watched) => {
      some(watched);
      const stranger = watched.stranger();
      return [
        say(`${SOME} birds are in. The filter stores their short fingerprints, not their names.`),
        ask(bird(3)),
        ask(stranger),
        say("Longer fingerprints make this as rare as you like. Here they are short, to show it."),
      ];
    },
  },
  {
    name: "A wrong removal",
    tell: (watched) => {
      some(watched);
      const stranger = watched.stranger();
      return [
        say(`${SOME} birds are in. ${stranger} is not, but its fingerprint matches.`),
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
        say("Each entry moved to the other one of its two buckets, so every key is still found."),
      ];
    },
  },
  {
    name: "No room at all",
    tell: (watched) => {
      const next = fill(watched, (key) => !watched.wouldHave(key, isRefused));
      return [
        say(`The filter was built for 24 keys. Nearly all of its slots are in use. Now comes ${next}.`),
        add(next),
        say("A key that is refused changes nothing. A filter may also grow instead."),
        (_, begin) => {
          const grows = begin(true);
          const last = fill(grows, (key) => !grows.wouldHave(key, isSplit));
          return [add(last), say("Growing goes on bucket by bucket: no key is needed again, and no pause is long.")];
        },
      ];
    },
  },
];
