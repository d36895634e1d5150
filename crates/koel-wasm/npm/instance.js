// An instance of the WebAssembly module. The module asks for the host of a URL, which every
// JavaScript can parse (crates/koel-lines/src/url.rs).

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();

const SPECIAL = new Set(["http:", "https:", "ws:", "wss:", "ftp:", "file:"]);

function parsed(text) {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** What an instance imports, and a function that takes it and returns its exports. */
export function linked() {
  let memory;

  /** See crates/koel-lines/src/url.rs. */
  function url(at, length, target, room) {
    const found = parsed(decoder.decode(new Uint8Array(memory.buffer, at >>> 0, length)));
    if (!found) return -1;
    const host = encoder.encode(found.hostname);
    if (host.length <= room) new Uint8Array(memory.buffer, target >>> 0, room).set(host);
    const isSpecial = SPECIAL.has(found.protocol);
    const hasPath = found.pathname.startsWith("/") || found.href.startsWith(`${found.protocol}//`);
    const isOpaque = !isSpecial && !hasPath;
    return (host.length << 2) | (isOpaque << 1) | isSpecial;
  }

  const exportsOf = ({ exports }) => {
    memory = exports.memory;
    return exports;
  };
  return { imports: { koel: { url } }, exportsOf };
}

/** The exports of a new instance of a WebAssembly.Module. */
export function instanceOf(module) {
  const { imports, exportsOf } = linked();
  return exportsOf(new WebAssembly.Instance(module, imports));
}
