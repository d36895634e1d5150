// The npm package in programs as users build and run them: Node with both kinds of modules, esbuild,
// webpack and Vite, a page without a bundler, a service worker, and workerd. Chromium runs what is
// made for browsers. scripts/wasm installs the tools, and sets CHROMIUM.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { after, before, test } from "node:test";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import esbuild from "esbuild";
import { Miniflare } from "miniflare";
import { chromium } from "playwright-core";
import { CuckooFilter } from "koel-filter";
import * as vite from "vite";
import webpack from "webpack";

const require = createRequire(import.meta.url);
const here = fileURLToPath(new URL(".", import.meta.url));
const folder = join(here, "programs");
const path = (...names) => join(folder, ...names);
mkdirSync(folder, { recursive: true });
const write = (name, text) => (writeFileSync(path(name), text), path(name));

const WORK = `
  const filter = new CuckooFilter({ capacity: 100 });
  filter.add("ada");
  const answer = [filter.has("ada"), filter.has("grace"), filter.size].join();
`;
const built = new CuckooFilter({ capacity: 100 });
built.add("ada");
const READ = `
  const filter = FilterReader.fromBytes(new Uint8Array([${built.toBytes()}]));
  const answer = [filter.has("ada"), filter.has("grace"), filter.size].join();
`;
const FAR = `
  const file = new Uint8Array([${built.toBytes()}]);
  const fetch = async (url, { headers }) => {
    const [first, last] = headers.Range.match(/\\d+/g).map(Number);
    return new Response(file.slice(first, last + 1), { status: 206 });
  };
  const filter = await RemoteFilter.open("list.koel", { fetch });
  const answer = [await filter.has("ada"), await filter.has("grace"), filter.size].join();
`;
/** The entries that need no initialisation: what a program imports, and what it does. */
const ENTRIES = [
  { entry: "koel-filter", name: "main", load: `import { CuckooFilter } from "koel-filter";`, work: WORK },
  { entry: "koel-filter/reader", name: "reader", load: `import { FilterReader } from "koel-filter/reader";`, work: READ },
  { entry: "koel-filter/remote", name: "remote", load: `import { RemoteFilter } from "koel-filter/remote";`, work: FAR },
];
const MANIFEST = JSON.parse(readFileSync(new URL(import.meta.resolve("koel-filter/package.json")), "utf8"));
const EXPECTED = "true,false,1";
for (const one of ENTRIES) {
  const shown = `globalThis.answer = answer;\nif (typeof process === "object") console.log(answer);`;
  one.main = `(async () => {${one.work}\n${shown}\n})();`;
  one.program = write(`${one.name}.js`, `${one.load}\n${one.main}`);
}
const bare = write(
  "bare.js",
  `import { CuckooFilter, init } from "koel-filter/init";
  globalThis.begin = async (source) => { await init(source); ${WORK} return answer; };`,
);
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm" };
let [browser, server, host] = [];
before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
  server = createServer(({ url }, response) => {
    try {
      const bytes = readFileSync(join(here, url));
      response.setHeader("content-type", TYPES[extname(url)] ?? "").end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  host = `http://127.0.0.1:${server.address().port}`;
});
after(async () => {
  await browser.close();
  server.close();
});

/** What `work` returns for a page of this address, on which nothing may fail. */
async function onPage(url, work) {
  const page = await browser.newPage();
  const failures = [];
  page.on("pageerror", (error) => failures.push(String(error)));
  await page.goto(url);
  const result = await work(page);
  assert.deepEqual(failures, []);
  await page.close();
  return result;
}

/** The answer of a program that a page has loaded. */
async function answered(page) {
  await page.waitForFunction(() => globalThis.answer);
  return page.evaluate(() => globalThis.answer);
}

/** A page with one script. */
const pageOf = (name, type = "text/javascript") => {
  write(`${name}.html`, `<!doctype html><script type="${type}" src="./${name}.js"></script>`);
  return `${host}/programs/${name}.html`;
};
const node = (...args) => execFileSync(process.execPath, args, { encoding: "utf8" }).trim();

test("integers of 64 bits are keys of a required class", () => {
  const filter = new (require("koel-filter").CuckooFilter)({ capacity: 9 });
  assert.ok(filter.add(-1) && filter.has(2n ** 64n - 1n));
});

for (const { entry, name, program, load, work, main } of ENTRIES) {
  const file = (suffix) => `${name}-${suffix}`;

  test(`Node loads ${entry}, also with require`, () => {
    const required = load.replace(/^import (.*) from (.*);$/, "const $1 = require($2);");
    assert.equal(node(write(file("program.cjs"), `${required}\n${main}`)), EXPECTED);
    assert.equal(node(program), EXPECTED);
  });

  for (const format of ["cjs", "esm"]) {
    test(`esbuild makes a program of ${entry} for Node: ${format}`, async () => {
      const outfile = path(file(`esbuild.${format === "cjs" ? "cjs" : "mjs"}`));
      await esbuild.build({ entryPoints: [program], bundle: true, platform: "node", format, outfile });
      assert.equal(node(outfile), EXPECTED);
    });
  }

  test(`esbuild makes a script of ${entry} for browsers, as small as it can`, async () => {
    const outfile = path(file("esbuilt.js"));
    await esbuild.build({ entryPoints: [program], bundle: true, minify: true, format: "iife", outfile });
    assert.equal(await onPage(pageOf(file("esbuilt")), answered), EXPECTED);
  });

  test(`webpack makes a script of ${entry} for browsers`, async () => {
    const output = { path: folder, filename: file("webpacked.js") };
    const settings = { mode: "production", entry: program, context: here, output, performance: false };
    const stats = await new Promise((resolve, reject) =>
      webpack(settings, (error, stats) => (error ? reject(error) : resolve(stats))),
    );
    assert.deepEqual([stats.hasErrors(), stats.hasWarnings()], [false, false], stats.toString());
    assert.equal(await onPage(pageOf(file("webpacked")), answered), EXPECTED);
  });

  test(`Vite serves ${entry} while one develops, and builds it`, async () => {
    const root = path(file("vite"));
    mkdirSync(root, { recursive: true });
    write(`${file("vite")}/program.js`, readFileSync(program));
    write(`${file("vite")}/index.html`, `<!doctype html><script type="module" src="./program.js"></script>`);
    const settings = { root, configFile: false, logLevel: "error", cacheDir: path(file("vite-cache")) };
    const serving = { ...settings, server: { port: 0, host: "127.0.0.1" } };
    const served = await vite.createServer(serving);
    await served.listen();
    const { port } = served.httpServer.address();
    assert.equal(await onPage(`http://127.0.0.1:${port}/index.html`, answered), EXPECTED);
    await served.close();
    const build = { outDir: path(file("vited")), emptyOutDir: true, chunkSizeWarningLimit: 10_000 };
    await vite.build({ ...settings, base: "./", build });
    assert.equal(await onPage(`${host}/programs/${file("vited")}/index.html`, answered), EXPECTED);
  });

  test(`a page of ${entry} needs no bundler`, async () => {
    const { default: way } = MANIFEST.exports[entry.replace("koel-filter", ".")].default;
    const map = JSON.stringify({ imports: { [entry]: `/node_modules/koel-filter/${way}` } });
    write(file("plain.html"), `<!doctype html><script type="importmap">${map}</script>
      <script type="module" src="./${name}.js"></script>`);
    assert.equal(await onPage(`${host}/programs/${file("plain.html")}`, answered), EXPECTED);
  });

  for (const [type, format] of [["classic", "iife"], ["module", "esm"]]) {
    test(`a service worker uses ${entry}: ${type}`, async () => {
      const worker = `${load}
        addEventListener("message", async (event) => { ${work} event.source.postMessage(answer); });`;
      const script = file(`worker-${type}`);
      const entryPoints = [write(`${script}.src.js`, worker)];
      await esbuild.build({ entryPoints, bundle: true, format, outfile: path(`${script}.js`) });
      write("empty.html", "<!doctype html>");
      const ask = async ([name, type]) => {
        const told = new Promise((resolve) => {
          navigator.serviceWorker.onmessage = (event) => resolve(event.data);
        });
        const { installing } = await navigator.serviceWorker.register(`./${name}.js`, { type });
        installing.postMessage("begin");
        return told;
      };
      const page = `${host}/programs/empty.html`;
      assert.equal(await onPage(page, (page) => page.evaluate(ask, [script, type])), EXPECTED);
    });
  }

  test(`workerd gets the module of ${entry} compiled`, async () => {
    // As wrangler does it.
    assert.equal(await compiled(file("workerd"), load, work, { conditions: ["workerd", "worker", "browser"] }), EXPECTED);
  });

  test(`Vercel's edge runtime gets the module of ${entry} compiled`, async () => {
    // Next.js makes a module of an import with "?module". workerd stands for the runtime: it compiles no bytes either.
    const plugin = {
      name: "?module",
      setup: (build) => build.onResolve({ filter: /\.wasm\?module$/ }, (found) => ({ path: join(found.resolveDir, found.path.slice(0, -7)) })),
    };
    const settings = { conditions: ["edge-light", "browser"], plugins: [plugin] };
    assert.equal(await compiled(file("edge"), load, work, settings), EXPECTED);
  });
}

/** What a worker answers in workerd, which compiles no bytes. */
async function compiled(name, load, work, settings) {
  const worker = `${load}
    export default { async fetch() { ${work} return new Response(answer); } };`;
  const [outdir, loader] = [path(name), { ".wasm": "copy" }];
  const entryPoints = [write(`${name}.src.js`, worker)];
  await esbuild.build({ entryPoints, bundle: true, format: "esm", loader, outdir, ...settings });
  const rules = [{ type: "CompiledWasm", include: ["**/*.wasm"] }];
  const runs = { modules: true, modulesRules: rules, compatibilityDate: "2026-01-01" };
  const miniflare = new Miniflare({ ...runs, scriptPath: join(outdir, `${name}.src.js`), modulesRoot: outdir });
  const response = await miniflare.dispatchFetch("http://localhost/");
  const text = await response.text();
  await miniflare.dispose();
  return text;
}

test("init takes bytes, a URL, a response, and a compiled module", async () => {
  const entryPoints = [bare];
  await esbuild.build({ entryPoints, bundle: true, format: "iife", outfile: path("init.js") });
  const url = "/node_modules/koel-filter/koel.wasm";
  const sources = {
    url: (url) => globalThis.begin(url),
    address: (url) => globalThis.begin(new URL(url, location.href)),
    response: (url) => globalThis.begin(fetch(url)),
    bytes: async (url) => globalThis.begin(await (await fetch(url)).arrayBuffer()),
    module: async (url) => globalThis.begin(await WebAssembly.compileStreaming(fetch(url))),
  };
  for (const [name, source] of Object.entries(sources)) {
    assert.equal(await onPage(pageOf("init"), (page) => page.evaluate(source, url)), EXPECTED, name);
  }
  const failing = (url) => globalThis.begin(url).catch(({ name, code, message }) => [name, code, message]);
  const error = (url) => onPage(pageOf("init"), (page) => page.evaluate(failing, url));
  assert.match((await error("/none.wasm")).join(), /^KoelError,init,.*none.wasm: the server answered 404$/);
  // As a server answers that knows only one page.
  const wrong = /^KoelError,init,.*init.html: the server sent no WebAssembly module$/;
  assert.match((await error("/programs/init.html")).join(), wrong);
});

test("a class of koel-filter/init waits for its module", async () => {
  const { CuckooFilter, init } = await import("koel-filter/init");
  assert.throws(() => new CuckooFilter(), { name: "KoelError", code: "init" });
  await assert.rejects(init(), TypeError);
  await init(readFileSync(new URL(import.meta.resolve("koel-filter/koel.wasm"))));
  await init(new Uint8Array());
  const filter = new CuckooFilter({ capacity: 9 });
  assert.ok(filter.add("ada") && filter.has("ada"));
});

test("init with what is no module of the package has a code", async () => {
  // Another copy of the entry, which has no module yet.
  const { init } = await import(`${import.meta.resolve("koel-filter/init")}?another`);
  const empty = new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
  const bytes = readFileSync(new URL(import.meta.resolve("koel-filter/koel.wasm")));
  const isNone = (message) => ({ name: "KoelError", code: "init", message });
  for (const wrong of [new Uint8Array(), new Uint8Array(9), new ArrayBuffer(3), bytes.subarray(0, 1000)]) {
    await assert.rejects(init(wrong), isNone(/cannot be instantiated: /));
  }
  for (const other of [empty, empty.buffer, new WebAssembly.Module(empty)]) {
    await assert.rejects(init(other), isNone(/another WebAssembly module/));
  }
  await assert.rejects(init("nowhere"), isNone(/^nowhere cannot be fetched: /));
  await assert.rejects(init(new Response("no module")), isNone(/the server sent no WebAssembly module/));
  await init(bytes);
});

test("filters of import, require and koel-filter/init are merged and patched with each other", async () => {
  const { CuckooFilter } = await import("koel-filter");
  const bare = await import("koel-filter/init");
  await bare.init(readFileSync(new URL(import.meta.resolve("koel-filter/koel.wasm"))));
  const classes = [CuckooFilter, require("koel-filter").CuckooFilter, bare.CuckooFilter];
  for (const [First, Second] of classes.flatMap((First) => classes.map((Second) => [First, Second]))) {
    const [first, second] = [new First({ capacity: 100 }), new Second({ capacity: 100 })];
    second.add("ada");
    assert.ok(first.patched(first.patchTo(second)).has("ada"));
    assert.deepEqual([first.merge(second) === first, first.has("ada"), second.size], [true, true, 1]);
    second.free();
    assert.throws(() => first.merge(second), { code: "freed" });
  }
});
