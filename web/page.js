// Starts the page. build.mjs puts this, the modules that it imports and the WebAssembly module into
// one file, because browsers refuse modules and requests of pages from file://.

import { startFigures } from "./figures.js";
import { bind } from "./filter.js";
import { linked } from "./instance.js";
import { startSize } from "./size.js";
import { startUse } from "./use.js";
import { Module } from "./wasm.js";
import { startWatch } from "./watch.js";

/* global WASM, FIGURES: the WebAssembly module in base64, and the figures of docs/. */
const bytes = Uint8Array.from(atob(WASM), (letter) => letter.charCodeAt(0));

const { imports, exportsOf } = linked();
WebAssembly.instantiate(bytes, imports).then(({ instance }) => {
  const exports = exportsOf(instance);
  const koel = bind(() => exports);
  const module = new Module(exports);
  startWatch(module);
  startSize((...figures) => module.plan(...figures));
  startUse(koel, module);
  startFigures(FIGURES);
  document.documentElement.dataset.ready = "";
});
