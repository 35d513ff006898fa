// A token now, and another one when the first has ended; the clock is told line by line.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { ClientCredentials } from "simple-oauth2";

const { BASE_URL, CLIENT_ID, CLIENT_SECRET } = process.env;
const auth = { tokenHost: BASE_URL, tokenPath: "/oauth2/token" };
const client = new ClientCredentials({ client: { id: CLIENT_ID, secret: CLIENT_SECRET }, auth });

let token = null;
let grants = 0;
const read = async () => {
  if (token === null || token.expired()) {
    // As the library's guide has it: refresh where there is a refresh token, otherwise the grant again.
    token = token?.token.refresh_token ? await token.refresh() : await client.getToken({ scope: "business.read" });
    grants += 1;
  }
  const headers = { Authorization: `Bearer ${token.token.access_token}` };
  return (await fetch(`${BASE_URL}/api/v1/external-business/locations`, { headers })).status;
};

for await (const now of createInterface({ input: process.stdin })) {
  Date.now = () => Number(now);
  assert.deepEqual([await read(), await read()], [200, 200]);
  console.log("done");
}
assert.equal(grants, 2);
