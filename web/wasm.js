// What the page asks of the WebAssembly module beyond the npm package: a small table, where a key is
// in it, sizes of filters, and kinds of lists (crates/koel-wasm/src/page.rs).

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** More than this would move the input buffer, of which the filters (module.js) keep a view. */
const LEAST_INPUT = 1 << 12;
const [LINE, COMMENT] = [10, 35];

/** The exports of an instance, for the page. */
export class PageModule {
  constructor(wasm) {
    this.wasm = wasm;
  }

  output() {
    const { memory, koel_output, koel_output_len } = this.wasm;
    return new Uint8Array(memory.buffer, koel_output(), koel_output_len()).slice();
  }

  text() {
    return decoder.decode(this.output());
  }

  /** A result from 0 on, or an exception with the library's sentence. */
  checked(result) {
    if (result < 0) throw new Error(this.text());
    return result;
  }

  /** The output of a function whose result is checked, read as JSON. */
  json(result) {
    this.checked(result);
    return JSON.parse(this.text());
  }

  /** Writes bytes to the input. Returns their number. */
  put(bytes) {
    const at = this.wasm.koel_input(bytes.length);
    new Uint8Array(this.wasm.memory.buffer, at, bytes.length).set(bytes);
    return bytes.length;
  }

  key(text) {
    return this.put(encoder.encode(text));
  }

  /**
   * What the lines of a list look like, and the `--format` of the command for it; null if they may be
   * keys. The first of them tell.
   */
  likeness(lines) {
    const text = new Uint8Array(LEAST_INPUT).fill(LINE);
    let at = 0;
    for (const line of lines) {
      if (line[0] === COMMENT) continue;
      if (at + line.length >= text.length) break;
      text.set(line, at);
      at += line.length + 1;
    }
    return this.json(this.wasm.koel_likeness(this.put(text)));
  }

  /** The rows of `koel plan`; one of the figures is 0. */
  plan(keys, errorRate, memory) {
    return this.json(this.wasm.koel_plan_rows(BigInt(keys), errorRate, BigInt(memory)));
  }
}
