// The entry without the WebAssembly module, which `init` takes: a third smaller, and compiled while
// it is downloaded.

import { bind, KoelError } from "./filter.js";

let ready;

export const { CuckooFilter } = bind(() => {
  if (ready) return ready.exports;
  throw new KoelError("init", "call init() first, and wait for it");
});

export { KoelError };

const isModule = (source) => Object.prototype.toString.call(source) === "[object WebAssembly.Module]";
const isResponse = (source) => typeof source?.arrayBuffer === "function";

/** The instance of a module, of bytes, or of what is at a URL. */
async function instanceOf(source) {
  if (isModule(source)) return new WebAssembly.Instance(source);
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) {
    return (await WebAssembly.instantiate(source)).instance;
  }
  const response = isResponse(source) ? source : await fetch(source);
  if (!response.ok) {
    throw new KoelError("init", `${response.url}: the server answered ${response.status}`);
  }
  // Not instantiateStreaming: many static hosts send the file with another content type.
  const bytes = await response.arrayBuffer();
  if (new DataView(bytes).byteLength < 4 || new DataView(bytes).getUint32(0) !== 0x0061736d) {
    throw new KoelError("init", `${response.url}: the server sent no WebAssembly module`);
  }
  return (await WebAssembly.instantiate(bytes)).instance;
}

export async function init(source) {
  const from = await source;
  if (from === undefined || from === null) {
    throw new TypeError("init: expected bytes, a URL, a Response or a WebAssembly.Module");
  }
  ready ??= await instanceOf(from);
}
