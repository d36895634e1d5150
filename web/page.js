// Starts the page. build.mjs puts this, the modules that it imports and the WebAssembly module into
// one file, because browsers refuse modules and requests of pages from file://.

import { bind } from "./filter.js";
import { startMeasure } from "./measure.js";
import { startUse } from "./use.js";

/* global WASM: the WebAssembly module in base64. */
const bytes = Uint8Array.from(atob(WASM), (letter) => letter.charCodeAt(0));

WebAssembly.instantiate(bytes).then(({ instance }) => {
  const koel = bind(instance.exports);
  startUse(koel);
  startMeasure(koel);
  document.documentElement.dataset.ready = "";
});
