// The API from TypeScript: `connect` makes a client, and there is a function for each operation.
import { ApiError } from "./errors.js";
import { createClient, createConfig, type Client } from "./generated/client/index.js";
import { Tokens, type Key } from "./tokens.js";

export * from "./generated/sdk.gen.js";
export type * from "./generated/types.gen.js";
export { ApiError, type Details, type ErrorCode } from "./errors.js";
export { pages } from "./paging.js";
export { verifyWebhook, WebhookRejected } from "./webhooks.js";
export type { Client, Key };

const LOOPBACK = /^(?:(?:.+\.)?localhost\.?|127\.[\d.]+|\[::1\])$/;

export interface Options {
  /** Where the service is, such as `https://profiles.example`. `http:` is for this machine only. */
  baseUrl: string;
  /** An API key, whose tokens the client fetches and renews. */
  key?: Key;
  /** Or an access token, such as that of a user. */
  token?: string;
  fetch?: typeof fetch;
  /** The time in milliseconds, for tests. */
  now?: () => number;
}

/** Return a client, for the option `client` of every operation. */
export function connect({ baseUrl, key, token, fetch: send = fetch, now = Date.now }: Options): Client {
  if (key === undefined) return made(baseUrl, send, async () => token && `Bearer ${token}`);
  const tokens = new Tokens(key, made(baseUrl, send, async () => undefined), now);
  const basic = `Basic ${btoa(`${key.clientId}:${key.clientSecret}`)}`;

  /** Send a request; if its token was rejected, send it once more with a new one. */
  const renewing: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    const again = request.clone();
    const response = await send(request);
    const [scheme, rejected] = (request.headers.get("Authorization") ?? "").split(" ");
    if (response.status !== 401 || scheme !== "Bearer") return response;
    again.headers.set("Authorization", `Bearer ${await tokens.renew(rejected)}`);
    return send(again);
  };
  return made(baseUrl, renewing, async (scheme) => (scheme === "basic" ? basic : `Bearer ${await tokens.get()}`));
}

/** `authorization` returns the header for the first scheme of an operation that has one. */
function made(baseUrl: string, send: typeof fetch, authorization: (scheme?: string) => Promise<string | undefined>): Client {
  requirePrivate(baseUrl);
  const client = createClient(createConfig({ baseUrl, fetch: send, redirect: "manual" })); // a redirect would repeat secrets
  client.interceptors.request.use(async (request, { security }) => {
    requirePrivate(request.url);
    const header = security && (await authorization(security[0]?.scheme));
    if (header) request.headers.set("Authorization", header);
    return request;
  });
  client.interceptors.error.use((error, response) =>
    response ? new ApiError(error, response.status, response.headers) : error,
  );
  return client;
}

/** Secrets stay private on the way by TLS, or because they do not leave this machine. */
function requirePrivate(url: string): void {
  const { protocol, hostname } = new URL(url);
  if (protocol === "https:" || (protocol === "http:" && LOOPBACK.test(hostname))) return;
  throw new TypeError("The address of the service must start with https://, because requests contain secrets.");
}

/** Return the `data` of a call: `const post = await data(createPost({ client, … }))`. Throws an ApiError. */
export async function data<T>(call: Promise<{ data?: { data: T }; error?: unknown }>): Promise<T> {
  return (await standard(call)).data;
}

/** Return the body of a call of an OAuth endpoint, which has no envelope. Throws an ApiError. */
export async function standard<T>(call: Promise<{ data?: T; error?: unknown }>): Promise<T> {
  const result = await call;
  if (result.data === undefined) throw result.error;
  return result.data;
}
