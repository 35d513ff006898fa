// Verifies deliveries of webhooks by Standard Webhooks, with the Web Crypto API of Node.js, Deno, Bun and the edge.
import type { PublishedEvent } from "./generated/types.gen.js";

const TOLERANCE = 300; // seconds

/** A delivery that is not from the service, or is too old. */
export class WebhookRejected extends Error {
  override name = "WebhookRejected";
}

/**
 * Check a delivery and return the event. `body` is the body as it arrived, before JSON is parsed. A delivery can arrive
 * twice: ignore an `id` that you have. Throws a WebhookRejected.
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: Headers | Record<string, string | string[] | undefined>,
  secret: string,
  now: () => number = Date.now,
): Promise<PublishedEvent> {
  const all = new Headers();
  const entries = headers instanceof Headers ? headers.entries() : Object.entries(headers);
  for (const [name, value] of entries) if (value !== undefined) all.set(name, String(value));
  const [id, sentAt, signatures] = ["id", "timestamp", "signature"].map((name) => all.get(`webhook-${name}`) ?? "");
  if (!id || !signatures || !/^[0-9]{1,12}$/.test(sentAt ?? "")) throw new WebhookRejected("a header is missing");
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const signed = new Uint8Array([...new TextEncoder().encode(`${id}.${sentAt}.`), ...bytes]);
  const key = await crypto.subtle.importKey("raw", keyOf(secret), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  const checks = signatures.split(" ").slice(0, 10).map(async (each) => {
    const signature = each.startsWith("v1,") ? decoded(each.slice(3)) : undefined;
    return signature !== undefined && (await crypto.subtle.verify("HMAC", key, signature, signed)); // in constant time
  });
  if (!(await Promise.all(checks)).includes(true)) throw new WebhookRejected("the signature is wrong");
  if (Math.abs(now() / 1000 - Number(sentAt)) > TOLERANCE) throw new WebhookRejected("it is more than 5 minutes old");
  return JSON.parse(new TextDecoder().decode(bytes)) as PublishedEvent;
}

function keyOf(secret: string): Uint8Array<ArrayBuffer> {
  const key = secret.startsWith("whsec_") ? decoded(secret.slice(6)) : undefined;
  if (key === undefined || key.length === 0) throw new WebhookRejected("the secret is no `whsec_…`");
  return key;
}

function decoded(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
