// The entry remote.js for Vercel's edge runtime, which compiles no bytes: its bundlers make a
// WebAssembly.Module of an import with `?module`.

import { bindRemote } from "./remote-filter.js";
import { instanceOf } from "./instance.js";
import module from "./remote.wasm?module";

export const { RemoteFilter, KoelError } = bindRemote(() => instanceOf(module));
