// The entry for programs that ask filters elsewhere: a smaller WebAssembly module, which is inside as
// text (`inline-remote.js`, which scripts/wasm makes), and the class RemoteFilter. As index.js otherwise.

import { bindRemote } from "./remote-filter.js";
import { WASM } from "./inline-remote.js";
import { instanceOf } from "./instance.js";
import { bytesOfText } from "./text.js";

export const { RemoteFilter, KoelError } = bindRemote(() => instanceOf(new WebAssembly.Module(bytesOfText(WASM))));
