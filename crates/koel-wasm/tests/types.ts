// Compiled, not run: the types of the package, with the oldest TypeScript that is promised.

import { CuckooFilter, KoelError, type Adding, type Failed, type Options } from "koel-filter";
import { CuckooFilter as Bare, init } from "koel-filter/init";
import { FilterReader, type Key, type Keys } from "koel-filter/reader";
import { RemoteFilter, type Asking, type Opening } from "koel-filter/remote";

const options: Options = { capacity: 1_000_000n, errorRate: 0.01, growable: true, seed: 1 };
const filter: CuckooFilter = new CuckooFilter(options);
const copies: Adding = { multi: true };
const found: boolean[] = filter.hasMany(new BigUint64Array(3));
const areNew: boolean[] = filter.addMany(new Set(["a", 1, -2n]));
const isNew: boolean = filter.add(new Uint8Array(3)) || filter.add("a", copies);
const added: number = filter.update(["a"]) + filter.update(new Set([1]), { multi: false });
const counts: number[] = filter.countMany(["a"] as const);
const bytes: Uint8Array = CuckooFilter.fromBytes(filter.toBytes()).merge(filter).toBytes();
const corrected: boolean = filter.refute("b");
const corrections: number = filter.refuteMany(new Set(["c"])) + filter.corrections;
const patch: Uint8Array = filter.patchTo(filter);
const patched: CuckooFilter = filter.patched(patch).patched(new ArrayBuffer(3));
const reader: FilterReader = FilterReader.fromBytes(bytes).patched(patch);
const asReader: FilterReader = filter;
const asked = (one: FilterReader, key: Key, keys: Keys): boolean[] => [one.has(key), ...one.hasMany(keys)];
const merged: CuckooFilter = filter.merge(reader);
const opening: Opening = { page: 65_536, fetch: (url, options) => fetch(url, options) };
const far: Promise<RemoteFilter> = RemoteFilter.open(new URL("https://example.org/list.koel"), opening);
const asking: Asking = { signal: AbortSignal.abort() };
const farFound: Promise<boolean[]> = far.then((one) => one.hasMany(["a"], asking));
const code = (error: KoelError): string => error.code;
const done = (error: Failed<boolean[]>): boolean[] => error.answers.slice(0, error.done);
const ready: Promise<void> = init(new URL("https://example.org/koel.wasm"));

function scoped(): number {
  using short = new CuckooFilter();
  using bare = new Bare({ secret: new Uint8Array(16) });
  return short.size + bare.size;
}

// @ts-expect-error: a number with a fraction is refused when it runs, a boolean here.
filter.add(true);
// @ts-expect-error: only the filter sets it.
filter.size = 3;
// @ts-expect-error: no such preference.
new CuckooFilter({ prefer: "large" });
// @ts-expect-error: a reader is opened, not built.
new FilterReader();
// @ts-expect-error: a reader changes nothing.
reader.add("a");
// @ts-expect-error: a filter elsewhere is opened, and that takes a while.
new RemoteFilter("https://example.org/list.koel");
// @ts-expect-error: a reader is no filter that can be changed.
const changeable: CuckooFilter = reader;

export { added, farFound, areNew, asked, asReader, changeable, merged, reader, bytes, code, corrected, corrections, counts, done, patched, found, isNew, ready, scoped };
