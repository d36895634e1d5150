// The package runs the scenarios of docs/conformance, which every door runs. scripts/wasm copies them
// beside this file.

import { CuckooFilter } from "koel-filter";
import { FilterReader } from "koel-filter/reader";
import { conform } from "./scenarios.mjs";

const folder = new URL("conformance/", import.meta.url);
conform("npm", CuckooFilter, folder);
conform("reader", FilterReader, folder);

/** A filter that the main entry builds and changes, and that a reader opens, patches and is asked for. */
class Read {
  constructor(options) {
    this.filter = new CuckooFilter(options);
  }

  static of(reader) {
    const read = Object.create(Read.prototype);
    read.filter = CuckooFilter.fromBytes(reader.toBytes());
    reader.free();
    return read;
  }

  static fromBytes(bytes) {
    return Read.of(FilterReader.fromBytes(bytes));
  }

  patched(patch) {
    return Read.of(this.reader().patched(patch));
  }

  reader() {
    return FilterReader.fromBytes(this.filter.toBytes());
  }

  static {
    for (const name of ["add", "update", "delete", "deleteMany", "refute", "refuteMany", "clear", "merge", "patchTo", "free"]) {
      Read.prototype[name] = function (...args) {
        return this.filter[name](...args.map((arg) => (arg instanceof Read ? arg.filter : arg)));
      };
    }
    for (const name of ["has", "hasMany", "hasUrl", "count", "countMany", "toBytes"]) {
      Read.prototype[name] = function (...args) {
        return this.reader()[name](...args);
      };
    }
    for (const name of ["size", "capacity", "errorRate", "corrections", "growable", "lineOptions"]) {
      Object.defineProperty(Read.prototype, name, { get() { return this.reader()[name]; } });
    }
  }
}

conform("npm", Read, folder, "a reader of filters of the main entry");
