export * from "./index.js";

/**
 * Takes the WebAssembly module of the package, `koel-filter/koel.wasm`: compiled, as bytes, or where
 * it can be fetched. Wait for it before the first filter is made. A second call changes nothing.
 * @throws {KoelError} with code `"init"` if no module is there, or it is another one.
 */
export function init(
  source:
    | WebAssembly.Module
    | Uint8Array
    | ArrayBuffer
    | string
    | URL
    | Response
    | Promise<Response>,
): Promise<void>;
