// The steps of an operation in words: one sentence each, for readers who never saw a cuckoo filter.

const quoted = (key) => `"${key}"`;

function located({ key, buckets, fingerprints }) {
  const [[home, other], [first, second]] = [buckets, fingerprints];
  const places = home === other ? `one bucket, ${home},` : `two buckets, ${home} and ${other},`;
  const print = first === second ? first : `${first} (in the second bucket ${second})`;
  return `The hash of ${quoted(key)} names ${places} and a fingerprint, ${print}.`;
}

function compared({ found, fingerprints }) {
  if (found.length === 0) return `No slot of these buckets has ${fingerprints[0]}.`;
  return `A slot of bucket ${found[0].bucket} has ${found[0].slot}.`;
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

function searched({ moves }) {
  const begin = "Both buckets are full. A search finds";
  if (moves === null) return `${begin} no way to make room.`;
  const entries = ["a second copy can be counted", "one entry has to move"][moves] ?? `${moves} entries have to move, the last one first`;
  return `${begin} the shortest way to make room: ${entries}.`;
}

function counted({ copies }) {
  if (copies === 0) return "The counter beside the table is not needed any more.";
  const more = copies === 1 ? "one more copy, which needs" : `${copies} more copies, which need`;
  return `A counter beside the table counts ${more} no slot.`;
}

function added({ key, error, wasAdded }) {
  if (error) return `${quoted(key)} is refused, and nothing has changed: ${error}.`;
  if (wasAdded) return `${quoted(key)} is in ${wasAdded + 1} times. It must be removed as often.`;
  return `${quoted(key)} is in.`;
}

function removed({ key, isRemoved, wasAdded, missing, twins }) {
  if (!isRemoved) return `${quoted(key)} was never added. Nothing is removed.`;
  const begin = wasAdded ? "" : `${quoted(key)} was never added, but its fingerprint matched. `;
  if (missing.length === 0) return wasAdded ? `${quoted(key)} is removed.` : `${begin}A copy of ${quoted(twins[0])} was removed.`;
  const names = missing.map(quoted).join(", ");
  return `${begin}The fingerprint of ${names} was removed: a key is lost.`;
}

function asked({ isFound, key, wasAdded, twins }) {
  if (!isFound) return `${quoted(key)} is absent. That is certain.`;
  if (wasAdded) return `${quoted(key)} is present.`;
  const other = twins.length ? `: ${quoted(twins[0])} has the same fingerprint in the same bucket` : "";
  return `${quoted(key)} is reported as present, but was never added. That is a false positive${other}.`;
}

/** A step in words. */
export function sentence(step) {
  switch (step.kind) {
    case "located":
      return located(step);
    case "compared":
      return compared(step);
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
      return "The tables before and after do not tell which entry moved where. This is the one after.";
    case "split":
      return `Bucket ${step.bucket} is split: about half of its entries move to the new bucket ${step.into}.`;
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
