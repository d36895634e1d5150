// Compiled, not run: the types for CommonJS.

import koel = require("koel-filter");
import bare = require("koel-filter/init");
import reading = require("koel-filter/reader");
import far = require("koel-filter/remote");

const filter: koel.CuckooFilter = new koel.CuckooFilter({ capacity: 10 });
const ready: Promise<void> = bare.init(new Uint8Array());

const reader: reading.FilterReader = reading.FilterReader.fromBytes(filter.toBytes());
const remote: Promise<far.RemoteFilter> = far.RemoteFilter.open("https://example.org/list.koel");

export = { filter, reader, ready, remote };
