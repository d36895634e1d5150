// The main entry for Vercel's edge runtime, which compiles no bytes: its bundlers make a
// WebAssembly.Module of an import with `?module`.

import { bind } from "./filter.js";
import { instanceOf } from "./instance.js";
import module from "./koel.wasm?module";

export const { CuckooFilter, KoelError } = bind(() => instanceOf(module));
