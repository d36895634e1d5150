// Compiled, not run: the types of the package.

import { CuckooFilter, KoelError, type Options } from "koel-filter";

const options: Options = { capacity: 1_000_000n, errorRate: 0.01, growable: true, seed: 1 };
const filter: CuckooFilter = new CuckooFilter(options).add("a").addMany(["a", 1, 2n]);
const found: boolean[] = filter.hasMany(new BigUint64Array(3));
const counts: number[] = filter.countMany(["a"] as const);
const bytes: Uint8Array = CuckooFilter.fromBytes(filter.toBytes().buffer).toBytes();
const code = (error: KoelError): string => error.code;

// @ts-expect-error: a number with a fraction is refused when it runs, a boolean here.
filter.add(true);
// @ts-expect-error: only the filter sets it.
filter.size = 3;
// @ts-expect-error: no such preference.
new CuckooFilter({ prefer: "large" });

export { bytes, code, counts, found };
