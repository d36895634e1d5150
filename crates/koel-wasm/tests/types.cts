// Compiled, not run: the types for CommonJS.

import koel = require("koel-filter");
import bare = require("koel-filter/init");

const filter: koel.CuckooFilter = new koel.CuckooFilter({ capacity: 10 });
const ready: Promise<void> = bare.init(new Uint8Array());

export = { filter, ready };
