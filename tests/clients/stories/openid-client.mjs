// A token now, and another one when the first has ended; the clock is told line by line.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import * as client from "openid-client";

const { BASE_URL, CLIENT_ID, CLIENT_SECRET } = process.env;
const options = { algorithm: "oauth2", execute: [client.allowInsecureRequests] };
const discover = (secret, way) => client.discovery(new URL(BASE_URL), CLIENT_ID, secret, way?.(secret), options);

let tokens = null;
let ends = 0;
const read = async (configuration) => {
  if (Date.now() >= ends) {
    tokens = tokens?.refresh_token
      ? await client.refreshTokenGrant(configuration, tokens.refresh_token)
      : await client.clientCredentialsGrant(configuration, { scope: "business.read" });
    ends = Date.now() + tokens.expiresIn() * 1000;
  }
  const url = new URL("/api/v1/external-business/locations", BASE_URL);
  return (await client.fetchProtectedResource(configuration, tokens.access_token, url, "GET")).status;
};

const wrong = await discover("wrong", client.ClientSecretPost);
await assert.rejects(client.clientCredentialsGrant(wrong), { error: "invalid_client" });

for (const way of [client.ClientSecretPost, client.ClientSecretBasic]) {
  const configuration = await discover(CLIENT_SECRET, way);
  assert.equal((await client.clientCredentialsGrant(configuration)).refresh_token, undefined);
}

const configuration = await discover(CLIENT_SECRET);
for await (const now of createInterface({ input: process.stdin })) {
  Date.now = () => Number(now);
  assert.deepEqual([await read(configuration), await read(configuration)], [200, 200]);
  console.log("done");
}
