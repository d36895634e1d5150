// The package runs the scenarios of docs/conformance, which every door runs. scripts/wasm copies them
// beside this file.

import { CuckooFilter } from "koel-filter";
import { FilterReader } from "koel-filter/reader";
import { RemoteFilter } from "koel-filter/remote";
import { conform } from "./scenarios.mjs";

const folder = new URL("conformance/", import.meta.url);
conform("npm", CuckooFilter, folder);
conform("reader", FilterReader, folder);

const CHANGES = ["add", "update", "delete", "deleteMany", "refute", "refuteMany", "clear", "merge", "patchTo", "free"];

/** Gives a class these properties of the filter that `of` returns. */
function lend(to, names, of) {
  for (const name of names) {
    const get = function () {
      const filter = of(this);
      const value = filter[name];
      if (typeof value !== "function") return value;
      return (...args) => value.apply(filter, args.map((arg) => (arg instanceof to ? arg.filter : arg)));
    };
    Object.defineProperty(to.prototype, name, { get });
  }
}

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
    lend(Read, CHANGES, (read) => read.filter);
    const asks = ["has", "hasMany", "hasUrl", "count", "countMany", "toBytes"];
    lend(Read, [...asks, "size", "capacity", "errorRate", "corrections", "growable", "lineOptions"], (read) => read.reader());
  }
}

conform("npm", Read, folder, "a reader of filters of the main entry");

/** A filter of the main entry that is asked where it lies. */
class Far {
  constructor(options, filter = new CuckooFilter(options)) {
    this.filter = filter;
  }

  static fromBytes(bytes) {
    return new Far(undefined, CuckooFilter.fromBytes(bytes));
  }

  patched(patch) {
    return new Far(undefined, this.filter.patched(patch));
  }

  remote() {
    const file = this.filter.toBytes();
    const fetch = async (_, { headers }) => {
      const [first, last] = headers.Range.match(/\d+/g).map(Number);
      return new Response(file.slice(first, last + 1), { status: 206 });
    };
    return RemoteFilter.open("a file of this test", { fetch, page: 64 });
  }

  static {
    lend(Far, [...CHANGES, "count", "countMany", "toBytes", "growable"], (far) => far.filter);
    for (const name of ["has", "hasMany", "hasUrl"]) {
      Far.prototype[name] = async function (...args) {
        return (await this.remote())[name](...args);
      };
    }
    for (const name of ["size", "capacity", "errorRate", "corrections", "lineOptions"]) {
      Object.defineProperty(Far.prototype, name, { get() { return this.remote().then((remote) => remote[name]); } });
    }
  }
}

conform("npm", Far, folder, "a filter of the main entry that lies elsewhere");
