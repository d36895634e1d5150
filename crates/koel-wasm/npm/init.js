// The entry without the WebAssembly module, which `init` takes: a third smaller, and compiled while
// it is downloaded.

import { bind } from "./filter.js";
import { linked } from "./instance.js";
import { isA } from "./keys.js";
import { KoelError } from "./module.js";

let ready;

export const { CuckooFilter } = bind(() => {
  if (ready) return ready;
  throw new KoelError("init", "call init() first, and wait for it");
});

export { KoelError };

const isResponse = (source) => typeof source?.arrayBuffer === "function";

/** The exports of a module, or of its bytes. `name` says where they are from. */
async function started(source, name) {
  const { imports, exportsOf } = linked();
  let made;
  try {
    made = await WebAssembly.instantiate(source, imports);
  } catch ({ message }) {
    throw new KoelError("init", `${name} cannot be instantiated: ${message}`);
  }
  const exports = exportsOf(made.instance ?? made);
  if (exports.koel_build) return exports;
  throw new KoelError("init", `${name} is another WebAssembly module than koel-filter/koel.wasm`);
}

async function fetched(url) {
  try {
    return await fetch(url);
  } catch ({ message }) {
    throw new KoelError("init", `${url} cannot be fetched: ${message}`);
  }
}

/** The exports of a module, of bytes, or of what is at a URL. */
async function exportsOf(source) {
  const isModule = isA(source, "WebAssembly.Module");
  if (isModule || isA(source, "ArrayBuffer") || ArrayBuffer.isView(source)) return started(source, "what init() got");
  const response = isResponse(source) ? source : await fetched(source);
  if (!response.ok) {
    throw new KoelError("init", `${response.url}: the server answered ${response.status}`);
  }
  // Not instantiateStreaming: many static hosts send the file with another content type.
  const bytes = await response.arrayBuffer();
  if (new DataView(bytes).byteLength < 4 || new DataView(bytes).getUint32(0) !== 0x0061736d) {
    throw new KoelError("init", `${response.url}: the server sent no WebAssembly module`);
  }
  return started(bytes, response.url);
}

export async function init(source) {
  const from = await source;
  if (from === undefined || from === null) {
    throw new TypeError("init: expected bytes, a URL, a Response or a WebAssembly.Module");
  }
  ready ??= await exportsOf(from);
}
