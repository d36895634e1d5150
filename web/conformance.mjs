// The module of the page runs the scenarios of docs/conformance, by the classes of the npm package.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { bind } from "../crates/koel-wasm/npm/filter.js";
import { instanceOf } from "../crates/koel-wasm/npm/instance.js";
import { conform } from "../crates/koel-wasm/tests/scenarios.mjs";

const module = readFileSync(new URL("npm/page.wasm", pathToFileURL(`${process.env.TARGET}/`)));
const { CuckooFilter } = bind(() => instanceOf(new WebAssembly.Module(module)));

conform("page", CuckooFilter, new URL("../docs/conformance/", import.meta.url));
