// The access token of an API key: fetched when it is first needed, renewed shortly before it expires.
import { ApiError } from "./errors.js";
import type { Client } from "./generated/client/index.js";
import { issueToken } from "./generated/sdk.gen.js";
import type { Token, TokenRequest } from "./generated/types.gen.js";

/** An API key; `permissions` is a subset of its permissions, by default all. */
export type Key = { clientId: string; clientSecret: string; permissions?: Token["permissions"] };

const EARLY = 60_000; // milliseconds before the end of a token at which it is renewed

export class Tokens {
  #access: { token: string; endsAt: number } | null = null;
  #refresh: { token: string; endsAt: number } | null = null;
  #renewal: Promise<string> | null = null;

  constructor(private readonly key: Key, private readonly client: Client, private readonly now: () => number) {}

  /** Return a valid access token. */
  async get(): Promise<string> {
    return this.#access && this.now() < this.#access.endsAt - EARLY ? this.#access.token : this.renew();
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
    if (refresh && this.now() < refresh.endsAt - EARLY) {
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
    this.#access = { token: token.access_token, endsAt: this.now() + token.expires_in * 1000 };
    if (token.refresh_token) {
      this.#refresh = { token: token.refresh_token, endsAt: this.now() + (token.refresh_expires_in ?? 0) * 1000 };
    }
    return token.access_token;
  }
}
