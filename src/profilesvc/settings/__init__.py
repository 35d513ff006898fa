"""The configuration: one frozen value, read once from the environment and `.env`."""

import difflib
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

from dotenv import dotenv_values
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from profilesvc.limits.settings import LimitSettings
from profilesvc.settings.groups import (
    DashboardSettings,
    IdentitySettings,
    LabSettings,
    MailSettings,
    MetricsSettings,
    NotificationSettings,
    OptionalPath,
    ProviderSettings,
    RequestLogSettings,
    TokenSettings,
    TracingSettings,
    WebhookSettings,
    WebUrl,
    checked_base_url,
)
from profilesvc.settings.secret_files import SUFFIX, read_secrets, variables
from profilesvc.settings.strength import GENERATE, weakness
from profilesvc.settings.transport import redis_problem, traces_problem

__all__ = [
    "PREFIX",
    "DashboardSettings",
    "IdentitySettings",
    "LabSettings",
    "MailSettings",
    "MetricsSettings",
    "NotificationSettings",
    "ProviderSettings",
    "RequestLogSettings",
    "Settings",
    "SettingsError",
    "TokenSettings",
    "TracingSettings",
    "WebhookSettings",
    "forbid_in_production",
    "is_placeholder",
    "load",
]

PREFIX = "PROFILESVC_"
ENV_FILE = ".env"
_DATA_DIR = Path("var")
_UNREADABLE = re.compile(r'\Aerror parsing value for field "(\w+)" from source .*')  # of pydantic_settings
_PLACEHOLDER = re.compile(r"change[-_ ]?(?:me|it|this)\b|…|\A<[^<>]*>\Z", re.IGNORECASE)
_ORIGIN = re.compile(r"https?://(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?\Z")


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
    """All settings. The docstrings of the fields become docs/settings.md."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", env_file=ENV_FILE, extra="ignore", frozen=True
    )

    environment: Literal["development", "production"] = "development"
    """`production` rejects development shortcuts, demo data and placeholders."""
    base_url: Annotated[str, AfterValidator(checked_base_url)] = ""
    """Public address, issuer and audience of all tokens. Empty: where it listens. Production needs an https origin."""
    data_dir: Annotated[Path, BeforeValidator(lambda value: value or _DATA_DIR)] = _DATA_DIR
    """Folder of the SQLite database, the emulator's state and the demo key."""
    database_url: Annotated[str, AfterValidator(_database_url)] = ""
    """`postgresql+asyncpg://user:password@host/name`; several processes need it. Empty: a SQLite file in `DATA_DIR`.
    `…@/name?host=a:5432&host=b:5432` uses the host that accepts writes."""
    database_replica_url: Annotated[str, AfterValidator(_database_url)] = ""
    """A standby of `DATABASE_URL`, for reads that may be up to 10 s old: lists, badges and counts. Empty: none."""
    database_pool_size: Annotated[int, Field(ge=1, le=200)] = 10
    """Connections in each of the two pools of a process."""
    provider: ProviderSettings = ProviderSettings()
    notifications: NotificationSettings = NotificationSettings()
    tokens: TokenSettings = TokenSettings()
    limits: LimitSettings = LimitSettings()
    identity: IdentitySettings = IdentitySettings()
    lab: LabSettings = LabSettings()
    tracing: TracingSettings = TracingSettings()
    metrics: MetricsSettings = MetricsSettings()
    request_log: RequestLogSettings = RequestLogSettings()
    webhooks: WebhookSettings = WebhookSettings()
    mail: MailSettings = MailSettings()
    dashboard: DashboardSettings = DashboardSettings()
    max_in_flight: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    """Requests that one process works on; further ones get 503. One address gets at most four fifths."""
    drain_seconds: Annotated[float, Field(ge=0, le=300)] = 0
    """How long after SIGTERM requests are still accepted while `/readyz` returns 503, so that a proxy notices."""
    access_log: bool = False
    """Whether each request writes a JSON line: id, method, route, status, seconds."""
    trusted_hops: Annotated[int, Field(ge=0, le=16)] = 0
    """Number of proxies in front, which decides which address of `X-Forwarded-For` is the caller's."""
    private_network: bool = False
    """Whether production may use Redis and a collector of traces on other hosts without TLS, in a private network."""
    secret_pepper: SecretStr = SecretStr("")
    """Key of the digests of client secrets, and of the secrets of webhooks. Set it before the first API key is created,
    and keep a copy. Without it a copy of the database is enough to sign webhooks."""
    plans_file: OptionalPath = None
    """TOML file of the plans. Unset: the packaged plans."""
    dashboard_origins: Annotated[tuple[str, ...], NoDecode, AfterValidator(_origins)] = ()
    """Comma-separated origins whose pages may send user tokens. Empty: our own, and localhost in development."""
    upgrade_url: WebUrl = ""
    """Page where owners of deactivated keys can change their plan; https in production. Empty: our own dashboard."""
    guides_folder: OptionalPath = None
    """Folder of the site that `make docs` builds, served at `/guides/`. Unset: `build/site` of a checkout, if any."""
    cache_max_age_seconds: Annotated[int, Field(ge=0, le=86_400)] = 60
    """Age up to which a location or a list of posts is returned without a request to the provider."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the secrets that are given as files."""
        sources = [each for each in (env_settings, dotenv_settings) if isinstance(each, EnvSettingsSource)]
        read_secrets(sources, variables(cls, PREFIX, secret=True))
        return init_settings, env_settings, dotenv_settings

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
        """Return whether development shortcuts are rejected."""
        return self.environment == "production"

    @property
    def effective_success_interval(self) -> int:
        """Return how many successes of keys there are for each that is logged; 0 if none is."""
        default = 50 if self.production else 1
        return default if self.request_log.success_interval is None else self.request_log.success_interval

    @property
    def effective_database_url(self) -> str:
        """The URL of the configured database, or of the SQLite file in DATA_DIR."""
        return self.database_url or f"sqlite+aiosqlite:///{quote(str(self.data_dir / 'profilesvc.db'))}"

    @property
    def effective_guides_folder(self) -> Path | None:
        """The folder of the guides, or None if there are none."""
        folder = self.guides_folder or Path(__file__).parents[3] / "build" / "site"
        return folder if os.access(folder, os.R_OK | os.X_OK) else None  # is_dir() raises PermissionError

    @property
    def effective_audience(self) -> str:
        """The audience of the tokens with which Pub/Sub pushes notifications."""
        return self.notifications.audience or f"{self.base_url}/provider/notifications"

    @property
    def effective_upgrade_url(self) -> str:
        """The address where owners change their plan."""
        return self.upgrade_url or f"{self.base_url}/dashboard"

    @property
    def with_dev_issuer(self) -> bool:
        """Return whether the bundled development issuer replaces an identity provider."""
        return not self.production and not self.identity.issuer and self.identity.dev_issuer is not False

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        urls = self.database_url, self.database_replica_url
        if self.database_replica_url and not all(url.startswith("postgresql") for url in urls):
            raise ValueError(f"{PREFIX}DATABASE_REPLICA_URL and {PREFIX}DATABASE_URL must both be URLs of PostgreSQL")
        if problem := self.identity.problem(self.production):
            raise ValueError(f"{PREFIX}IDENTITY__{problem}")
        if problem := self.notifications.problem(self.production):
            raise ValueError(f"{PREFIX}NOTIFICATIONS__{problem}")
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
            raise ValueError(
                f"{PREFIX}PROVIDER__URL or the URL of each API is required in production: the emulator is for "
                "development"
            )
        if problem := self.provider.problem():
            raise ValueError(f"{PREFIX}PROVIDER__{problem}")
        if problem := self.mail.problem():
            raise ValueError(f"{PREFIX}MAIL__{problem}")
        if self.webhooks.allow_private:
            raise ValueError(f"{PREFIX}WEBHOOKS__ALLOW_PRIVATE must not be set in production")
        if variables := _placeholders(self):
            raise ValueError(f"{', '.join(variables)}: replace the placeholder of the example with your value")
        if problem := self._secrets_problem():
            raise ValueError(problem)
        if problem := self._transport_problem():
            raise ValueError(f"{PREFIX}{problem}")
        if any(not origin.lower().startswith("https://") for origin in self.dashboard_origins):
            raise ValueError(f"{PREFIX}DASHBOARD_ORIGINS must start with https:// in production")
        return self

    def _transport_problem(self) -> str | None:
        """Return which address production must not use, starting with the name of its setting."""
        if self.upgrade_url.lower().startswith("http:"):
            return "UPGRADE_URL must start with https:// in production"
        if self.private_network:
            return None
        if problem := redis_problem(self.limits.storage_url.get_secret_value()):
            return f"LIMITS__STORAGE_URL {problem}"
        problem = traces_problem(self.tracing.endpoint)
        return problem and f"TRACING__ENDPOINT {problem}"

    def _secrets_problem(self) -> str | None:
        """Return which secret of the service is missing or too weak for production."""
        passphrase, pepper = self.tokens.key_passphrase.get_secret_value(), self.secret_pepper.get_secret_value()
        if not passphrase:
            return (
                f"{PREFIX}TOKENS__KEY_PASSPHRASE is required in production, because it encrypts the signing keys and "
                f"the owners' logins at the provider. Set the one of this deployment; for a new one {GENERATE}"
            )
        for name, secret in (("TOKENS__KEY_PASSPHRASE", passphrase), ("SECRET_PEPPER", pepper)):
            if secret and (problem := weakness(secret)):
                return f"{PREFIX}{name} {problem}; {GENERATE}"
        return None


class _Environment(BaseSettings):
    """The environment only, which can be read even if other settings are invalid."""

    model_config = Settings.model_config

    environment: str = "development"


def forbid_in_production(what: str) -> None:
    """Reject an action outside of development, even if other settings are invalid.

    Raises:
        SettingsError: The environment is not `development`, or `.env` is not UTF-8.
    """
    _names_in(ENV_FILE)
    if _Environment().environment != "development":
        raise SettingsError(f"{PREFIX}ENVIRONMENT: {what} is for development only")


def load(**overrides: Any) -> Settings:
    """Read the environment. `overrides` replace single fields.

    Raises:
        SettingsError: A setting is unknown or invalid; the message has one line.
    """
    file = overrides.get("_env_file", ENV_FILE)
    _reject_unknown([*os.environ, *(() if file is None else _names_in(file))])
    try:
        return Settings(**overrides)
    except ValueError as error:
        problems = getattr(error, "errors", None)
        if problems is None:
            raise SettingsError(_UNREADABLE.sub(_not_json, str(error))) from None
        lines = [f"{PREFIX}{'__'.join(str(p) for p in e['loc']).upper()}: {e['msg']}" for e in problems()]
        texts = [line.replace("Value error, ", "", 1).removeprefix(f"{PREFIX}: ") for line in lines]
        raise SettingsError("; ".join(texts)) from None


def _not_json(match: re.Match[str]) -> str:
    variable = f"{PREFIX}{match[1].upper()}"
    return f"{variable}: must be a JSON object; {variable}__NAME=value sets a single field"


def _names_in(file: Path | str) -> list[str]:
    """Return the variables of an environment file, which must be UTF-8."""
    try:
        return [*dotenv_values(file)]
    except UnicodeDecodeError:
        raise SettingsError(f"{file} is not UTF-8 text") from None


def _reject_unknown(names: list[str]) -> None:
    """Reject a variable with our prefix that is not a setting or of a group, and suggest the most similar one."""
    files = [f"{secret}{SUFFIX}" for secret in variables(Settings, PREFIX, secret=True)]
    known = [*variables(Settings, PREFIX), *files]
    groups = {variable.partition("__")[0] for variable in known if "__" in variable}
    for name in names:
        variable = name.upper()
        if variable.startswith(PREFIX) and variable not in known and variable.partition("__")[0] not in groups:
            similar = difflib.get_close_matches(variable, known, n=1)
            raise SettingsError(f"{name} is not a setting." + (f" Did you mean {similar[0]}?" if similar else ""))
