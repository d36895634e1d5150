// The entry reader.js for workerd, which compiles no bytes: its bundler makes a WebAssembly.Module of
// an import.

import { bindReader } from "./ask.js";
import { instanceOf } from "./instance.js";
import module from "./reader.wasm";

export const { FilterReader, KoelError } = bindReader(() => instanceOf(module));
