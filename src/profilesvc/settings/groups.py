"""The groups of settings, such as `PROFILESVC_PROVIDER__URL`. The docstrings of the fields become docs/settings.md."""

import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr
from pydantic_settings import NoDecode

from profilesvc.settings import branding

Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]


# An empty variable is an unset one; the path of an empty text is the current folder.
OptionalPath = Annotated[Path | None, BeforeValidator(lambda value: value or None)]


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _host(value: str, scheme: str) -> str | None:
    """Return the host of a URL with this scheme; None for an invalid URL, one with a user, or one with port 0."""
    try:
        parts = urlsplit(value)
        has_port = parts.port != 0
    except ValueError:
        return None
    is_plain = value.isascii() and value.isprintable() and " " not in value and "@" not in parts.netloc
    return parts.hostname if parts.scheme == scheme and is_plain and has_port else None


def _is_https_url(value: str) -> bool:
    """Return whether secrets may be sent to this address."""
    return bool(_host(value, "https"))


def _url(value: str) -> str:
    if value and not (_host(value, "http") or _host(value, "https")):
        raise ValueError("must be an http:// or https:// URL with a host and without a user")
    return value


WebUrl = Annotated[str, AfterValidator(_url)]


class ProviderSettings(_Group):
    """The address and the login of the provider (docs/provider.md)."""

    url: WebUrl = ""
    """Origin of all APIs of the provider, https in production. Empty: the embedded emulator, in development only."""
    information_url: WebUrl = ""
    """Origin of the Business Information API. Empty: `PROVIDER__URL`."""
    verifications_url: WebUrl = ""
    """Origin of the Verifications API. Empty: `PROVIDER__URL`."""
    accounts_url: WebUrl = ""
    """Origin of the Account Management API. Empty: `PROVIDER__URL`."""
    posts_url: WebUrl = ""
    """Origin of the API for posts and reviews (v4). Empty: `PROVIDER__URL`."""
    notifications_url: WebUrl = ""
    """Origin of the Notifications API. Empty: `PROVIDER__URL`."""
    client_id: str = ""
    """Id of the OAuth client at the provider."""
    client_secret: SecretStr = SecretStr("")
    """Secret of the OAuth client at the provider."""
    refresh_token: SecretStr = SecretStr("")
    """Refresh token of the installation's own login, for locations that no owner has connected."""
    token_url: WebUrl = ""
    """URL of the provider's token endpoint. Empty: `/token` of `PROVIDER__URL`."""
    authorize_url: WebUrl = ""
    """URL of the provider's consent page, where owners connect their login. Empty: that of `PROVIDER__URL`."""
    revoke_url: WebUrl = ""
    """URL of the provider's revocation endpoint. Empty: `/revoke` of `PROVIDER__URL`."""
    userinfo_url: WebUrl = ""
    """URL of the provider's userinfo endpoint. Empty: `/v1/userinfo` of `PROVIDER__URL`."""
    timeout_seconds: Annotated[float, Field(gt=0, le=60)] = 8.0
    """Time that one request of ours may spend at the provider, retries included."""
    edits_per_minute: Annotated[int, Field(ge=0, le=1000)] = 10
    """Edits per profile and minute that all processes send, the provider's own limit. 0: no limit."""
    requests_per_minute: Annotated[int, Field(ge=0, le=100_000)] = 300
    """Requests per minute and API that all processes send with Redis, else each process. 0: no limit."""
    updates_per_day: Annotated[int, Field(ge=0, le=1_000_000)] = 10_000
    """Updates of locations per day that all processes send with Redis, else each process. 0: no limit."""
    owner_share_percent: Annotated[int, Field(ge=1, le=100)] = 40
    """Percent of these requests and updates that one owner may use. Set 100 for an installation with one owner."""
    readings_per_minute: Annotated[int, Field(ge=0, le=1000)] = 30
    """Requests per minute that find new reviews and changed posts for events, a tenth of the quota. 0: none."""
    reading_interval_minutes: Annotated[int, Field(ge=5, le=1440)] = 60
    """How often the reviews and posts of a location are read for events, if the requests per minute suffice."""

    check_interval_minutes: Annotated[int, Field(ge=5, le=10_080)] = 180
    """How often a location with a live key is checked for drift, reviews and posts, within the same requests."""

    @property
    def embedded(self) -> bool:
        """Return whether the embedded emulator is used, because no provider is configured."""
        return not (self.url or self.information_url or self.posts_url)

    def problem(self) -> str | None:
        """Return which URL production rejects, as the end of a sentence that starts with the setting's name."""
        apis = ("url", "information_url", "verifications_url", "accounts_url", "posts_url", "notifications_url")
        for name in (*apis, "token_url", "authorize_url", "revoke_url", "userinfo_url"):
            value = getattr(self, name)
            if value and not _is_https_url(value):
                return f"{name.upper()} must be an https:// URL without a user in production: it receives the login"
        return None


_TOPIC = re.compile(r"projects/[A-Za-z0-9:._-]{1,100}/topics/[A-Za-z][A-Za-z0-9._~+%-]{2,254}\Z")


class NotificationSettings(_Group):
    """The provider's change feed by Pub/Sub (docs/notifications.md)."""

    topic: str = ""
    """Topic to which the provider publishes, `projects/P/topics/T`. Empty: no change feed."""
    service_account: Annotated[str, Field(max_length=320, pattern=r"^([^@\s<>]+@[^@\s<>]+)?$")] = ""
    """E-mail of the service account that the push subscription signs with. Required with a `TOPIC`."""
    audience: str = ""
    """Audience of the tokens of the push subscription. Empty: `{BASE_URL}/provider/notifications`."""
    issuer: str = "https://accounts.google.com"
    """Issuer of these tokens, exactly as in their `iss`."""
    jwks_url: str = "https://www.googleapis.com/oauth2/v3/certs"
    """URL of the issuer's public keys. With the embedded emulator: its own."""
    reads_per_minute: Annotated[int, Field(ge=12, le=1000)] = 120
    """Requests per minute that read what notifications have named, part of the provider's quota."""

    @property
    def enabled(self) -> bool:
        """Return whether the provider announces changes, so that caches are valid for a day."""
        return bool(self.topic)

    def problem(self, production: bool) -> str | None:
        """Return which value is invalid, as the end of a sentence that starts with the setting's name."""
        if self.topic and not _TOPIC.match(self.topic):
            return "TOPIC must be projects/P/topics/T"
        if self.topic and not self.service_account:
            return "SERVICE_ACCOUNT is required with a TOPIC, because it is in the tokens of its pushes"
        if self.topic and not _is_jwks_url(self.jwks_url, production):
            return "JWKS_URL must be https:// (in development also http:// on loopback)"
        return None


class TokenSettings(_Group):
    """Lifetimes of tokens, and the keys that sign them (docs/operations.md)."""

    access_ttl_seconds: Annotated[int, Field(ge=60, le=31_536_000)] = 7_776_000
    """Lifetime of access tokens, 90 days by default. Use 3600 for a new deployment; clients read `expires_in`."""
    refresh_ttl_seconds: Annotated[int, Field(ge=60, le=31_536_000)] = 2_592_000
    """Lifetime of refresh tokens, 30 days by default."""
    user_ttl_seconds: Annotated[int, Field(ge=60, le=31_536_000)] = 604_800
    """Lifetime of user tokens and dashboard sessions, 7 days by default."""
    refresh_grace_seconds: Annotated[int, Field(ge=0, le=60)] = 30
    """How long a refresh token that was exchanged returns the same pair again, for a client that lost the response."""
    rotate_days: Annotated[int, Field(ge=1, le=3650)] = 90
    """How long a signing key signs before the next one replaces it."""
    announce_days: Annotated[int, Field(ge=1, le=365)] = 14
    """How long before its first signature a new signing key is published."""
    signing_key_file: OptionalPath = None
    """PEM file with your own RSA key (2048 bits or more) for access tokens. It ends the rotation of these keys."""
    refresh_key_file: OptionalPath = None
    """PEM file with an Ed25519 key whose 32 bytes sign refresh tokens. It ends the rotation of these keys."""
    key_passphrase: SecretStr = SecretStr("")
    """Encrypts the signing keys and the owners' logins at the provider, also existing ones. Required in production.
    They cannot be read without it: keep a copy."""


def _comma_list(value: object) -> object:
    """Split a comma-separated list."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


class IdentitySettings(_Group):
    """The identity provider where users sign in (docs/identity.md)."""

    issuer: Annotated[str, Field(max_length=255)] = ""
    """Issuer, exactly as in the `iss` of ID tokens. Empty in development: the bundled issuer."""
    jwks_url: str = ""
    """URL of the issuer's public keys. https; in development also http on loopback."""
    client_id: str = ""
    """Id of the dashboard at the identity provider, which is the `aud` of ID tokens."""
    client_secret: SecretStr = SecretStr("")
    """Secret of the dashboard at the identity provider. Empty for a public client."""
    algorithms: Annotated[tuple[Algorithm, ...], NoDecode, BeforeValidator(_comma_list), Field(min_length=1)] = (
        "RS256",
    )
    """Accepted signatures of ID tokens, as a comma-separated list."""
    create_users: bool = False
    """Whether the first login of an unknown subject creates a user."""
    dev_issuer: bool | None = None
    """Whether the bundled issuer runs. Unset: in development without an issuer. It signs in anyone."""

    def problem(self, production: bool) -> str | None:
        """Return which value is invalid, as the end of a sentence that starts with the setting's name."""
        if production and self.dev_issuer:
            return "DEV_ISSUER must not be set in production, because the bundled issuer signs in anyone"
        if self.issuer and not self.client_id:
            return "CLIENT_ID is required with an ISSUER, because it is the audience of the ID tokens"
        if self.issuer and production and not _is_https_url(self.issuer):
            return "ISSUER must be an https:// URL in production, because its token endpoint receives the client secret"
        if self.issuer and not _is_jwks_url(self.jwks_url, production):
            return "JWKS_URL is required with an ISSUER and must be https:// (in development also http:// on loopback)"
        return None


def _is_jwks_url(value: str, production: bool) -> bool:
    return _is_https_url(value) or (not production and _host(value, "http") in {"127.0.0.1", "::1", "localhost"})


def _strong_token(value: SecretStr) -> SecretStr:
    secret = value.get_secret_value()
    if secret and not re.fullmatch(r"[A-Za-z0-9._~+/-]{16,512}=*", secret):
        raise ValueError("must have 16 to 512 of the characters of a bearer token (letters, digits, -._~+/)")
    return value


class MetricsSettings(_Group):
    """Access to `/metrics`."""

    token: Annotated[SecretStr, AfterValidator(_strong_token)] = SecretStr("")
    """Bearer token that readers of `/metrics` send, 16 characters or more. Empty: everyone can read it."""
    port: Annotated[int, Field(ge=1, le=65_535)] | None = None
    """The only port that serves `/metrics`, and nothing else (`serve` only). Unset: the port of the service."""


class RequestLogSettings(_Group):
    """The log of the requests of a key, which its owner reads for 7 days (docs/operations.md#request-log)."""

    errors_per_hour: Annotated[int, Field(ge=0, le=10_000)] = 100
    """Errors of a key that each process logs in an hour. 0: none. All requests are counted in any case."""
    success_interval: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """One of so many successes is logged, at most 20 of a key in an hour. 0: none. Unset: 50, in development 1."""


class WebhookSettings(_Group):
    """Deliveries of events to webhooks, chats and mail (docs/events.md)."""

    deliver: bool = True
    """Whether this process delivers. At least one process of a service must."""
    calls: Annotated[int, Field(ge=1, le=10_000)] = 500
    """Number of deliveries that one process sends at a time. One endpoint gets at most 4."""
    allow_private: bool = False
    """Whether endpoints may use http and private addresses, such as `http://127.0.0.1:8001`. Development only."""


def _mail_url(value: SecretStr) -> SecretStr:
    url = value.get_secret_value()
    try:
        parts = urlsplit(url)
        is_valid = (
            parts.scheme in _MAIL_SCHEMES and bool(parts.hostname) and parts.port != 0 and not parts.path.strip("/")
        )
    except ValueError:
        is_valid = False
    if url and not is_valid:
        raise ValueError(
            "must be smtp://, smtp+starttls:// or smtps:// with a host, such as smtps://user:password@host"
        )
    return value


_MAIL_SCHEMES = ("smtp", "smtp+starttls", "smtps")


class MailSettings(_Group):
    """Alerts by e-mail (docs/events.md)."""

    url: Annotated[SecretStr, AfterValidator(_mail_url)] = SecretStr("")
    """Mail server, `smtp+starttls://user:password@host:587` or `smtps://…`. Empty: no mail; in development files."""
    from_: Annotated[str, Field(alias="from", max_length=320, pattern=r"^[^@\s<>]+@[^@\s<>]+$")] = (
        "alerts@profilesvc.invalid"
    )
    """Address that alerts are from."""
    operator: Annotated[str, Field(max_length=320, pattern=r"^([^@\s<>]+@[^@\s<>]+)?$")] = ""
    """Address that gets one message when alarms of many sites are held back. Empty: only the log has it."""

    def problem(self) -> str | None:
        """Return what is wrong for production, starting with the name of the variable; None if it may be used."""
        parts = urlsplit(self.url.get_secret_value())
        if parts.scheme == "smtp" and parts.password:
            return "URL must not send a password in plain text: use smtp+starttls:// or smtps://"
        return None

    def sends(self, production: bool) -> bool:
        """Return whether messages can be sent: to a server, or in development to files."""
        return bool(self.url.get_secret_value()) or not production


class DashboardSettings(_Group):
    """The name and the looks of the dashboard (docs/dashboard.md)."""

    product_name: Annotated[str, AfterValidator(branding.product_name)] = "profilesvc"
    """Name of the product in the header, the titles and the mails, at most 40 characters."""
    logo_file: Annotated[OptionalPath, AfterValidator(branding.logo_file)] = None
    """SVG or PNG file, at most 100 kB, that the header shows next to the name. Unset: no logo."""

    @property
    def logo_type(self) -> str:
        """The media type of the logo."""
        return branding.type_of(self.logo_file) if self.logo_file else ""


class LabSettings(_Group):
    """The service on which the notebooks and `make smoke` run."""

    target: str = ""
    """Base URL of a deployed service. Empty: the notebooks start one."""
    user_token: SecretStr = SecretStr("")
    """User token for the deployed service."""
    location: str = ""
    """Location of the user that the notebooks may use, such as `locations/123`."""
    write: bool = False
    """Whether posts, replies and syncs are allowed on the deployed service."""
    patience_seconds: Annotated[float, Field(ge=0, le=3600)] = 120
    """Longest wait of a cleanup for a service or provider that is down."""
    journal: OptionalPath = None
    """File of the changes to undo. `make smoke` sets it."""


def checked_base_url(value: str) -> str:
    """Check a base URL, and remove a slash at its end."""
    value = value.rstrip("/")
    if value and not value.startswith(("http://", "https://")):
        raise ValueError("must start with http:// or https://")
    return value


class TracingSettings(_Group):
    """Traces by OTLP over HTTP, which need the extra `otel`."""

    endpoint: Annotated[str, AfterValidator(checked_base_url)] = ""
    """Base URL of an OpenTelemetry collector, such as `http://127.0.0.1:4318`. Empty: no traces."""
    sample_ratio: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of requests that are traced."""
