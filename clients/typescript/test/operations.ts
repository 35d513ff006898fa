// Every operation against a running service: BASE_URL, USER_TOKEN and API_DOCUMENT name it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as api from "../src/index.js";
import { ApiError, connect, data, pages, standard } from "../src/index.js";

const { BASE_URL: baseUrl = "", USER_TOKEN: token = "", API_DOCUMENT = "" } = process.env;
const here = { locationId: "locations/111" };
const sent: { method: string; path: string; grant?: unknown }[] = [];

/** `fetch`, which also notes what was sent. */
const recording: typeof fetch = async (input, init) => {
  const request = new Request(input, init);
  const path = new URL(request.url).pathname;
  const body = path === "/api/v1/auth/token" ? ((await request.clone().json()) as { grant_type: string }) : undefined;
  sent.push({ method: request.method, path: decodeURIComponent(path), ...(body && { grant: body.grant_type }) });
  return fetch(request);
};

const anyone = connect({ baseUrl, fetch: recording });
const owner = connect({ baseUrl, token, fetch: recording });

async function rejected(call: Promise<{ data?: { data: unknown } }>): Promise<ApiError> {
  const error: unknown = await data(call).then(() => undefined, (reason: unknown) => reason);
  assert.ok(error instanceof ApiError, String(error));
  return error;
}

async function keys(): Promise<api.KeyCreated> {
  const { businesses } = await data(api.listBusinesses({ client: owner }));
  const body = { name: "TypeScript", business_id: businesses[0]?.id ?? 0, assigned_location_id: here.locationId };
  const key = await data(api.createKey({ client: owner, body }));
  await data(api.createKey({ client: owner, body }));
  const found: string[] = [];
  for await (const page of pages((query) => data(api.listKeys({ client: owner, query })), { limit: 1 })) {
    found.push(...page.credentials.map((entry) => entry.client_id));
  }
  assert.ok(found.length >= 2 && found.includes(key.client_id));
  return key;
}

async function connection(site: api.Client, key: api.KeyCreated): Promise<void> {
  const { client_id, client_secret } = key;
  const checked = await data(api.validateCredentials({ client: anyone, body: { client_id, client_secret } }));
  assert.ok(checked.valid && checked.location?.id === here.locationId);
  assert.ok((await data(api.sendHeartbeat({ client: site, body: { plugin_version: "1.0" } }))).received);
  const status = await data(api.getConnectionStatus({ client: owner, path: { client_id }, query: { history: "true" } }));
  assert.deepEqual([status.connection_status, status.history?.at(-1)?.state], ["online", "online"]);
}

async function locations(site: api.Client): Promise<void> {
  const titles: (string | undefined)[] = [];
  for await (const page of pages((query) => data(api.listLocations({ client: owner, query })), { limit: 2 })) {
    titles.push(...page.locations.map((location) => location.title));
  }
  assert.ok(titles.length > 2 && new Set(titles).size === titles.length);
  assert.ok((await data(api.getLocation({ client: site, path: here }))).locationState.isVerified);
  assert.ok((await data(api.switchSync({ client: site, path: here, body: { syncEnabled: true } }))).syncEnabled);
  assert.ok((await data(api.refreshVerification({ client: site, path: here }))).isVerified);
}

async function updates(client: api.Client): Promise<void> {
  const { diffMask, pendingMask } = await data(api.getGoogleUpdated({ client, path: here }));
  assert.deepEqual([diffMask, pendingMask], ["", ""]);
  for (const settle of [api.acceptGoogleUpdate, api.rejectGoogleUpdate]) {
    const error = await rejected(settle({ client, path: here, body: { updateMask: "title" } }));
    assert.ok(error.is("VALIDATION_ERROR") && error.details.errors[0]?.field === "updateMask");
  }
}

async function posts(client: api.Client): Promise<void> {
  const headers = { "X-Idempotency-Key": "typescript" };
  const post = await data(api.createPost({ client, query: here, body: { summary: "Hello" }, headers }));
  assert.equal((await data(api.createPost({ client, query: here, body: { summary: "Hello" }, headers }))).name, post.name);
  const path = { postId: post.name.split("/").at(-1) ?? "" };
  const changed = await data(api.changePost({ client, path, query: here, body: { summary: "Hello again" } }));
  assert.equal(changed.summary, "Hello again");
  const names: string[] = [];
  for await (const page of pages((query) => data(api.listPosts({ client, query })), { ...here, pageSize: 2 })) {
    names.push(...page.localPosts.map((each) => each.name));
  }
  assert.ok(names.length > 2 && names[0] === post.name && new Set(names).size === names.length);
  assert.ok((await data(api.deletePost({ client, path, query: here }))).deleted);
  const error = await rejected(api.createPost({ client, query: here, body: { topicType: "STANDARD" } }));
  assert.ok(error.is("VALIDATION_ERROR") && error.details.errors[0]?.field === "summary");
  assert.ok(error.status === 400 && error.requestId);
}

async function reviews(client: api.Client): Promise<void> {
  const { reviews: found } = await data(api.listReviews({ client, query: { ...here, pageSize: 1 } }));
  const path = { reviewId: found[0]?.reviewId ?? "" };
  assert.ok((await data(api.replyToReview({ client, path, query: here, body: { comment: "Thank you." } }))).comment);
  assert.ok((await data(api.getReview({ client, path, query: here }))).reviewReply);
  assert.ok((await data(api.deleteReply({ client, path, query: here }))).deleted);
}

async function sync(client: api.Client): Promise<void> {
  for (const phone of ["+81 45-555-0121", "+81 45-555-0122"]) {
    const body = { phoneNumbers: { primaryPhone: phone } };
    const preview = await data(api.syncProfile({ client, path: here, body, query: { validateOnly: "true" } }));
    assert.ok(preview.validateOnly && preview.syncId === undefined);
    assert.deepEqual((await data(api.syncProfile({ client, path: here, body }))).fieldsUpdated, preview.fieldsUpdated);
  }
  assert.ok((await data(api.compareProfile({ client, path: here }))).provider);
  let count = 0;
  const load = (query: { limit: number }) => data(api.listSyncHistory({ client, path: here, query }));
  for await (const page of pages(load, { limit: 1 })) count += page.history.length;
  assert.ok(count >= 2);
  const reduced = async (query: { limit: number; page?: number }) => ({ history: Array(query.page === 2 ? 1 : 100) });
  let reducedPages = 0;
  for await (const _ of pages(reduced, { limit: 500 })) reducedPages += 1;
  assert.equal(reducedPages, 2, "the service reduces a limit to 100");
}

async function oauth(site: api.Client, key: api.KeyCreated): Promise<void> {
  const form = { grant_type: "client_credentials", client_id: key.client_id, client_secret: key.client_secret } as const;
  const granted = await standard(api.issueOauthToken({ client: anyone, body: form }));
  const body = { token: granted.access_token };
  assert.equal((await standard(api.introspectToken({ client: site, body }))).active, true);
  await standard(api.revokeToken({ client: site, body }));
  assert.equal((await standard(api.introspectToken({ client: site, body }))).active, false);
  const wrong = api.issueOauthToken({ client: anyone, body: { ...form, client_secret: "wrong" } });
  await assert.rejects(standard(wrong), { name: "ApiError", code: "invalid_client", status: 401 });
  assert.ok((await standard(api.listPublicKeys({ client: anyone }))).keys.length);
  assert.ok((await standard(api.findServerMetadata({ client: anyone }))).token_endpoint);
}

let seen = 0;
/** The grants that were sent since the last call of this function. */
function grants(): unknown[] {
  const found = sent.slice(seen).flatMap(({ grant }) => (grant === undefined ? [] : [grant]));
  seen = sent.length;
  return found;
}

async function tokens(key: api.KeyCreated): Promise<void> {
  let time = Date.now();
  const pair = { clientId: key.client_id, clientSecret: key.client_secret };
  const client = connect({ baseUrl, key: pair, fetch: recording, now: () => time });
  const five = () => Promise.all(Array.from({ length: 5 }, () => data(api.getLocation({ client, path: here }))));
  const day = 86_400_000;
  grants();
  await five();
  assert.deepEqual(grants(), ["client_credentials"], "concurrent calls share one grant");
  await five();
  assert.deepEqual(grants(), [], "the token is used again");

  // After 91 days the access token has expired, and its refresh token did so before.
  time += 91 * day;
  await five();
  assert.deepEqual(grants(), ["client_credentials"]);

  // A token that is rejected is renewed once, by its refresh token.
  const access = async (): Promise<string> => {
    let found = "";
    const reading: typeof fetch = async (input, init) => {
      found = new Request(input, init).headers.get("Authorization")?.split(" ")[1] ?? "";
      return new Response('{"status":"ok","data":{}}', { headers: { "Content-Type": "application/json" } });
    };
    await api.getLocation({ client, path: here, fetch: reading });
    return found;
  };
  const credentials = { client_id: key.client_id, client_secret: key.client_secret };
  await standard(api.revokeToken({ client: anyone, body: { ...credentials, token: await access() } }));
  grants();
  await five();
  assert.deepEqual(grants(), ["refresh_token"], "one renewal at a time");

  // A secret that is replaced without an overlap ends all tokens, so the key's new secret is needed.
  const rolled = await data(api.rollKey({ client: owner, path: credentials, body: { overlap_seconds: 0 } }));
  grants();
  const error = await rejected(api.getLocation({ client, path: here }));
  assert.ok(error.is("AUTH_INVALID_TOKEN"));
  assert.deepEqual(grants(), ["refresh_token", "client_credentials"], "a rejected refresh falls back to the key");
  const renewed = connect({ baseUrl, key: { ...pair, clientSecret: rolled.client_secret }, fetch: recording });
  assert.ok((await data(api.getLocation({ client: renewed, path: here }))).name);
}

/** A token of the shortest lifetime that the service allows is used for half of it. */
async function shortTokens(): Promise<void> {
  let [time, granted] = [Date.now(), 0];
  const answering: typeof fetch = async (input, init) => {
    const isGrant = new URL(new Request(input, init).url).pathname === "/api/v1/auth/token";
    granted += isGrant ? 1 : 0;
    const token = { access_token: "a", expires_in: 60, refresh_token: "r", refresh_expires_in: 60 };
    return Response.json({ status: "ok", data: isGrant ? token : {} });
  };
  const client = connect({ baseUrl, key: { clientId: "a", clientSecret: "b" }, fetch: answering, now: () => time });
  for (const seconds of [0, 29, 2]) {
    time += 1000 * seconds;
    await data(api.getLocation({ client, path: here }));
    await data(api.getLocation({ client, path: here }));
  }
  assert.equal(granted, 2);
}

async function webhooks(): Promise<void> {
  const url = "https://hooks.example/typescript";
  const made = await data(api.createWebhook({ client: owner, body: { url, types: ["key.created"] } }));
  assert.ok(made.secret?.startsWith("whsec_"));
  const path = { webhook_id: String(made.id) };
  assert.equal((await data(api.listWebhooks({ client: owner }))).webhooks.length, 1);
  assert.equal((await data(api.getWebhook({ client: owner, path }))).url, url);
  const changed = await data(api.changeWebhook({ client: owner, path, body: { description: "Changed" } }));
  assert.equal(changed.description, "Changed");
  const { id } = await data(api.testWebhook({ client: owner, path }));
  assert.ok((await data(api.listDeliveries({ client: owner, path }))).deliveries.length);
  await data(api.resendDelivery({ client: owner, path: { ...path, delivery_id: String(id) } }));
  const since = new Date(Date.now() - 60_000).toISOString();
  assert.ok((await data(api.recoverWebhook({ client: owner, path, body: { since } }))).queued >= 0);
  assert.notEqual((await data(api.rollWebhook({ client: owner, path }))).secret, made.secret);
  assert.ok((await data(api.deleteWebhook({ client: owner, path }))).deleted);
  const all = (await data(api.listEvents({ client: owner, query: { limit: 100 } }))).events.map((event) => event.id);
  const read: string[] = [];
  for await (const page of pages((query) => data(api.listEvents({ client: owner, query })), { limit: 1 })) {
    read.push(...page.events.map((event) => event.id));
  }
  assert.ok(all.length > 1);
  assert.deepEqual(read, all);
}

async function alerts(key: api.KeyCreated): Promise<void> {
  const made = await data(api.createAlert({ client: owner, body: {} }));
  const path = { alert_id: String(made.id) };
  assert.equal((await data(api.listAlerts({ client: owner }))).alerts.length, 1);
  assert.equal((await data(api.getAlert({ client: owner, path }))).status, "active");
  assert.ok((await data(api.changeAlert({ client: owner, path, body: { reminders: true } }))).reminders);
  assert.ok((await data(api.testAlert({ client: owner, path }))).queued);
  assert.ok((await data(api.deleteAlert({ client: owner, path }))).deleted);
  const ofKey = { client: owner, path: { client_id: key.client_id } };
  await data(api.changeKeyAlerts({ ...ofKey, body: { grace_seconds: 60 } }));
  assert.equal((await data(api.getKeyAlerts(ofKey))).grace_seconds, 60);
}

async function connections(): Promise<void> {
  assert.match((await data(api.startProviderConnection({ client: owner }))).authorization_url, /code_challenge=/);
  assert.match((await data(api.createProviderConnectionLink({ client: owner }))).url, /\/link\//);
  assert.deepEqual((await data(api.listProviderConnections({ client: owner }))).connections, []);
  const path = { connection_id: "999" };
  for (const call of [
    api.getProviderConnection({ client: owner, path }),
    api.importProviderLocations({ client: owner, path, body: { title_contains: "" } }),
    api.exportProviderConnection({ client: owner, path }),
    api.deleteProviderConnection({ client: owner, path }),
  ]) {
    assert.equal((await rejected(call)).status, 404);
  }
}

async function lastOfKey(key: api.KeyCreated): Promise<void> {
  const path = { client_id: key.client_id };
  assert.equal((await data(api.changeKey({ client: owner, path, body: { name: "Renamed" } }))).name, "Renamed");
  assert.equal((await data(api.getKey({ client: owner, path }))).name, "Renamed");
  assert.equal((await data(api.endPreviousSecret({ client: owner, path }))).previous_secret_expires_at, null);
  assert.equal((await data(api.deactivateKey({ client: owner, path }))).status, "deactivated");
  assert.equal((await data(api.reactivateKey({ client: owner, path }))).status, "active");
  const events: string[] = [];
  const load = (query: { limit: number }) => data(api.listKeyAudit({ client: owner, path, query }));
  for await (const page of pages(load, { limit: 5 })) events.push(...page.events.map((entry) => entry.event));
  assert.ok(events.length > 5 && events.includes("key.created"));
  assert.ok((await data(api.listAudit({ client: owner, query: { limit: 1 } }))).next_before);
  const log = await data(api.listKeyRequests({ client: owner, path, query: { days: 2, limit: 1 } }));
  assert.ok(log.usage.length === 2 && log.usage[0]!.requests > 0 && log.requests[0]!.method);
  assert.ok((await data(api.revokeKey({ client: owner, path }))).revoked);
}

/** The operations of the document that were not called. */
function missing(): string[] {
  type Paths = Record<string, Record<string, { operationId: string }>>;
  const { paths } = JSON.parse(readFileSync(API_DOCUMENT, "utf-8")) as { paths: Paths };
  return Object.entries(paths).flatMap(([path, methods]) => {
    const pattern = new RegExp(`^${path.replace(/{\w+}/g, ".+")}$`);
    return Object.entries(methods)
      .filter(([method]) => !sent.some((call) => call.method === method.toUpperCase() && pattern.test(call.path)))
      .map(([, { operationId }]) => operationId);
  });
}

const key = await keys();
const site = connect({ baseUrl, key: { clientId: key.client_id, clientSecret: key.client_secret }, fetch: recording });
await connection(site, key);
await locations(site);
await updates(site);
await posts(site);
await reviews(site);
await sync(site);
await oauth(site, key);
await tokens(key);
await shortTokens();
await webhooks();
await alerts(key);
await connections();
await lastOfKey(key);
assert.deepEqual(missing(), []);
