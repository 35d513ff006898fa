// Rules that need no service: Retry-After, the renewal of tokens, redirects and plain http. CASES is a file of cases.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import * as api from "../src/index.js";
import { ApiError, connect, data } from "../src/index.js";
import { retryAfter } from "../src/retry-after.js";

type Table = { now: string; cases: { value: string; seconds: number | null }[] };
const table = JSON.parse(readFileSync(process.env.CASES ?? "", "utf-8")) as Table;
for (const { value, seconds } of table.cases) assert.equal(retryAfter(value, Date.parse(table.now)), seconds, value);
assert.equal(retryAfter(null, 0), null);
assert.equal(new ApiError({}, 429, new Headers({ "Retry-After": "soon" })).retryAfter, null);
assert.equal(new ApiError({}, 429, new Headers({ "Retry-After": "7" })).retryAfter, 7);

const key = { clientId: "id", clientSecret: "secret" };
const path = { locationId: "locations/111" };
const failure = (code: string, status: number) => Response.json({ status: "error", error: { code, message: "" } }, { status });

/** A token that cannot be renewed is used until it expires, and 30 s pass before the next attempt. */
async function renewals(): Promise<void> {
  const outages = [failure("SERVICE_UNAVAILABLE", 503), failure("RATE_LIMITED", 429), new Response("<html>", { status: 502 })];
  for (const outage of outages) {
    let [time, grants, works] = [0, 0, true];
    const answering: typeof fetch = async (input, init) => {
      const isGrant = new URL(new Request(input, init).url).pathname === "/api/v1/auth/token";
      if (!isGrant) return Response.json({ status: "ok", data: {} });
      grants += 1;
      const token = { access_token: "a", expires_in: 3600, refresh_token: "r", refresh_expires_in: 3600 };
      return works ? Response.json({ status: "ok", data: token }) : outage.clone();
    };
    const client = connect({ baseUrl: "https://profiles.example", key, fetch: answering, now: () => 1000 * time });
    const call = () => data(api.getLocation({ client, path }));
    await call();
    time = 3299;
    await call();
    assert.equal(grants, 1, "it is renewed 300 s before its end");
    [time, works] = [3540, false];
    await call();
    await call();
    const tried = grants;
    assert.ok(tried > 1);
    time += 29;
    await call();
    assert.equal(grants, tried);
    time += 1;
    await call();
    assert.ok(grants > tried);
    time = 3600;
    await assert.rejects(call(), ApiError);
    works = true;
    await call();
  }
}

/** A key that is no longer valid is reported at once. */
async function revoked(): Promise<void> {
  let [time, works] = [0, true];
  const answering: typeof fetch = async (input, init) => {
    const isGrant = new URL(new Request(input, init).url).pathname === "/api/v1/auth/token";
    if (isGrant && !works) return failure("AUTH_INVALID_TOKEN", 401);
    return Response.json({ status: "ok", data: isGrant ? { access_token: "a", expires_in: 3600 } : {} });
  };
  const client = connect({ baseUrl: "https://profiles.example", key, fetch: answering, now: () => time });
  await data(api.getLocation({ client, path }));
  [time, works] = [3_540_000, false];
  await assert.rejects(data(api.getLocation({ client, path })), { code: "AUTH_INVALID_TOKEN" });
}

/** A redirect is an error, and nothing is sent to its target. */
async function redirects(): Promise<void> {
  const got: string[] = [];
  const server = createServer((request, response) => {
    got.push(request.url ?? "");
    response.writeHead(307, { Location: "/elsewhere" }).end();
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  for (const options of [{ key }, { token: "t" }]) {
    const client = connect({ baseUrl, ...options });
    await assert.rejects(data(api.getLocation({ client, path })), { name: "ApiError", status: 307 });
  }
  assert.deepEqual(got, ["/api/v1/auth/token", "/api/v1/external-business/locations/locations%2F111"]);
  server.close();
}

async function plainHttp(): Promise<void> {
  const fail: typeof fetch = async () => assert.fail("a request was sent");
  const others = ["http://profiles.example", "http://localhost.evil.example", "http://127.0.0.1.evil.example", "ftp://localhost"];
  for (const baseUrl of others) assert.throws(() => connect({ baseUrl, key, fetch: fail }), /must start with https/);
  const allowed = ["https://profiles.example", "http://localhost:8000", "http://127.0.0.1", "http://127.1:1", "http://[::1]:8000"];
  for (const baseUrl of allowed) connect({ baseUrl, key, fetch: fail });
  const client = connect({ baseUrl: "https://profiles.example", token: "t", fetch: fail });
  const call = api.getLocation({ client, path, baseUrl: "http://profiles.example" });
  await assert.rejects(data(call), /must start with https/);
}

await renewals();
await revoked();
await redirects();
await plainHttp();
