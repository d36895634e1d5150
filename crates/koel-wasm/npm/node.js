// The entry for Node: reads the WebAssembly module from the package's folder.

import { readFileSync } from "node:fs";
import { bind } from "./filter.js";

const bytes = readFileSync(new URL("./koel.wasm", import.meta.url));
const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes));

export const { CuckooFilter, KoelError } = bind(exports);
