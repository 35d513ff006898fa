// The access token of an API key: fetched when it is first needed, renewed shortly before it expires.
import { ApiError } from "./errors.js";
import type { Client } from "./generated/client/index.js";
import { issueToken } from "./generated/sdk.gen.js";
import type { Token, TokenRequest } from "./generated/types.gen.js";

/** An API key; `permissions` is a subset of its permissions, by default all. */
export type Key = { clientId: string; clientSecret: string; permissions?: Token["permissions"] };

const EARLY = 60; // seconds before the end of a token at which it is renewed, but at most half of its lifetime

export class Tokens {
  #access: { token: string; usableUntil: number } | null = null;
  #refresh: { token: string; usableUntil: number } | null = null;
  #renewal: Promise<string> | null = null;

  constructor(private readonly key: Key, private readonly client: Client, private readonly now: () => number) {}

  /** Return a valid access token. */
  async get(): Promise<string> {
    return this.#access && this.now() < this.#access.usableUntil ? this.#access.token : this.renew();
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
    if (refresh && this.now() < refresh.usableUntil) {
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
    const { data } = await issueToken({ client: this.client, body, throwOnError: true });
    const token: Token = data.data;
    const usableUntil = (seconds: number) => this.now() + 1000 * (seconds - Math.min(EARLY, seconds / 2));
    this.#access = { token: token.access_token, usableUntil: usableUntil(token.expires_in) };
    if (token.refresh_token) {
      this.#refresh = { token: token.refresh_token, usableUntil: usableUntil(token.refresh_expires_in ?? 0) };
    }
    return token.access_token;
  }
}
