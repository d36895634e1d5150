// The package runs the scenarios of docs/conformance, which every door runs. scripts/wasm copies them
// beside this file.

import { CuckooFilter } from "koel-filter";
import { conform } from "./scenarios.mjs";

conform("npm", CuckooFilter, new URL("conformance/", import.meta.url));
