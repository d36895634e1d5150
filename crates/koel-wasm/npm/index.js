// The main entry: the WebAssembly module is inside, as text (`inline.js`, which scripts/wasm makes).
// So nothing has to be found, fetched or waited for, whatever bundles this. It is compiled when the
// first filter is made.

import { bind } from "./filter.js";
import { WASM } from "./inline.js";
import { instanceOf } from "./instance.js";
import { bytesOfText } from "./text.js";

export const { CuckooFilter, KoelError } = bind(() => instanceOf(new WebAssembly.Module(bytesOfText(WASM))));
