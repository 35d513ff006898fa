// The errors of the API, with the details that programs read.
import type { ErrorBody, OAuthError } from "./generated/types.gen.js";
import { retryAfter } from "./retry-after.js";

export type ErrorCode = ErrorBody["code"];
type DetailsOf<Code> = Code extends keyof Details ? Details[Code] : Record<string, unknown>;
/** The details of an error by its code. Other codes have none. */
export interface Details {
  VALIDATION_ERROR: { errors: { in: "body" | "query" | "path" | "header"; field: string; problem: string }[] };
  AUTH_INVALID_TOKEN: { reason?: "missing" | "malformed" | "invalid" | "expired" | "revoked" };
  AUTH_INSUFFICIENT_PERMISSIONS: {
    reason?: "permission_missing" | "permissions_not_allowed" | "other_location" | "user_token_required"
      | "service_token_required" | "origin_not_allowed" | "no_user"; // absent if the key is deactivated
    required?: string; requested?: string[]; allowed?: string[];
    deactivation_reason?: "security_concern" | "billing_issue" | "plan_downgrade" | "user_requested";
    deactivated_at?: string;
    upgrade_url?: string;
  };
  PLAN_RESTRICTION: { limit?: number };
  CONFLICT: { limit?: number; previous_secret_expires_at?: string; deactivation_reason?: string };
  LOCATION_NOT_VERIFIED: { verificationState: string };
  QUOTA_EXCEEDED: { limit: number; used: number; resets_at: string };
  PROVIDER_API_ERROR: {
    reason: "rejected" | "unavailable" | "timeout" | "rate_limited" | "quota" | "reauth_required";
    retryable: boolean;
    provider_status?: number; provider_code?: string;
    provider_reason?: string; provider_message?: string;
    fields?: string[];
  };
}

/** An error that the service returned. Switch on `code`; `message` is for people. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: ErrorCode | OAuthError["error"] | "UNKNOWN";
  readonly details: Record<string, unknown>;
  readonly requestId: string | null;
  /** The seconds to wait before a retry, if the service named them. */
  readonly retryAfter: number | null;

  constructor(body: unknown, readonly status: number, headers: Headers) {
    const { error, error_description, ...more } = { ...(body as Record<string, unknown>) };
    const failure = typeof error === "object" ? (error as ErrorBody) : undefined;
    super(failure?.message ?? String(error_description ?? `The service returned ${status}.`));
    this.code = failure?.code ?? (error as OAuthError["error"] | undefined) ?? "UNKNOWN";
    this.details = failure ? (failure.details ?? {}) : more;
    this.requestId = headers.get("X-Request-Id");
    this.retryAfter = retryAfter(headers.get("Retry-After"), Date.now());
  }

  /** Whether the error has this code; then `details` has its type. */
  is<Code extends ErrorCode>(code: Code): this is ApiError & { code: Code; details: DetailsOf<Code> } {
    return this.code === code;
  }
}
