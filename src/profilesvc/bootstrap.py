"""The only place that joins the pieces: settings in, a running app out.

What serving alone needs is imported when it is needed, so that a command starts in half the time.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Optional, cast

from sqlalchemy import make_url

from profilesvc.database import migrate
from profilesvc.database.engine import Storage
from profilesvc.dev_issuer.provider import CLIENT_ID, DevIssuer
from profilesvc.domain.plans import Catalogue, load_catalogue
from profilesvc.domain.rates import Windows
from profilesvc.domain.signing_keys import ALGORITHMS, Algorithm
from profilesvc.domain.world import Clock, Entropy, SeededEntropy, SystemClock, SystemEntropy
from profilesvc.fixtures import TEST_KEY_IDS, fixture_path, load_world
from profilesvc.limits.limiter import Limiter
from profilesvc.operations import demo_data, housekeeping
from profilesvc.provider.port import Provider
from profilesvc.services.context import Services
from profilesvc.settings import PREFIX, Settings, SettingsError
from profilesvc.telemetry.metrics import Metrics
from profilesvc.telemetry.watching import Watcher, open_watcher
from profilesvc.tokens.id_tokens import TrustedIssuer
from profilesvc.tokens.keyring import Keyring, SigningKey, generate, read_key
from profilesvc.tokens.signer import Signer

if TYPE_CHECKING:
    from quart import Quart

    from profilesvc.emulator.guard import Guard

SIGNING_KEY_FILE = "signing_key.pem"
DEMO_KEY_FILE = "demo.json"
DEV_ISSUER_KEY_FILE = "dev_issuer_key.pem"


@dataclass
class World:
    """Time and chance, who watches, and what a running service made of them: the emulator's app and the issuer.

    `guard` is for a process that serves the emulator on a socket of its own.
    """

    clock: Clock = field(default_factory=SystemClock)
    entropy: Entropy = field(default_factory=SystemEntropy)
    emulator: Optional["Quart"] = None
    guard: Optional["Guard"] = None
    issuer: DevIssuer | None = None
    watcher: Watcher = field(default_factory=Watcher)


async def _open_signing_keys(services: Services) -> None:
    """Load the keys of the table and of the configured files.

    On the first start the RSA key is that of a version that stored it in a file, or a new one.

    Raises:
        SettingsError: A key cannot be used.
    """
    settings = services.settings
    old = settings.data_dir / SIGNING_KEY_FILE
    known = {*TEST_KEY_IDS, *(info.dates.kid for info in await services.signing_keys.listing())}
    given = [_read_key_file(settings, alg, path, known) for alg in ALGORITHMS if (path := _key_file(settings, alg))]

    def first(alg: Algorithm) -> SigningKey:
        return _read_key_file(settings, alg, old, set()) if alg == "RS256" and old.exists() else generate(alg)

    await services.signing_keys.open(given, first)


def _key_file(settings: Settings, alg: Algorithm) -> Path | None:
    return settings.tokens.signing_key_file if alg == "RS256" else settings.tokens.refresh_key_file


def _read_key_file(settings: Settings, alg: Algorithm, path: Path, known: set[str]) -> SigningKey:
    """Read the key in a file; a key with one of the `known` names was checked before.

    Raises:
        SettingsError: The file cannot be used, or has a published test key in production.
    """
    variable = f"{PREFIX}TOKENS__{'SIGNING' if alg == 'RS256' else 'REFRESH'}_KEY_FILE"
    passphrase = settings.tokens.key_passphrase.get_secret_value().encode() or None
    try:
        key = read_key(alg, path.read_bytes(), passphrase, known)
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError(f"{variable}: {path.name} cannot be used: {error}") from None
    if settings.production and key.kid in TEST_KEY_IDS:
        raise SettingsError(f"{variable}: the published test key is refused in production")
    return key


async def _refuse_demo_data(services: Services) -> None:
    """SettingsError naming what is there, before anything of it is used or changed."""
    settings = services.settings
    found = await demo_data.traces(services, [user["email"] for user in load_world()["users"]], TEST_KEY_IDS)
    kept = [settings.data_dir / name for name in (DEMO_KEY_FILE, SIGNING_KEY_FILE)]
    if kept[0].exists():
        found.append(f"file {kept[0]}")
    if kept[1].exists() and kept[1].read_bytes() == fixture_path(SIGNING_KEY_FILE).read_bytes():
        found.append(f"file {kept[1]} (the published test key)")
    if found:
        raise SettingsError(
            f"{PREFIX}ENVIRONMENT: production is refused on demo data ({', '.join(found)}); name an empty database in "
            f"{PREFIX}DATABASE_URL and an empty folder in {PREFIX}DATA_DIR"
        )


def open_plans(settings: Settings) -> Catalogue:
    """The configured plan catalogue, or the packaged one. SettingsError."""
    try:
        return load_catalogue(settings.plans_file)
    except ValueError as error:
        raise SettingsError(f"{PREFIX}PLANS_FILE: {error}") from None


def open_limiter(settings: Settings, clock: Clock, metrics: Metrics, *, serving: bool) -> Limiter:
    """Counts requests where there are any and limits are on. SettingsError."""
    counted = serving and settings.limits.enabled
    return Limiter(settings.limits, _open_windows(settings, clock) if counted else None, metrics.limit_reached)


def _open_windows(settings: Settings, clock: Clock) -> Windows:
    """Where requests are counted: in this process, or for all of them in Redis or Valkey."""
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
async def open_services(settings: Settings, world: World, *, provider: bool = True) -> AsyncIterator[Services]:
    """Everything opened in order, and closed in the opposite one. SettingsError for what cannot be used.

    Without `provider` that stays closed, for work that never reaches it.
    """
    if settings.production and isinstance(world.entropy, SeededEntropy):
        raise SettingsError("seeded entropy is refused in production")
    if not settings.base_url:
        raise SettingsError(f"{PREFIX}BASE_URL is not set. Set it, or run `serve` or `demo` once, which write it")
    plans = open_plans(settings)
    signer = Signer(Keyring(), settings.base_url)
    metrics = Metrics()
    async with (
        world.watcher.opened(),
        _open_storage(settings, world.watcher) as storage,
        _open_provider(settings, world, metrics) if provider else _no_provider() as (reached, world.emulator),
        aclosing(open_limiter(settings, world.clock, metrics, serving=provider)) as limiter,
    ):
        identity = open_identity(settings, world)
        services = Services(
            settings, world.clock, world.entropy, storage, reached, signer, plans, limiter, identity, metrics
        )
        if settings.production:
            await _refuse_demo_data(services)
        await _open_signing_keys(services)
        async with services.signing_keys.running(), housekeeping.running(services) if provider else nullcontext():
            yield services
        services.background.spawn(services.notes.write(services))
        await services.background.drain()
        await services.single_flight.drain()


def open_identity(settings: Settings, world: World) -> TrustedIssuer | None:
    """Return the issuer whose ID tokens are accepted: the configured one, else in development the bundled one."""
    wanted = settings.identity
    if wanted.issuer:
        from profilesvc.tokens.jwks import RemoteKeys

        keys = RemoteKeys(wanted.jwks_url, world.clock)
        return TrustedIssuer(wanted.issuer, wanted.client_id, wanted.algorithms, keys)
    if not settings.with_dev_issuer:
        return None
    key_file, client_id = settings.data_dir / DEV_ISSUER_KEY_FILE, wanted.client_id or CLIENT_ID
    world.issuer = DevIssuer(settings.base_url, client_id, key_file, load_world()["users"])
    return TrustedIssuer(world.issuer.url, client_id, ("RS256",), world.issuer)


@asynccontextmanager
async def _open_storage(settings: Settings, watcher: Watcher) -> AsyncIterator[Storage]:
    storage = watcher.storage(settings.effective_database_url, settings.database_pool_size)
    try:
        if storage.is_sqlite:
            await migrate.upgrade(storage.engine)
        await _require_migrated(storage)
        yield storage
    finally:
        await storage.close()


async def _require_migrated(storage: Storage) -> None:
    """Reject a database that is behind this code or too far ahead; SQLite is migrated at start."""
    current, head = await migrate.current(storage.engine), migrate.head()
    if migrate.ahead(current) > migrate.LEAD:
        raise SettingsError(
            f"the database is at revision {current}, and this version goes with {head} and {migrate.LEAD} more: "
            "start a newer version"
        )
    if not migrate.fits(current):
        found = "empty" if current is None else f"at revision {current}"
        raise SettingsError(f"the database is {found} and must be at {head}: run `profilesvc db upgrade`")


@asynccontextmanager
async def _open_provider(
    settings: Settings, world: World, metrics: Metrics
) -> AsyncIterator[tuple[Provider, Optional["Quart"]]]:
    """Open the provider, and the emulator's app if that runs in this process."""

    def observe(api: str, operation: str, outcome: str, seconds: float) -> None:
        metrics.provider_request(api, operation, outcome, seconds)
        world.watcher.provider_request(api, operation, outcome, seconds)

    if settings.provider.embedded:
        from profilesvc.emulator.embedded import open_emulator

        demo = load_world()
        async with open_emulator(
            settings, clock=world.clock, entropy=world.entropy, world=demo, guard=world.guard, observe=observe
        ) as opened:
            yield opened
    else:
        from profilesvc.provider.connect import open_provider

        async with open_provider(settings, clock=world.clock, observe=observe) as provider:
            yield provider, None


class _Closed:
    """Replaces the provider where none is open; using it is a defect."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"the provider is not open: {name}")


@asynccontextmanager
async def _no_provider() -> AsyncIterator[tuple[Provider, Optional["Quart"]]]:
    yield cast(Provider, _Closed()), None


def create_app(settings: Settings, world: World | None = None) -> "Quart":
    """The whole service as an ASGI app; it opens its parts when it starts serving."""
    from profilesvc.api.app import build
    from profilesvc.dashboard import routes

    world = world or World()
    blueprints = [routes.blueprint()]
    if settings.with_dev_issuer:
        from profilesvc.dev_issuer.routes import blueprint

        blueprints.append(blueprint(lambda: cast(DevIssuer, world.issuer)))
    world.watcher = open_watcher(settings)
    app = build(lambda: open_services(settings, world), world.entropy, blueprints, world.watcher.around)
    app.config.update(
        MAX_IN_FLIGHT=settings.max_in_flight,
        TRUSTED_HOPS=settings.trusted_hops,
        METRICS_PORT=settings.metrics.port,
        HTTPS=settings.base_url.startswith("https://"),
    )
    return app


def refuses_workers(settings: Settings, workers: int) -> str | None:
    """Return why several processes cannot share this database, or None."""
    if workers > 1 and make_url(settings.effective_database_url).get_backend_name() == "sqlite":
        return "several workers need PostgreSQL: set PROFILESVC_DATABASE_URL=postgresql+asyncpg://…"
    return None


def warns_workers(settings: Settings, workers: int) -> str | None:
    """Return a warning if several processes count rate limits separately, or None."""
    if workers > 1 and settings.limits.enabled and not settings.limits.shared:
        return (
            f"each of {workers} workers counts rate limits for itself, so callers may get up to {workers} times as "
            f"much: set {PREFIX}LIMITS__STORAGE_URL=redis://… to count together"
        )
    return None
