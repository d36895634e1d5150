// A filter in the module: its number there until it is freed, and how its keys are passed.
//
// A batch may run code of its caller between two pieces, which may free the filter. So each piece
// asks for the number again.

import { isInteger, isNoText, write } from "./keys.js";
import { KoelError } from "./module.js";

export class Handle {
  #number;
  #free;
  #lineOptions;

  /** Checks a key, and returns whether it is an integer. Keys that were made of lines are texts. */
  isInteger;

  /** `free` and `lineOptions` are exports for filters of this kind, which take its number. */
  constructor(module, number, free, lineOptions) {
    [this.module, this.#number, this.#free, this.#lineOptions] = [module, number, free, lineOptions];
    this.isInteger = lineOptions(number) === 0 ? isNoText : isInteger;
    module.registry.register(this, () => free(number), this);
  }

  get isFreed() {
    return this.#number === undefined;
  }

  /** The number, unless the filter was freed. */
  get open() {
    if (this.isFreed) throw new KoelError("freed", "this filter was freed");
    return this.#number;
  }

  /** The options of lines that the filter was built with; undefined if this version does not know them. */
  get lineOptions() {
    return this.#lineOptions(this.open) < 0 ? undefined : this.module.text();
  }

  /** Writes a key to the input buffer. Returns its length. */
  put(key) {
    this.isInteger(key);
    return write(key, 0, this.module.input);
  }

  /** A batch whose pieces go to an export of the module: see `Module.batch`. */
  batch(run, keys, read, partly) {
    // Also where there are no keys, a filter that was freed throws.
    this.open;
    return this.module.batch(keys, this.isInteger, (kind, count) => run(this.open, kind, count), read, partly);
  }

  free() {
    if (this.isFreed) return;
    this.module.registry.unregister(this);
    this.#free(this.#number);
    this.#number = undefined;
  }
}
