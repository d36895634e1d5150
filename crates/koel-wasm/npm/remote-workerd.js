// The entry remote.js for workerd, which compiles no bytes: its bundler makes a WebAssembly.Module of
// an import.

import { bindRemote } from "./remote-filter.js";
import { instanceOf } from "./instance.js";
import module from "./remote.wasm";

export const { RemoteFilter, KoelError } = bindRemote(() => instanceOf(module));
