// The entry for programs that only ask: a smaller WebAssembly module, which is inside as text
// (`inline-reader.js`, which scripts/wasm makes), and the class FilterReader. As index.js otherwise.

import { bindReader } from "./ask.js";
import { WASM } from "./inline-reader.js";
import { instanceOf } from "./instance.js";
import { bytesOfText } from "./text.js";

export const { FilterReader, KoelError } = bindReader(() => instanceOf(new WebAssembly.Module(bytesOfText(WASM))));
