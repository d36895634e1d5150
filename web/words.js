// The steps of an operation in words: one sentence each, for readers who never saw a cuckoo filter.

const quoted = (key) => `"${key}"`;
const times = (count) => (count === 1 ? "once" : `${count} times`);

function located({ buckets, fingerprints, isAsked }) {
  const [[home, other], [first, second]] = [buckets, fingerprints];
  const places = home === other ? `bucket ${home}` : `buckets ${home} and ${other}`;
  const print = first === second ? first : `${first} (in bucket ${other}: ${second})`;
  return `Its hash names ${places}, and the fingerprint ${print}.${isAsked ? " Is it there?" : ""}`;
}

function written({ bucket, old, new: slot, from, names, isCounted }) {
  if (slot === "0") return `${old} is taken out of bucket ${bucket}.`;
  if (from !== null) {
    const name = names?.length ? ` of ${quoted(names[0])}` : "";
    return `The fingerprint ${slot}${name} moves from bucket ${from} to bucket ${bucket}, its other bucket.`;
  }
  const left = isCounted ? "which is counted now" : "which moved";
  const place = old === "0" ? "has an empty slot" : `has the slot of ${old}, ${left}`;
  return `Bucket ${bucket} ${place}: ${slot} goes there. The key itself is not stored.`;
}

function searched({ moves, isRefused }) {
  const begin = "Both buckets are full. A search finds";
  if (moves === null) return `${begin} no way to make room.${isRefused ? "" : " The fingerprint goes beside the table."}`;
  const least = ["a second copy can be counted", "one fingerprint has to move"];
  return `${begin} the shortest way to make room: ${least[moves] ?? `${moves} fingerprints have to move, the last one first`}.`;
}

function counted({ copies }) {
  if (copies === 0) return "The counter beside the table is not needed any more.";
  const more = copies === 1 ? "one more copy, which needs" : `${copies} more copies, which need`;
  return `A counter beside the table counts ${more} no slot.`;
}

/** That a key is not in, although an answer may say so. */
const never = ({ key, wasEver }) => `${quoted(key)} ${wasEver ? "was removed before" : "was never added"}`;

function added({ key, error, wasAdded, count }) {
  if (error) return `${quoted(key)} is refused, and nothing has changed: ${error}.`;
  if (count <= wasAdded) return `${quoted(key)} was added ${wasAdded + 1} times, and is in ${times(count)}: a removal took the rest.`;
  if (wasAdded) return `${quoted(key)} is in ${wasAdded + 1} times. It must be removed as often.`;
  return `${quoted(key)} is in.`;
}

function removed(step) {
  const { key, isRemoved, wasAdded, lost, twins } = step;
  if (!isRemoved && wasAdded) return `Nothing is removed: ${quoted(key)} was added, but a removal took its fingerprint.`;
  if (!isRemoved) return `${never(step)}. Nothing is removed.`;
  const begin = wasAdded ? `${quoted(key)} is removed.` : `${never(step)}, but its fingerprint matched.`;
  if (lost.length > 0) return `${begin} The fingerprint of ${lost.map(quoted).join(", ")} is gone: a key is lost.`;
  const others = twins.length ? twins.map(quoted).join(" or ") : "another key";
  return wasAdded ? begin : `${begin} A fingerprint of ${others} was removed.`;
}

function asked(step) {
  const { key, isFound, wasAdded, isSure, found, twins } = step;
  if (!isFound && wasAdded) return `No: ${quoted(key)} is reported absent although it was added. A removal took its fingerprint.`;
  if (!isFound) return `No: ${quoted(key)} is absent.${isSure ? " That is certain." : ""}`;
  const place = found.length ? `Yes, in bucket ${found[0].bucket}` : "Yes";
  if (wasAdded) return `${place}: ${quoted(key)} is present.`;
  const owner = twins.length ? `, where ${quoted(twins[0])} put it` : "";
  return `${place}${owner}. But ${never(step)}: a false positive.`;
}

/** A step in words. */
export function sentence(step) {
  switch (step.kind) {
    case "located":
      return located(step);
    case "searched":
      return searched(step);
    case "written":
      return written(step);
    case "counted":
      return counted(step);
    case "widened":
      return "The table is full and begins to grow: every slot gets more bits, for the splits to come.";
    case "narrow":
      if (step.left === 0) return "All buckets have wider slots now.";
      return `Some buckets got wider slots, the last ones first. Others have to wait: ${step.left}.`;
    case "moved":
      return "The tables before and after do not tell which fingerprint moved where. This is the one after.";
    case "split":
      return `Bucket ${step.bucket} is split: about half of its fingerprints move to the new bucket ${step.into}.`;
    case "added":
      return added(step);
    case "removed":
      return removed(step);
    case "asked":
      return asked(step);
    default:
      return step.text;
  }
}
