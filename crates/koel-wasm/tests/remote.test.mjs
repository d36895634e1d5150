// Filters that are asked where they lie, at a server that serves ranges, and at servers that do not
// do what they should. Node's own `fetch` asks them.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { after, test } from "node:test";
import { CuckooFilter } from "koel-filter";
import { RemoteFilter } from "koel-filter/remote";

const names = (from, to) => Array.from({ length: to - from }, (_, i) => `host${from + i}.example.org`);
const KEYS = names(0, 20_000);
const OTHERS = names(100_000, 120_000);

function filled() {
  const filter = new CuckooFilter({ capacity: 20_000, errorRate: 0.01 });
  filter.update(KEYS);
  return filter;
}

/** The file of a filter so large that hardly two keys are near each other. */
function wide() {
  const filter = new CuckooFilter({ capacity: 3_000_000 });
  filter.update(KEYS.slice(0, 100));
  return filter.toBytes();
}

const servers = [];
after(() => servers.forEach((server) => server.close()));

/**
 * A server of a file. `change` gets each answer, the number of the request and its path, and may
 * change the answer.
 */
async function served(file, change = () => {}) {
  const asked = [];
  const server = createServer((request, response) => {
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range);
    asked.push([Number(first), Number(last) + 1]);
    const answer = { status: 206, file, headers: { etag: '"1"' }, cut: 0 };
    change(answer, asked.length, request.url);
    const body = answer.body ?? answer.file.slice(Number(first), Number(last) + 1);
    answer.headers["content-range"] ??= `bytes ${first}-${last}/${answer.file.length}`;
    answer.headers["content-length"] ??= body.length;
    response.writeHead(answer.status, answer.headers);
    response.write(body.subarray(0, body.length - answer.cut));
    if (answer.cut > 0) setTimeout(() => response.destroy(), 20);
    else response.end();
  });
  servers.push(server);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/list.koel`, asked };
}

const fails = (promise, message, code = "remote") => assert.rejects(promise, { name: "KoelError", code, message });

test("a filter elsewhere answers as the whole one does", async () => {
  const filter = filled();
  filter.refuteMany(OTHERS.slice(0, 10_000));
  const file = filter.toBytes();
  for (const options of [{}, { page: 64 }, { page: 65536 }, { page: 1000 }]) {
    const { url, asked } = await served(file);
    const remote = await RemoteFilter.open(new URL(url), options);
    for (const keys of [[...KEYS.slice(0, 300), ...OTHERS], new Set(OTHERS), [1, 2, 3], new BigInt64Array(4), []]) {
      assert.deepEqual(await remote.hasMany(keys), filter.hasMany(keys));
    }
    const { size, capacity, corrections, byteLength, errorRate, currentErrorRate, lineOptions } = filter;
    for (const [name, value] of Object.entries({ size, capacity, corrections, byteLength, errorRate, currentErrorRate, lineOptions })) {
      assert.equal(remote[name], value, name);
    }
    const { page = 4096 } = options;
    const answers = file.length - 8 * corrections;
    for (const [start, end] of asked.filter(([start]) => start !== 0 && start !== answers)) {
      assert.equal(start % page, 0);
      assert.ok(end % page === 0 || end === file.length);
    }
    assert.equal(remote.requests, asked.length);
    assert.equal(remote.bytesRead, asked.reduce((sum, [start, end]) => sum + end - start, 0));
    assert.match(String(remote), /^RemoteFilter \{ size: \d+, byteLength: \d+, requests: \d+, bytesRead: \d+ \}$/);
    remote.free();
    remote.free();
    assert.equal(String(remote), "RemoteFilter { freed }");
    await fails(remote.has("a"), /this filter was freed/, "freed");
  }
});

test("a key costs two pages at most, and pages are kept", async () => {
  const { url, asked } = await served(wide());
  const remote = await RemoteFilter.open(url);
  assert.deepEqual(asked, [[0, 192]]);
  for (let i = 0; i < 5; i += 1) assert.equal(await remote.has(KEYS[7]), true);
  assert.deepEqual([asked.length, remote.bytesRead], [3, 192 + 2 * 4096]);
  // No more than a megabyte of pages is kept.
  const many = await RemoteFilter.open(url, { page: 65536 });
  await many.hasMany(KEYS.slice(0, 200));
  const { requests } = many;
  await many.hasMany(KEYS.slice(0, 200));
  assert.ok(many.requests > requests);
});

test("calls at the same time do not disturb each other", async () => {
  const { url } = await served(filled().toBytes());
  const remote = await RemoteFilter.open(url, { page: 64 });
  const pieces = Array.from({ length: 20 }, (_, i) => [...KEYS.slice(50 * i, 50 * i + 50), `nobody${i}.example`]);
  const answers = await Promise.all(pieces.map((keys) => remote.hasMany(keys)));
  for (const found of answers) assert.ok(found.slice(0, 50).every(Boolean));
});

test("servers that do not do what they should are told apart", async () => {
  const file = filled().toBytes();
  for (const [change, message] of [
    [(answer) => Object.assign(answer, { status: 200, body: file }), /sends the whole file where a range is asked for/],
    [(answer) => (answer.headers["content-range"] = "bytes 1-192/9"), /sent 1-192 where bytes 0-191 were asked for/],
    [(answer) => (answer.cut = 100), /try again, and see whether a proxy is between/],
    [(answer) => (answer.body = file.subarray(0, 100)), /100 bytes came of a range of 192/],
    [(answer) => (answer.headers["content-encoding"] = "x-other"), /sends x-other, so its ranges are not those of the file/],
    [(answer) => (answer.status = 404), /no such file; check the address/],
    [(answer) => (answer.status = 503), /the server answered 503; try again later/],
  ]) {
    const { url } = await served(file, change);
    await fails(RemoteFilter.open(url), message);
  }
  const page = new TextEncoder().encode("<!doctype html><title>Sign in</title>".repeat(20));
  await fails(RemoteFilter.open((await served(page)).url), /not a Koel filter/, "bytes");
  await fails(RemoteFilter.open((await served(file.subarray(0, file.length - 100))).url), /copy the file again/, "bytes");
  await fails(RemoteFilter.open("http://127.0.0.1:1/x"), /check the address, the network/);
  const damaged = await served(file, (answer, number) => number > 1 && (answer.body = new Uint8Array(answer.file.length).fill(255)));
  await fails((await RemoteFilter.open(damaged.url)).has("a"), /came of a range of/);
});

test("damaged buckets are no answer", async () => {
  const file = filled().toBytes();
  const { url } = await served(new Uint8Array(file).fill(255, 192, file.length - 32));
  await fails((await RemoteFilter.open(url)).has("a"), /bytes that no filter has.*open it again/, "bytes");
});

test("a redirect is followed once, and again where its target is no more", async () => {
  const paths = [];
  const { url } = await served(filled().toBytes(), (answer, number, path) => {
    paths.push(path);
    const to = (path) => Object.assign(answer, { status: 302, body: new Uint8Array(0) }).headers.location = path;
    if (path === "/list.koel") to(number < 4 ? "/first" : "/second");
    if (path === "/first" && number > 3) answer.status = 403;
  });
  // Pages that are not kept, because they are too large.
  const remote = await RemoteFilter.open(url, { page: 1 << 24 });
  assert.equal(await remote.has(KEYS[0]), true);
  assert.equal(await remote.has(KEYS[1]), true);
  assert.deepEqual(paths, ["/list.koel", "/first", "/first", "/first", "/list.koel", "/second"]);
});

test("a redirect to a server without encryption is refused", async () => {
  const file = filled().toBytes();
  const fetch = async () => {
    const response = new Response(file.slice(0, 192), { status: 206 });
    Object.defineProperties(response, { redirected: { value: true }, url: { value: "http://example.org/x" } });
    return response;
  };
  await fails(RemoteFilter.open("https://example.org/x", { fetch }), /redirects to http:.*an address that stays https/);
});

test("a file that was replaced is noticed", async () => {
  const [older, newer] = [filled(), filled()];
  newer.delete(KEYS[0]);
  newer.add("new.example");
  for (const tag of [(second) => (second ? '"2"' : '"1"'), () => 'W/"1"', () => undefined]) {
    const { url } = await served(older.toBytes(), (answer, number) => {
      if (number > 2) answer.file = newer.toBytes();
      answer.headers.etag = tag(number > 2);
      if (answer.headers.etag === undefined) delete answer.headers.etag;
    });
    const remote = await RemoteFilter.open(url, { page: 64 });
    // Also of calls at the same time, of which one needs the pages of the other.
    const calls = await Promise.allSettled([0, 0, 30].map((from) => remote.hasMany(KEYS.slice(from, 50))));
    await fails(remote.hasMany(KEYS), /the file was replaced meanwhile; open it again/);
    for (const { reason, value } of calls) assert.ok(value?.every(Boolean) ?? /was replaced meanwhile/.test(reason.message));
  }
});

test("a server that leaves the ETag out once is asked for the header", async () => {
  const file = filled().toBytes();
  const { url, asked } = await served(file, (answer, number) => number === 2 && delete answer.headers.etag);
  const remote = await RemoteFilter.open(url, { page: 1 << 20 });
  assert.equal(await remote.has(KEYS[0]), true);
  assert.deepEqual(asked, [[0, 192], [0, file.length], [0, 192]]);
});

test("a batch ends where one of its requests fails", async () => {
  const { url, asked } = await served(wide(), (answer, number) => number > 5 && (answer.status = 503));
  const remote = await RemoteFilter.open(url, { page: 64 });
  await fails(remote.hasMany(KEYS.slice(0, 50)), /the server answered 503/);
  // Those that were on their way may come to the server later.
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.ok(asked.length < 15, `${asked.length} requests`);
});

test("a signal ends a question", async () => {
  const { url, asked } = await served(filled().toBytes());
  const remote = await RemoteFilter.open(url, { page: 64 });
  const gone = AbortSignal.abort();
  await assert.rejects(remote.has("a", { signal: gone }), { name: "AbortError" });
  await assert.rejects(RemoteFilter.open(url, { signal: gone }), { name: "AbortError" });
  assert.equal(asked.length, 1);
  assert.equal(await remote.has(KEYS[1]), true);
});

test("wrong uses are told", async () => {
  assert.throws(() => new RemoteFilter(), /use await RemoteFilter.open\(url\)/);
  await assert.rejects(RemoteFilter.open("http://127.0.0.1:1/x", { page: 10 }), /page: expected 64 to 16777216 bytes/);
  await assert.rejects(RemoteFilter.open("http://127.0.0.1:1/x", { pages: 10 }), /no option pages/);
  const { url } = await served(filled().toBytes());
  const remote = await RemoteFilter.open(url);
  await assert.rejects(remote.has(1.5), /a number is a key if it is whole/);
  await assert.rejects(remote.hasMany("text"), /use \[key\]/);
  await assert.rejects(remote.hasUrl(7), /url: expected a string/);
  await assert.rejects(remote.hasUrl("\ud800"), /half of a surrogate pair/);
  await assert.rejects(remote.has("a", { page: 64 }), /no option page/);
  assert.throws(() => JSON.stringify(remote), /a RemoteFilter has no JSON/);
});

test("require has the class too", async () => {
  const required = createRequire(import.meta.url)("koel-filter/remote");
  const { url } = await served(filled().toBytes());
  const remote = await required.RemoteFilter.open(url);
  assert.deepEqual(await remote.hasMany([KEYS[0], "nobody.example"]), [true, false]);
  await assert.rejects(required.RemoteFilter.open("http://127.0.0.1:1/x"), required.KoelError);
});

test("any function that fetches will do", async () => {
  const file = filled().toBytes();
  const fetch = async (_, { headers }) => {
    const [, first, last] = /(\d+)-(\d+)/.exec(headers.Range);
    return new Response(file.slice(Number(first), Number(last) + 1), { status: 206 });
  };
  const remote = await RemoteFilter.open("a file of this program", { fetch });
  assert.deepEqual(await remote.hasMany([KEYS[0], "nobody.example"]), [true, false]);
});
