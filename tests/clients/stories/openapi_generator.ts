// The whole story by the client that openapi-generator generates for TypeScript.
import assert from "node:assert/strict";
import {
  Configuration,
  ConnectionApi,
  KeysApi,
  LocationsApi,
  PostsApi,
  ResponseError,
  SyncApi,
  TokensApi,
} from "./index.js";

const LOCATION = "locations/111";
const client = (accessToken?: string) =>
  new Configuration({ basePath: process.env.BASE_URL, ...(accessToken ? { accessToken } : {}) });

const refused = async (call: Promise<unknown>): Promise<string> => {
  const error: unknown = await call.then(() => null, (reason: unknown) => reason);
  assert.ok(error instanceof ResponseError, String(error));
  return (await error.response.json()).error.code;
};

async function story(): Promise<void> {
  const nobody = client();
  const user = client(process.env.USER_TOKEN);
  const keys = new KeysApi(user);

  const keyCreate = { name: "Story", businessId: 10, assignedLocationId: LOCATION };
  const key = (await keys.createKey({ keyCreate })).data;
  const pair = { clientId: key.clientId, clientSecret: key.clientSecret };
  const tokens = new TokensApi(nobody);
  const grant = { grantType: "client_credentials", ...pair } as const;
  const granted = (await tokens.issueToken({ tokenRequest: grant })).data;
  const refresh = { grantType: "refresh_token", refreshToken: granted.refreshToken ?? "" } as const;
  const token = (await tokens.issueToken({ tokenRequest: refresh })).data;
  const site = client(token.accessToken);

  const checks = new ConnectionApi(nobody);
  const checked = (await checks.validateCredentials({ credentialCheck: pair })).data;
  assert.ok(checked.valid && checked.location?.id === LOCATION && checked.capabilities?.sync);
  const wrong = (await checks.validateCredentials({ credentialCheck: { ...pair, clientSecret: "wrong" } })).data;
  assert.ok(!wrong.valid && wrong.reason === "invalid_credentials");
  const heartbeat = { pluginVersion: "2.4.1", detectedPlugins: ["seo"] };
  const beat = (await new ConnectionApi(site).sendHeartbeat({ heartbeat })).data;
  assert.ok(beat.received && beat.nextHeartbeatIn === 3600);

  const connection = new ConnectionApi(user);
  const status = (await connection.getConnectionStatus({ clientId: key.clientId })).data;
  assert.deepEqual([status.connectionStatus, status.wpVersion, status.history], ["online", null, undefined]);
  const long = (await connection.getConnectionStatus({ clientId: key.clientId, history: "true" })).data;
  assert.equal(long.history?.at(-1)?.state, "online");

  const posts = new PostsApi(site);
  const post = (await posts.createPost({ locationId: LOCATION, localPost: { summary: "Hello" } })).data;
  assert.equal(post.state, "PROCESSING");
  const one = { locationId: LOCATION, postId: post.name.split("/").at(-1) ?? "" };
  const changed = (await posts.changePost({ ...one, localPost: { summary: "Hello again" } })).data;
  assert.equal(changed.summary, "Hello again");
  const page = (await posts.listPosts({ locationId: LOCATION, pageSize: 2 })).data;
  assert.ok(page.localPosts[0]?.name === post.name && page.nextPageToken);
  assert.ok((await posts.deletePost(one)).data.deleted);

  assert.ok((await new LocationsApi(user).listLocations()).data.pagination.totalCount > 1);
  assert.ok((await new LocationsApi(site).getLocation({ locationId: "111" })).data.locationState.isVerified);
  const sync = new SyncApi(site);
  assert.ok((await sync.compareProfile({ locationId: "111" })).data.provider.title);

  const profile = { locationId: "111", location: { phoneNumbers: { primaryPhone: "+44 20 7946 0999" } } };
  const preview = (await sync.syncProfile({ ...profile, validateOnly: "true" })).data;
  assert.ok(preview.validateOnly && preview.syncId === undefined);
  const result = (await sync.syncProfile({ ...profile, xIdempotencyKey: "story" })).data;
  const again = (await sync.syncProfile({ ...profile, xIdempotencyKey: "story" })).data;
  assert.deepEqual(result.fieldsUpdated, ["phoneNumbers.primaryPhone"]);
  assert.ok(result.syncId && result.syncId === again.syncId && !result.validateOnly);
  assert.equal((await sync.listSyncHistory({ locationId: "111" })).data.history[0]?.syncId, result.syncId);

  assert.equal(await refused(new KeysApi(site).listKeys()), "AUTH_INSUFFICIENT_PERMISSIONS");
  const { credentials } = (await keys.listKeys()).data;
  assert.ok(credentials.some((entry) => entry.clientId === key.clientId));
  assert.ok((await keys.revokeKey({ clientId: key.clientId })).data.revoked);
  assert.equal(await refused(posts.listPosts({ locationId: LOCATION })), "AUTH_INVALID_TOKEN");
}

story().catch((error) => {
  console.error(error);
  process.exit(1);
});
