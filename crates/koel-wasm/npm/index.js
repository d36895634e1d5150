// The main entry: the WebAssembly module is inside, as text (`inline.js`, which scripts/wasm makes).
// So nothing has to be found, fetched or waited for, whatever bundles this. It is compiled when the
// first filter is made.

import { bind } from "./filter.js";
import { WASM } from "./inline.js";
import { instanceOf } from "./instance.js";

/** The bytes of hexadecimal digits. */
function decoded(digits) {
  const value = (at) => (digits.charCodeAt(at) + 9 * (digits.charCodeAt(at) >> 6)) & 15;
  const bytes = new Uint8Array(digits.length / 2);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = 16 * value(2 * i) + value(2 * i + 1);
  return bytes;
}

export const { CuckooFilter, KoelError } = bind(() => instanceOf(new WebAssembly.Module(decoded(WASM))));
