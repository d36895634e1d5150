// The entry for browsers and bundlers: fetches the WebAssembly module that lies beside this file.

import { bind } from "./filter.js";

const response = await fetch(new URL("./koel.wasm", import.meta.url));
if (!response.ok) throw new Error(`koel.wasm: the server answered ${response.status}`);
// Not instantiateStreaming: many static hosts send the file with another content type.
const { instance } = await WebAssembly.instantiate(await response.arrayBuffer());

export const { CuckooFilter, KoelError } = bind(instance.exports);
