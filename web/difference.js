// What an operation changed: a filter is read from its bytes before and after (docs/FORMAT.md), and
// the difference is told in steps, each with the table after it.
//
// A slot keeps its place until it is written, so the slots that differ are those that were written.
// The key is in one of its two buckets. What was in that slot is in the one other slot that has it
// now, and so on. Where two slots have it, or it is in a bucket that was split, no move is told.

/** Bytes of the header, which is in front of the buckets, and zeros behind them. */
const [HEADER, PADDING] = [192, 16];

/** A slot as text of two digits or more; "0" is an empty one. */
export function hexadecimal(slot) {
  return slot === 0 ? "0" : slot.toString(16).padStart(2, "0");
}

/** A filter with plain slots and one segment, as the page builds them. */
export function pictureOf(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const number = (at) => Number(view.getBigUint64(at, true));
  const [base, bits] = [view.getUint32(24, true), bytes[17]];
  const buckets = base * 2 ** bytes[21] + view.getUint32(32, true);
  const slot = (bit) => {
    const [at, shift] = [HEADER + (bit >>> 3), bit & 7];
    const number = bytes.subarray(at, at + 5).reduceRight((number, byte) => 256 * number + byte, 0);
    return hexadecimal(Math.floor(number / 2 ** shift) % 2 ** bits);
  };
  const counters = HEADER + 8 * Math.ceil((buckets * bits) / 16) + PADDING;
  const counter = (at) => [view.getBigUint64(at, true), number(at + 8)];
  return {
    ...{ base, isMarked: bytes[18] === 1, fraction: bytes[19], known: bytes[20] },
    ...{ narrow: view.getUint32(36, true), stashed: view.getUint32(136, true) },
    table: Array.from({ length: buckets }, (_, bucket) => [0, 1, 2, 3].map((i) => slot((4 * bucket + i) * bits))),
    counters: new Map(Array.from({ length: number(120) }, (_, i) => counter(counters + 16 * i))),
  };
}

/** The slot that a table begins to grow with, instead of this one. */
function marked(text, { fraction, known }) {
  const slot = Number.parseInt(text, 16);
  const [core, mark] = [slot >>> fraction, 1 << fraction];
  const bits = mark | (slot & (mark - 1));
  return text === "0" ? text : hexadecimal((core >>> 4) * 2 ** (known + 5) + bits * 16 + (core & 15));
}

/** What a slot of a table that grows keeps when it moves: its core. */
function coreOf(text, { known }) {
  const slot = Number.parseInt(text, 16);
  return `${slot >>> (known + 5)} ${slot & 15}`;
}

/** Whether a slot matches a key whose slot would be `own`: where a table grows, in the bits that it knows. */
export function isMatch(text, own, picture) {
  if (text === "0" || !picture.isMarked) return text === own;
  const knownOf = (slot) => (Number.parseInt(slot, 16) >>> 4) % 2 ** (picture.known + 1);
  const marked = knownOf(text);
  const mark = 2 ** Math.floor(Math.log2(marked));
  return coreOf(text, picture) === coreOf(own, picture) && marked - mark === knownOf(own) % mark;
}

/** The slots of the first table that differ in the second. */
const changesOf = (table, after) =>
  table.flatMap((slots, bucket) =>
    slots.map((old, i) => ({ bucket, i, old, new: after[bucket][i] })).filter((slot) => slot.old !== slot.new),
  );

const written = (table, { bucket, i, new: slot }) => table.with(bucket, table[bucket].with(i, slot));

/** The changes from the slot of a key to the end of its path. None unless they are all, in one order. */
function pathOf(changes, isOfKey, isSame) {
  const path = [];
  let isNext = isOfKey;
  while (path.length < changes.length) {
    const found = changes.filter((change) => !path.includes(change) && isNext(change));
    if (found.length !== 1) return [];
    const [{ bucket, old }] = found;
    isNext = (change) => change.bucket !== bucket && isSame(change.new, old);
    path.push(found[0]);
  }
  return path;
}

/** The counters that differ. */
function counted({ counters: before }, { counters: after }) {
  const names = new Set([...before.keys(), ...after.keys()]);
  const copies = [...names].filter((name) => before.get(name) !== after.get(name)).map((name) => after.get(name) ?? 0);
  return copies.map((copies) => ({ kind: "counted", copies }));
}

/** What added the key of this place: its path, of which the last entry moves first. */
function addition(changes, { buckets, fingerprints }, after, counts, hasSplit) {
  const isSame = (one, two) => (after.isMarked ? coreOf(one, after) === coreOf(two, after) : one === two);
  const isOfKey = (slot) => buckets.some((own, i) => own === slot.bucket && isSame(slot.new, fingerprints[i]));
  const path = pathOf(changes, isOfKey, isSame);
  const isFree = (path.at(-1)?.old ?? "0") === "0";
  const isCounted = !isFree && counts.length > 0;
  // Otherwise what was in the last slot is in a bucket that was split.
  if (!isFree && !isCounted && !hasSplit) return counts;
  const searched = isCounted || (path.length > 1 && isFree) ? [{ kind: "searched", moves: path.length - 1 }] : [];
  const writes = path.map((change, i) => {
    const from = path[i - 1]?.bucket ?? null;
    return { kind: "written", ...change, from, isCounted: isCounted && i === path.length - 1 };
  });
  return [...searched, ...counts, ...writes.reverse()];
}

/** The steps of an operation, from one picture to the next. `place` is where its key is in the end. */
export function differences(before, after, place, adds, isRefused) {
  const steps = [];
  let { table } = before;
  const tell = (step, next = table) => {
    table = next;
    steps.push({ ...step, table });
  };
  const begins = after.isMarked && !before.isMarked;
  if (begins) tell({ kind: "widened" }, table.map((slots) => slots.map((slot) => marked(slot, after))));
  // Bucket n is split into n and n + base * 2^level.
  const halves = after.table.slice(table.length).map((_, i) => {
    const into = table.length + i;
    return { bucket: into - before.base * 2 ** Math.floor(Math.log2(into / before.base)), into };
  });
  const changes = changesOf(table, after.table).filter(({ bucket }) => halves.every((half) => half.bucket !== bucket));
  // Splitting an entry without known bits gives both halves its counter.
  const counts = halves.length > 0 ? [] : counted(before, after);
  const isFull = place.buckets.every((bucket) =>
    table[bucket]?.every((slot) => slot !== "0" && !place.fingerprints.includes(slot)),
  );
  if (isFull && (isRefused || after.stashed > before.stashed)) tell({ kind: "searched", moves: null, isRefused });
  const removal = () => [...counts, ...changes.map((change) => ({ kind: "written", ...change, from: null }))];
  for (const step of adds ? addition(changes, place, after, counts, halves.length > 0) : removal()) {
    tell(step, step.kind === "written" ? written(table, step) : table);
  }
  if (after.isMarked && (begins || after.narrow !== before.narrow)) tell({ kind: "narrow", left: after.narrow });
  for (const half of halves) {
    tell({ kind: "split", ...half }, [...table.with(half.bucket, after.table[half.bucket]), after.table[half.into]]);
  }
  if (changesOf(table, after.table).length > 0) tell({ kind: "moved" }, after.table);
  return steps;
}
