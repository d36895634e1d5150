// The main entry for workerd, which compiles no bytes: its bundler makes a WebAssembly.Module of an
// import.

import { bind } from "./filter.js";
import { instanceOf } from "./instance.js";
import module from "./koel.wasm";

export const { CuckooFilter, KoelError } = bind(() => instanceOf(module));
