"""Build the services and the app from the settings.

Modules that only serving needs are imported inside functions, so that a command starts in half the time.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Optional, cast

from profilesvc.database import migrate, pooler, postgres
from profilesvc.database.engine import Storage
from profilesvc.database.leases import PostgresLeases
from profilesvc.dev_issuer.provider import CLIENT_ID, DevIssuer
from profilesvc.domain.entropy import Entropy, SeededEntropy, SystemEntropy
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.plans import Catalogue, load_catalogue
from profilesvc.domain.rates import Window, Windows
from profilesvc.domain.signing_keys import Algorithm
from profilesvc.domain.time import Clock, SystemClock
from profilesvc.fixtures import TEST_KEY_IDS, fixture_path, load_world
from profilesvc.limits.limiter import Limiter
from profilesvc.operations import demo_data
from profilesvc.provider.port import Provider
from profilesvc.services import pepper, provider_logins
from profilesvc.services.audit import PendingEvents
from profilesvc.services.context import Resolver, Services
from profilesvc.settings import PREFIX, Settings, SettingsError
from profilesvc.telemetry.metrics import Metrics
from profilesvc.telemetry.observer import Observer
from profilesvc.telemetry.observing import open_observer
from profilesvc.tokens.id_tokens import TrustedIssuer
from profilesvc.tokens.keys import SigningKey, generate, read_key
from profilesvc.tokens.push_tokens import PushTokens
from profilesvc.tokens.signer import Keyring, Signer

if TYPE_CHECKING:
    from quart import Quart
    from sqlalchemy.ext.asyncio import AsyncEngine

    from profilesvc.emulator.access import ControlAccess
    from profilesvc.provider.quota import Counters
    from profilesvc.rooms import Room

SIGNING_KEY_FILE = "signing_key.pem"
DEMO_KEY_FILE = "demo.json"
DEV_ISSUER_KEY_FILE = "dev_issuer_key.pem"


@dataclass
class Runtime:
    """Clock, entropy, observer and resolver of a service, and the emulator's app and the issuer that it has opened.

    A process that serves the emulator on its own socket sets `access`, and its URL for pushes if that is not BASE_URL.
    The command that replaces the pepper sets `accepts_new_pepper`.
    PostgreSQL shows `role` with the connections. Without `rooms`, the service has all of them.
    """

    clock: Clock = field(default_factory=SystemClock)
    entropy: Entropy = field(default_factory=SystemEntropy)
    emulator: Optional["Quart"] = None
    access: Optional["ControlAccess"] = None
    services: Services | None = None  # of a process that opens them before its app
    switches: dict[str, object] = field(default_factory=dict)  # of an emulator that starts with the demo data
    own_url: str = ""
    issuer: DevIssuer | None = None
    observer: Observer = field(default_factory=Observer)
    accepts_new_pepper: bool = False
    resolver: Resolver | None = None
    role: str = "command"
    rooms: Optional["Sequence[Room]"] = None

    def composed(self) -> "Sequence[Room]":
        """Return the rooms of the service, imported when they are needed."""
        if self.rooms is None:
            from profilesvc.rooms import ROOMS

            return ROOMS
        return self.rooms


async def _open_secrets(services: Services, runtime: Runtime) -> None:
    """Check the pepper, load the signing keys, and encrypt by the passphrase what was stored without one."""
    if services.settings.production:
        await _reject_demo_data(services)
    if not runtime.accepts_new_pepper:
        await pepper.require_same(services)
    await _open_signing_keys(services)
    await provider_logins.encrypt_again(services)


async def _open_signing_keys(services: Services) -> None:
    """Load the keys from the table and the configured files.

    On the first start, the RSA key is read from the file of an earlier version, or a new one is made.
    """
    settings = services.settings
    old = settings.data_dir / SIGNING_KEY_FILE
    checked = {*TEST_KEY_IDS, *(info.dates.kid for info in await services.signing_keys.listing())}
    files: dict[Algorithm, Path | None]
    files = {"RS256": settings.tokens.signing_key_file, "HS256": settings.tokens.refresh_key_file}
    configured = [_read_key_file(settings, alg, path, checked) for alg, path in files.items() if path]

    def first(alg: Algorithm) -> SigningKey:
        return _read_key_file(settings, alg, old, set()) if alg == "RS256" and old.exists() else generate(alg)

    await services.signing_keys.open(configured, first)


def _read_key_file(settings: Settings, alg: Algorithm, path: Path, checked: set[str]) -> SigningKey:
    """Read the key in a file. A key with one of the `checked` ids is not checked again."""
    variable = f"{PREFIX}TOKENS__{'SIGNING' if alg == 'RS256' else 'REFRESH'}_KEY_FILE"
    passphrase = settings.tokens.key_passphrase.get_secret_value().encode() or None
    try:
        key = read_key(alg, path.read_bytes(), passphrase, checked)
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError(f"{variable}: {path.name} cannot be used: {error}") from None
    if settings.production and key.kid in TEST_KEY_IDS:
        raise SettingsError(f"{variable}: the published test key is rejected in production")
    return key


async def _reject_demo_data(services: Services) -> None:
    """Reject demo data in production before any of it is used or changed."""
    settings = services.settings
    traces = await demo_data.traces(services, [user["email"] for user in load_world()["users"]], TEST_KEY_IDS)
    demo_key, signing_key = (settings.data_dir / name for name in (DEMO_KEY_FILE, SIGNING_KEY_FILE))
    if demo_key.exists():
        traces.append(f"file {demo_key}")
    if signing_key.exists() and signing_key.read_bytes() == fixture_path(SIGNING_KEY_FILE).read_bytes():
        traces.append(f"file {signing_key} (the published test key)")
    if traces:
        raise SettingsError(
            f"{PREFIX}ENVIRONMENT: production must not use demo data ({', '.join(traces)}). Set {PREFIX}DATABASE_URL "
            f"to an empty database and {PREFIX}DATA_DIR to an empty folder."
        )


def open_plans(settings: Settings) -> Catalogue:
    """Return the configured plan catalogue, or the packaged one.

    Raises:
        SettingsError: The file cannot be used.
    """
    try:
        return load_catalogue(settings.plans_file)
    except ValueError as error:
        raise SettingsError(f"{PREFIX}PLANS_FILE: {error}") from None


def open_limiter(settings: Settings, clock: Clock, metrics: Metrics, *, serving: bool) -> Limiter:
    """Return the limiter. It counts requests only when serving and if limits are enabled.

    Raises:
        SettingsError: The address of the shared counters cannot be used.
    """
    has_limits = serving and settings.limits.enabled
    return Limiter(settings.limits, _open_windows(settings, clock) if has_limits else None, metrics.limit_reached)


def _open_windows(settings: Settings, clock: Clock) -> Windows:
    """Return the counters of this process, or those of all processes in Redis or Valkey.

    Modules are imported here, so that a command that counts nothing starts without them.
    """
    from profilesvc.limits.counters import MemoryWindows

    memory = MemoryWindows(clock)
    if not settings.limits.shared:
        return memory
    from profilesvc.limits.redis import SharedWindows

    try:
        return SharedWindows(settings.limits.storage_url.get_secret_value(), memory)
    except ValueError as error:
        raise SettingsError(f"{PREFIX}LIMITS__STORAGE_URL: {error}") from None


@asynccontextmanager
async def open_services(
    settings: Settings, runtime: Runtime, *, provider: bool = True, jobs: bool = True
) -> AsyncIterator[Services]:
    """Open all parts in order, and close them in reverse.

    Without `provider`, the provider is not opened, for commands that do not use it. Without it or `jobs`, there is no
    periodic work.

    Raises:
        SettingsError: A setting, the database or a key cannot be used.
    """
    if settings.production and isinstance(runtime.entropy, SeededEntropy):
        raise SettingsError("seeded entropy is rejected in production")
    if not settings.base_url:
        raise SettingsError(f"{PREFIX}BASE_URL is not set. Set it, or run `serve` or `demo` once to store it.")
    plans = open_plans(settings)
    signer, metrics = Signer(Keyring(), settings.base_url), Metrics()
    async with (
        runtime.observer.opened(),
        _open_storage(settings, runtime) as storage,
        _open_provider(settings, runtime, metrics, storage) if provider else _no_provider() as (
            client,
            runtime.emulator,
        ),
        aclosing(open_limiter(settings, runtime.clock, metrics, serving=provider)) as limiter,
    ):
        identity, clock = open_identity(settings, runtime), runtime.clock
        entropy = runtime.entropy
        services = Services(settings, clock, entropy, storage, client, signer, plans, limiter, identity, metrics)
        services = replace(services, resolver=runtime.resolver, push_tokens=open_push_tokens(settings, runtime))
        services = _with_hooks(services, runtime.composed())
        await _open_secrets(services, runtime)
        async with _running(services, runtime.composed()) if provider and jobs else nullcontext():
            yield services
        services.background.spawn(services.part(PendingEvents).write(services))
        await services.background.drain()
        await services.single_flight.drain()


def _running(services: Services, rooms: "Sequence[Room]") -> AbstractAsyncContextManager[None]:
    """Do the periodic work of the core and of the rooms."""
    from profilesvc.operations import schedule

    return schedule.running(services, [room.name for room in rooms])


def _with_hooks(services: Services, rooms: "Sequence[Room]") -> Services:
    """Return services that call the rooms at the moments of the core."""
    finished = [room.finished(services) for room in rooms if room.finished is not None]
    deleted = [room.post_deleted for room in rooms if room.post_deleted is not None]
    counted = [room.counted for room in rooms if room.counted is not None]
    return replace(services, finished=finished, post_deleted=deleted, counted=counted)


def open_push_tokens(settings: Settings, runtime: Runtime) -> PushTokens | None:
    """Return the verifier of the change feed's tokens, or None without a feed."""
    feed = settings.notifications
    if not feed.enabled:
        return None
    from profilesvc.tokens.jwks import RemoteKeys

    keys = RemoteKeys(feed.jwks_url, runtime.clock)
    if runtime.emulator is not None:
        from profilesvc.emulator.embedded import CERTS_URL, transport_of

        keys = RemoteKeys(CERTS_URL, runtime.clock, transport=transport_of(runtime.emulator))
    return PushTokens(feed.issuer, settings.effective_audience, feed.service_account, keys)


def open_identity(settings: Settings, runtime: Runtime) -> TrustedIssuer | None:
    """Return the issuer whose ID tokens are accepted: the configured one, or the bundled one in development."""
    identity = settings.identity
    if identity.issuer:
        from profilesvc.tokens.jwks import RemoteKeys

        keys = RemoteKeys(identity.jwks_url, runtime.clock)
        return TrustedIssuer(identity.issuer, identity.client_id, identity.algorithms, keys)
    if not settings.with_dev_issuer:
        return None
    key_file, client_id = settings.data_dir / DEV_ISSUER_KEY_FILE, identity.client_id or CLIENT_ID
    runtime.issuer = DevIssuer(settings.base_url, client_id, key_file, load_world())
    return TrustedIssuer(runtime.issuer.url, client_id, ("RS256",), runtime.issuer)


@asynccontextmanager
async def _open_storage(settings: Settings, runtime: Runtime) -> AsyncIterator[Storage]:
    urls = [postgres.named(u, runtime.role) for u in (settings.effective_database_url, settings.database_replica_url)]
    storage = runtime.observer.storage(urls[0], settings.database_pool_size, urls[1])
    try:
        await require_pooling(storage.engine)
        _require_supported(await (migrate.upgrade if storage.is_sqlite else migrate.current)(storage.engine))
        yield storage
    finally:
        await storage.close()


async def require_pooling(engine: "AsyncEngine") -> None:
    """Reject a pooler in front of PostgreSQL that breaks transactions or prepared statements.

    Raises:
        SettingsError: it cannot be used; the message has the reason and the remedy.
    """
    if engine.dialect.name == "postgresql" and (problem := pooler.problem(await pooler.pooling(engine))):
        raise SettingsError(f"the pooler at {PREFIX}DATABASE_URL cannot be used: {problem[0]}; {problem[1]}")


def _require_supported(current: str | None) -> None:
    """Reject a database that is older than this code or too much newer."""
    head = migrate.head()
    if migrate.revisions_ahead(current) > migrate.LEAD:
        raise SettingsError(
            f"the database is at revision {current}, and this version supports at most {migrate.LEAD} after {head}. "
            "Start a newer version."
        )
    if not migrate.is_supported(current):
        state = "empty" if current is None else f"at revision {current}"
        raise SettingsError(f"the database is {state} and must be at {head}. Run `profilesvc db upgrade`.")


@asynccontextmanager
async def _open_provider(
    settings: Settings, runtime: Runtime, metrics: Metrics, storage: Storage
) -> AsyncIterator[tuple[Provider, Optional["Quart"]]]:
    """Open the provider, and the emulator's app if it runs in this process."""

    def observe(api: str, operation: str, outcome: str, seconds: float) -> None:
        metrics.provider_request(api, operation, outcome, seconds)
        runtime.observer.provider_request(api, operation, outcome, seconds)

    async with _open_counters(settings, runtime.clock, storage, metrics) as counters:
        if settings.provider.embedded:
            from profilesvc.emulator.embedded import open_emulator, push_to

            async with open_emulator(
                settings,
                clock=runtime.clock,
                entropy=runtime.entropy,
                world=load_world() | {"switches": runtime.switches},
                access=runtime.access,
                observe=observe,
                counters=counters,
            ) as opened:
                push_to(opened[1], settings, runtime.own_url or settings.base_url)
                yield opened
        else:
            from profilesvc.provider.connect import open_provider

            async with open_provider(settings, clock=runtime.clock, observe=observe, counters=counters) as provider:
                yield provider, None


@asynccontextmanager
async def _open_counters(
    settings: Settings, clock: Clock, storage: Storage, metrics: Metrics
) -> AsyncIterator["Counters"]:
    """Open the counters of the provider's quota: for all processes in Redis or Valkey, else in this process.

    Edits of a profile are also counted in PostgreSQL. While the server fails, each process counts on its own.
    """
    from profilesvc.provider.quota import Counters, counting

    windows, leases = _open_windows(settings, clock), storage.leases
    by_windows = counting(windows)

    async def count_edit(bucket: str, window: Window) -> int:
        if isinstance(leases, PostgresLeases) and not settings.limits.shared:
            with suppress(ServiceError):
                return await leases.spend(bucket, window)
        return await by_windows(bucket, window)

    try:
        yield Counters(windows, count_edit, metrics.quota_event)
    finally:
        await windows.close()


class _Closed:
    """The placeholder of a provider that is not open. Its use is a defect."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"the provider is not open: {name}")


@asynccontextmanager
async def _no_provider() -> AsyncIterator[tuple[Provider, Optional["Quart"]]]:
    yield cast(Provider, _Closed()), None


def create_app(settings: Settings, runtime: Runtime | None = None) -> "Quart":
    """Return the service as an ASGI app, which opens its parts in its lifespan, unless the runtime has them."""
    from profilesvc.api.app import build

    runtime = runtime or Runtime()
    blueprints = [blueprint for room in runtime.composed() for blueprint in room.blueprints()]
    if settings.with_dev_issuer:
        from profilesvc.dev_issuer.routes import blueprint

        blueprints.append(blueprint(lambda: cast(DevIssuer, runtime.issuer)))
    if settings.provider.embedded:
        from profilesvc.emulator import browser

        blueprints.append(browser.blueprint(lambda: cast("Quart", runtime.emulator)))
    runtime.observer, runtime.role = open_observer(settings), "serve"

    def opened() -> AbstractAsyncContextManager[Services]:
        return open_services(settings, runtime) if runtime.services is None else nullcontext(runtime.services)

    app = build(opened, runtime.entropy, blueprints, runtime.observer.around)
    app.config.update(
        MAX_IN_FLIGHT=settings.max_in_flight,
        TRUSTED_HOPS=settings.trusted_hops,
        METRICS_PORT=settings.metrics.port,
        HTTPS=settings.base_url.startswith("https://"),
    )
    return app
