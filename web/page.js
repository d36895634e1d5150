// Starts the page. build.mjs puts this, the modules that it imports and the WebAssembly module into
// one file, because browsers refuse modules and requests of pages from file://.

import { startFigures } from "./figures.js";
import { filterOf } from "./filter.js";
import { linked } from "./instance.js";
import { Module } from "./module.js";
import { remoteOf } from "./remote-filter.js";
import { startSize } from "./size.js";
import { startUse } from "./use.js";
import { PageModule } from "./wasm.js";
import { startWatch } from "./watch.js";

/* global WASM, FIGURES: the WebAssembly module in base64, and the figures of docs/. */
const bytes = Uint8Array.from(atob(WASM), (letter) => letter.charCodeAt(0));

const { imports, exportsOf } = linked();
WebAssembly.instantiate(bytes, imports).then(({ instance }) => {
  const exports = exportsOf(instance);
  // One for all filters: it keeps a view of the input buffer.
  const module = new Module(() => exports);
  const more = new PageModule(exports);
  startWatch(more);
  startSize((...figures) => more.plan(...figures));
  startUse(filterOf(module), remoteOf(module), more);
  startFigures(FIGURES);
  document.documentElement.dataset.ready = "";
});
