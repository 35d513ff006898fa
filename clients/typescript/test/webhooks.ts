// A delivery that Python has signed is verified; one of which any part is changed is rejected.
import assert from "node:assert/strict";
import { verifyWebhook, WebhookRejected } from "profilesvc-client";

const { BODY = "", HEADERS = "{}", SECRET = "" } = process.env;
const headers = JSON.parse(HEADERS) as Record<string, string>;
const sentAt = 1000 * Number(headers["webhook-timestamp"]);
const signature = headers["webhook-signature"] ?? "";
const at = (seconds: number) => () => sentAt + 1000 * seconds;

const event = await verifyWebhook(BODY, headers, SECRET);
assert.deepEqual([event.id, event.type], ["evt_1_7", "key.rolled"]);
const bytes = new TextEncoder().encode(BODY);
assert.equal((await verifyWebhook(bytes, new Headers(headers), SECRET, at(299))).id, event.id);
const two = { ...headers, "webhook-signature": `v1,AAAA ${signature}` };
assert.equal((await verifyWebhook(BODY, two, SECRET, at(-299))).id, event.id);

const rejected: [string, Record<string, string | undefined>, string, () => number][] = [
  [`${BODY} `, headers, SECRET, at(0)],
  [BODY, { ...headers, "webhook-id": "evt_1_8" }, SECRET, at(0)],
  [BODY, { ...headers, "webhook-id": undefined }, SECRET, at(0)],
  [BODY, { ...headers, "webhook-timestamp": String(sentAt / 1000 + 1) }, SECRET, at(0)],
  [BODY, { ...headers, "webhook-timestamp": "now" }, SECRET, at(0)],
  [BODY, { ...headers, "webhook-signature": "" }, SECRET, at(0)],
  [BODY, { ...headers, "webhook-signature": "v1,é" }, SECRET, at(0)],
  [BODY, { ...headers, "webhook-signature": signature.slice(3) }, SECRET, at(0)],
  [BODY, headers, `whsec_${"A".repeat(32)}`, at(0)],
  [BODY, headers, SECRET.slice(6), at(0)],
  [BODY, headers, "whsec_", at(0)],
  [BODY, headers, SECRET, at(301)],
  [BODY, headers, SECRET, at(-301)],
];
for (const [body, changed, secret, now] of rejected) {
  await assert.rejects(verifyWebhook(body, changed, secret, now), WebhookRejected, JSON.stringify([changed, secret]));
}
