"""The configuration: one frozen value, read once from the environment and `.env`."""

import difflib
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from profilesvc.limits.settings import LimitSettings

PREFIX = "PROFILESVC_"
ENV_FILE = ".env"
_PLACEHOLDER = re.compile(r"change[-_ ]?(?:me|it|this)\b|…|\A<[^<>]*>\Z", re.IGNORECASE)
_ORIGIN = re.compile(r"https?://(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?\Z")


def _comma_list(value: Any) -> Any:
    """Split a comma-separated list."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


class SettingsError(Exception):
    """A setting that cannot be used. The message names the variable and the rule."""


def is_placeholder(value: str) -> bool:
    """Return whether a value is an example's placeholder for a secret."""
    return bool(_PLACEHOLDER.search(value))


def _placeholders(settings: BaseModel, before: str = PREFIX) -> list[str]:
    """Return the variables that still have an example's placeholder."""
    variables = []
    for name in type(settings).model_fields:
        value, variable = getattr(settings, name), f"{before}{name.upper()}"
        if isinstance(value, BaseModel):
            variables += _placeholders(value, f"{variable}__")
        elif isinstance(value, str | SecretStr):
            text = value if isinstance(value, str) else value.get_secret_value()
            variables += [variable] if is_placeholder(text) else []
    return variables


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _provider_url(value: str) -> str:
    if value and not (_host(value, "http") or _host(value, "https")):
        raise ValueError("must be a URL such as https://provider.example:8443, without a user")
    return value


_ProviderUrl = Annotated[str, AfterValidator(_provider_url)]


class ProviderSettings(_Group):
    """The address and the login of the provider. An empty `url` means the embedded emulator.

    `timeout_seconds` is the time that one request of the service may spend at the provider. `edits_per_minute` limits
    the edits of one profile; 0 means no limit and is the emulator's default.
    """

    url: _ProviderUrl = ""
    information_url: _ProviderUrl = ""
    verifications_url: _ProviderUrl = ""
    accounts_url: _ProviderUrl = ""
    posts_url: _ProviderUrl = ""
    client_id: str = ""
    client_secret: SecretStr = SecretStr("")
    refresh_token: SecretStr = SecretStr("")
    token_url: _ProviderUrl = ""
    timeout_seconds: Annotated[float, Field(gt=0, le=60)] = 8.0
    edits_per_minute: Annotated[int, Field(ge=0, le=1000)] = 10

    @property
    def embedded(self) -> bool:
        """Whether the embedded emulator is used, because no provider is configured."""
        return not (self.url or self.information_url or self.posts_url)

    def problem(self) -> str | None:
        """Return which URL production rejects, as the end of a sentence that starts with the setting's name."""
        for name in ("url", "information_url", "verifications_url", "accounts_url", "posts_url", "token_url"):
            value = getattr(self, name)
            if value and not _is_https_url(value):
                return f"{name.upper()} must be an https:// URL without a user in production: it receives the login"
        return None


class TokenSettings(_Group):
    """Lifetimes in seconds, the schedule of signing keys, and files of keys that the operator provides.

    `signing_key_file` has the RSA key of access tokens, `refresh_key_file` the HMAC key of refresh tokens.
    """

    access_ttl_seconds: Annotated[int, Field(ge=60, le=31_536_000)] = 7_776_000
    refresh_ttl_seconds: Annotated[int, Field(ge=60, le=31_536_000)] = 2_592_000
    user_ttl_seconds: Annotated[int, Field(ge=60, le=31_536_000)] = 604_800
    refresh_grace_seconds: Annotated[int, Field(ge=0, le=60)] = 30
    rotate_days: Annotated[int, Field(ge=1, le=3650)] = 90
    announce_days: Annotated[int, Field(ge=1, le=365)] = 14
    signing_key_file: Path | None = None
    refresh_key_file: Path | None = None
    key_passphrase: SecretStr = SecretStr("")


def _strong_token(value: SecretStr) -> SecretStr:
    secret = value.get_secret_value()
    if secret and not re.fullmatch(r"[A-Za-z0-9._~+/-]{16,512}=*", secret):
        raise ValueError("must have 16 to 512 of the characters of a bearer token (letters, digits, -._~+/)")
    return value


Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]


class IdentitySettings(_Group):
    """The external identity provider for user tokens. Development without one uses the bundled issuer."""

    issuer: Annotated[str, Field(max_length=255)] = ""
    jwks_url: str = ""
    client_id: str = ""
    client_secret: SecretStr = SecretStr("")
    algorithms: Annotated[tuple[Algorithm, ...], NoDecode, BeforeValidator(_comma_list), Field(min_length=1)] = (
        "RS256",
    )
    create_users: bool = False
    dev_issuer: bool | None = None

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


def _is_https_url(value: str) -> bool:
    """Return whether secrets may be sent to this address."""
    return bool(_host(value, "https"))


def _host(value: str, scheme: str) -> str | None:
    """Return the host of a URL with this scheme; None for an invalid URL, one with a user, or one with port 0."""
    try:
        parts = urlsplit(value)
        has_port = parts.port != 0
    except ValueError:
        return None
    is_plain = value.isascii() and value.isprintable() and " " not in value and "@" not in parts.netloc
    return parts.hostname if parts.scheme == scheme and is_plain and has_port else None


class MetricsSettings(_Group):
    """Access to `/metrics`: the bearer token, and the only port that serves it, if any."""

    token: Annotated[SecretStr, AfterValidator(_strong_token)] = SecretStr("")
    port: Annotated[int, Field(ge=1, le=65_535)] | None = None


class LabSettings(_Group):
    """The service on which the notebooks run; an empty target means the embedded one.

    On a deployed service, `write` allows posts, replies and syncs. `patience_seconds` is the longest wait of a cleanup
    for a service or provider that is down. `make smoke` sets `journal` and undoes the changes recorded there.
    """

    target: str = ""
    user_token: SecretStr = SecretStr("")
    location: str = ""
    write: bool = False
    patience_seconds: Annotated[float, Field(ge=0, le=3600)] = 120
    journal: Path | None = None


def _base_url(value: str) -> str:
    value = value.rstrip("/")
    if value and not value.startswith(("http://", "https://")):
        raise ValueError("must start with http:// or https://")
    return value


class TracingSettings(_Group):
    """The collector of spans by OTLP over HTTP (requires the extra `otel`), and the share of traced requests."""

    endpoint: Annotated[str, AfterValidator(_base_url)] = ""
    sample_ratio: Annotated[float, Field(ge=0, le=1)] = 1.0


def _database_url(value: str) -> str:
    if value and not value.startswith(("sqlite+aiosqlite:///", "postgresql+asyncpg://")):
        raise ValueError("must start with postgresql+asyncpg:// or sqlite+aiosqlite:///")
    if value.startswith("postgresql"):
        _require_port(re.split(r"[/?]", value.split("://", 1)[1].rpartition("@")[2], maxsplit=1)[0])
    return value


def _require_port(address: str) -> None:
    """Check the port of an address, if it has one. The message does not repeat the address."""
    host, colon, port = address.rpartition(":") if not address.endswith("]") else (address, "", "")
    if host.startswith("[") is not host.endswith("]"):
        raise ValueError("has an unclosed bracket; an IPv6 address is written [::1]:5432")
    if colon and port and not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) <= 65_535):
        raise ValueError("must have a port from 1 to 65535")


def _is_origin(value: str) -> bool:
    match = _ORIGIN.match(value)
    return match is not None and 0 < int(match[1] or 1) <= 65_535


def _origins(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if not _is_origin(value):
            raise ValueError(f"{value} is not an origin such as https://dashboard.example:8443")
    return values


class Settings(BaseSettings):
    """All settings; the README has a table of them."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", env_file=ENV_FILE, extra="ignore", frozen=True
    )

    environment: Literal["development", "production"] = "development"
    base_url: Annotated[str, AfterValidator(_base_url)] = ""
    data_dir: Path = Path("var")
    database_url: Annotated[str, AfterValidator(_database_url)] = ""
    database_pool_size: Annotated[int, Field(ge=1, le=200)] = 10
    provider: ProviderSettings = ProviderSettings()
    tokens: TokenSettings = TokenSettings()
    limits: LimitSettings = LimitSettings()
    identity: IdentitySettings = IdentitySettings()
    lab: LabSettings = LabSettings()
    tracing: TracingSettings = TracingSettings()
    metrics: MetricsSettings = MetricsSettings()
    max_in_flight: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    drain_seconds: Annotated[float, Field(ge=0, le=300)] = 0
    access_log: bool = False
    trusted_hops: Annotated[int, Field(ge=0, le=16)] = 0
    secret_pepper: SecretStr = SecretStr("")
    plans_file: Path | None = None
    dashboard_origins: Annotated[tuple[str, ...], NoDecode, AfterValidator(_origins)] = ()
    upgrade_url: str = ""
    mirror_max_age_seconds: Annotated[int, Field(ge=0, le=86_400)] = 60

    @model_validator(mode="before")
    @classmethod
    def _comma_lists(cls, values: Any) -> Any:
        """Split the comma-separated list of origins."""
        origins = values.get("dashboard_origins") if isinstance(values, dict) else None
        if isinstance(origins, str):
            parts = (part.strip().rstrip("/") for part in origins.split(","))
            values = {**values, "dashboard_origins": tuple(part for part in parts if part)}
        return values

    @property
    def production(self) -> bool:
        """Whether development shortcuts are rejected."""
        return self.environment == "production"

    @property
    def effective_database_url(self) -> str:
        """The URL of the configured database, or of the SQLite file in DATA_DIR."""
        return self.database_url or f"sqlite+aiosqlite:///{self.data_dir / 'profilesvc.db'}"

    @property
    def effective_upgrade_url(self) -> str:
        """The address where owners change their plan."""
        return self.upgrade_url or f"{self.base_url}/dashboard"

    @property
    def with_dev_issuer(self) -> bool:
        """Whether the bundled development issuer replaces an identity provider."""
        return not self.production and not self.identity.issuer and self.identity.dev_issuer is not False

    @model_validator(mode="after")
    def _identity_is_whole(self) -> Self:
        if problem := self.identity.problem(self.production):
            raise ValueError(f"{PREFIX}IDENTITY__{problem}")
        return self

    @model_validator(mode="after")
    def _production_is_strict(self) -> Self:
        if not self.production:
            return self
        if not self.base_url.startswith("https://"):
            raise ValueError(f"{PREFIX}BASE_URL is required in production and must start with https://")
        if not _is_origin(self.base_url):
            raise ValueError(
                f"{PREFIX}BASE_URL must be an origin in production, such as https://profiles.example.com, "
                "without user, path, query or fragment"
            )
        if self.provider.embedded:
            raise ValueError(f"{PREFIX}PROVIDER__URL is required in production: the emulator is for development")
        if problem := self.provider.problem():
            raise ValueError(f"{PREFIX}PROVIDER__{problem}")
        if variables := _placeholders(self):
            raise ValueError(f"{', '.join(variables)}: replace the placeholder of the example with your value")
        if any(not origin.lower().startswith("https://") for origin in self.dashboard_origins):
            raise ValueError(f"{PREFIX}DASHBOARD_ORIGINS must start with https:// in production")
        return self


class _Environment(BaseSettings):
    """The environment only, which can be read even if other settings are invalid."""

    model_config = Settings.model_config

    environment: str = "development"


def refuse_in_production(what: str) -> None:
    """Reject an action outside of development, even if other settings are invalid.

    Raises:
        SettingsError: The environment is not `development`.
    """
    if _Environment().environment != "development":
        raise SettingsError(f"{PREFIX}ENVIRONMENT: {what} is for development only")


def load(**overrides: Any) -> Settings:
    """Read the environment. `overrides` replace single fields.

    Raises:
        SettingsError: A setting is unknown or invalid; the message has one line.
    """
    file = overrides.get("_env_file", ENV_FILE)
    _reject_unknown([*os.environ, *(() if file is None else dotenv_values(file))])
    try:
        return Settings(**overrides)
    except ValueError as error:
        problems = getattr(error, "errors", None)
        if problems is None:
            raise SettingsError(str(error)) from None
        lines = [f"{PREFIX}{'__'.join(str(p) for p in e['loc']).upper()}: {e['msg']}" for e in problems()]
        texts = [line.replace("Value error, ", "", 1).removeprefix(f"{PREFIX}: ") for line in lines]
        raise SettingsError("; ".join(texts)) from None


def _reject_unknown(variables: list[str]) -> None:
    """Reject a variable with our prefix that is not a setting, and suggest the most similar one."""
    groups = {f"{PREFIX}{name}".upper(): field for name, field in Settings.model_fields.items()}
    for variable in variables:
        if not variable.upper().startswith(PREFIX) or variable.upper().split("__")[0] in groups:
            continue
        similar = difflib.get_close_matches(variable.upper(), _all_variables(groups), n=1)
        raise SettingsError(f"{variable} is not a setting." + (f" Did you mean {similar[0]}?" if similar else ""))


def _all_variables(groups: dict[str, FieldInfo]) -> list[str]:
    """Return all variables, including `GROUP__FIELD`."""
    names: list[str] = []
    for name, field in groups.items():
        fields = getattr(type(field.default), "model_fields", None)
        names += [name] if fields is None else [f"{name}__{nested}".upper() for nested in fields]
    return names
