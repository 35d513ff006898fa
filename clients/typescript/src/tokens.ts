// The access token of an API key: fetched when it is first needed, renewed five minutes before it expires.
import { ApiError } from "./errors.js";
import type { Client } from "./generated/client/index.js";
import { issueToken } from "./generated/sdk.gen.js";
import type { Token, TokenRequest } from "./generated/types.gen.js";

/** An API key; `permissions` is a subset of its permissions, by default all. */
export type Key = { clientId: string; clientSecret: string; permissions?: Token["permissions"] };

const EARLY = 300; // seconds before the end of a token at which it is renewed, but at most half of its lifetime
const LATER = 30; // seconds until the next attempt, if the service cannot renew a token that is still valid
const TEMPORARY = ["RATE_LIMITED", "SERVICE_UNAVAILABLE"];
const OF_GATEWAYS = [429, 502, 503, 504]; // statuses of responses without a code of the service

export class Tokens {
  #access: { token: string; renewAt: number; expiresAt: number } | null = null;
  #refresh: { token: string; expiresAt: number } | null = null;
  #renewal: Promise<string> | null = null;

  constructor(private readonly key: Key, private readonly client: Client, private readonly now: () => number) {}

  /** Return a valid access token. If it cannot be renewed for the moment, it is used until it expires. */
  async get(): Promise<string> {
    const access = this.#access;
    if (access && this.now() < access.renewAt) return access.token;
    try {
      return await this.renew();
    } catch (error) {
      if (!access || this.now() >= access.expiresAt || !isTemporary(error)) throw error;
      access.renewAt = this.now() + 1000 * LATER;
      return access.token;
    }
  }

  /** Return a new access token, unless `rejected` has been replaced already. Concurrent calls share one request. */
  async renew(rejected?: string): Promise<string> {
    if (rejected !== undefined && this.#access && this.#access.token !== rejected) return this.#access.token;
    this.#renewal ??= this.#exchange().finally(() => (this.#renewal = null));
    return this.#renewal;
  }

  async #exchange(): Promise<string> {
    const refresh = this.#refresh;
    this.#refresh = null; // a refresh token is accepted once
    if (refresh && this.now() < refresh.expiresAt) {
      try {
        return await this.#request({ grant_type: "refresh_token", refresh_token: refresh.token });
      } catch (error) {
        if (!(error instanceof ApiError && error.is("AUTH_INVALID_TOKEN"))) throw error;
      }
    }
    const { clientId: client_id, clientSecret: client_secret, permissions } = this.key;
    return this.#request({ grant_type: "client_credentials", client_id, client_secret, permissions });
  }

  async #request(body: TokenRequest): Promise<string> {
    const started = this.now();
    const { data } = await issueToken({ client: this.client, body, throwOnError: true });
    const token: Token = data.data;
    const expiresAt = started + 1000 * token.expires_in;
    this.#access = { token: token.access_token, renewAt: expiresAt - 1000 * Math.min(EARLY, token.expires_in / 2), expiresAt };
    if (token.refresh_token) {
      this.#refresh = { token: token.refresh_token, expiresAt: started + 1000 * (token.refresh_expires_in ?? 0) };
    }
    return token.access_token;
  }
}

function isTemporary(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.code === "UNKNOWN" ? OF_GATEWAYS.includes(error.status) : TEMPORARY.includes(error.code);
}
