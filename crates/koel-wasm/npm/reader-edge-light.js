// The entry reader.js for Vercel's edge runtime, which compiles no bytes: its bundlers make a
// WebAssembly.Module of an import with `?module`.

import { bindReader } from "./ask.js";
import { instanceOf } from "./instance.js";
import module from "./reader.wasm?module";

export const { FilterReader, KoelError } = bindReader(() => instanceOf(module));
