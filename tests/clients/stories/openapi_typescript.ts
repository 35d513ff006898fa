// The whole story by openapi-fetch over the types that openapi-typescript generates.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const baseUrl = process.env.BASE_URL ?? "";
const LOCATION = "locations/111";
const client = (token?: string) =>
  createClient<paths>({ baseUrl, headers: token ? { Authorization: `Bearer ${token}` } : {} });

type Failure = components["schemas"]["Failure"];
const ok = async <T>(call: Promise<{ data?: { data: T }; error?: Failure }>): Promise<T> => {
  const { data, error } = await call;
  assert.ok(data, JSON.stringify(error));
  return data.data;
};
const refused = async (call: Promise<{ error?: Failure }>): Promise<Failure["error"]["code"] | undefined> =>
  (await call).error?.error.code;

async function story(): Promise<void> {
  const nobody = client();
  const user = client(process.env.USER_TOKEN);

  const body = { name: "Story", business_id: 10, assigned_location_id: LOCATION };
  const key = await ok(user.POST("/api/v1/developer/credentials", { body }));
  const pair = { client_id: key.client_id, client_secret: key.client_secret };
  const granted = await ok(nobody.POST("/api/v1/auth/token", { body: { grant_type: "client_credentials", ...pair } }));
  const refresh_token = granted.refresh_token ?? "";
  const token = await ok(nobody.POST("/api/v1/auth/token", { body: { grant_type: "refresh_token", refresh_token } }));
  const site = client(token.access_token);

  const checked = await ok(nobody.POST("/api/v1/auth/validate-service-credentials", { body: pair }));
  assert.ok(checked.valid && checked.location?.id === LOCATION && checked.capabilities?.sync);
  const guess = { ...pair, client_secret: "wrong" };
  const wrong = await ok(nobody.POST("/api/v1/auth/validate-service-credentials", { body: guess }));
  assert.ok(!wrong.valid && wrong.reason === "invalid_credentials");
  const report = { plugin_version: "2.4.1", detected_plugins: ["seo"] };
  const beat = await ok(site.POST("/api/v1/api-keys/heartbeat", { body: report }));
  assert.ok(beat.received && beat.next_heartbeat_in === 3600);

  const path = { client_id: key.client_id };
  const status = await ok(user.GET("/api/v1/api-keys/{client_id}/status", { params: { path } }));
  assert.deepEqual([status.connection_status, status.wp_version, status.history], ["online", null, undefined]);
  const query = { history: "true" } as const;
  const long = await ok(user.GET("/api/v1/api-keys/{client_id}/status", { params: { path, query } }));
  assert.equal(long.history?.at(-1)?.state, "online");

  const here = { query: { locationId: LOCATION } };
  const post = await ok(site.POST("/api/v1/posts", { params: here, body: { summary: "Hello" } }));
  assert.equal(post.state, "PROCESSING");
  const one = { ...here, path: { postId: post.name.split("/").at(-1) ?? "" } };
  const changed = await ok(site.PATCH("/api/v1/posts/{postId}", { params: one, body: { summary: "Hello again" } }));
  assert.equal(changed.summary, "Hello again");
  const page = await ok(site.GET("/api/v1/posts", { params: { query: { locationId: LOCATION, pageSize: 2 } } }));
  assert.ok(page.localPosts[0]?.name === post.name && page.nextPageToken);
  assert.ok((await ok(site.DELETE("/api/v1/posts/{postId}", { params: one }))).deleted);

  const at = { params: { path: { locationId: "111" } } };
  assert.ok((await ok(user.GET("/api/v1/external-business/locations"))).pagination.totalCount > 1);
  assert.ok((await ok(site.GET("/api/v1/external-business/locations/{locationId}", at))).locationState.isVerified);
  assert.ok((await ok(site.GET("/api/v1/sync/comparison/{locationId}", at))).provider.title);

  const phone = { phoneNumbers: { primaryPhone: "+44 20 7946 0999" } };
  const dry = { path: at.params.path, query: { validateOnly: "true" } } as const;
  const preview = await ok(site.POST("/api/v1/sync/{locationId}", { params: dry, body: phone }));
  assert.ok(preview.validateOnly && preview.syncId === undefined);
  const once = { path: at.params.path, header: { "X-Idempotency-Key": "story" } };
  const result = await ok(site.POST("/api/v1/sync/{locationId}", { params: once, body: phone }));
  const again = await ok(site.POST("/api/v1/sync/{locationId}", { params: once, body: phone }));
  assert.deepEqual(result.fieldsUpdated, ["phoneNumbers.primaryPhone"]);
  assert.ok(result.syncId && result.syncId === again.syncId && !result.validateOnly);
  assert.equal((await ok(site.GET("/api/v1/sync/history/{locationId}", at))).history[0]?.syncId, result.syncId);

  assert.equal(await refused(site.GET("/api/v1/developer/credentials")), "AUTH_INSUFFICIENT_PERMISSIONS");
  const { credentials } = await ok(user.GET("/api/v1/developer/credentials"));
  assert.ok(credentials.some((entry) => entry.client_id === key.client_id));
  assert.ok((await ok(user.DELETE("/api/v1/developer/credentials/{client_id}", { params: { path } }))).revoked);
  assert.equal(await refused(site.GET("/api/v1/posts", { params: here })), "AUTH_INVALID_TOKEN");
}

story().catch((error) => {
  console.error(error);
  process.exit(1);
});
