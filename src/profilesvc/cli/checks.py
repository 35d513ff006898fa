"""What `doctor` finds out about the deployment that the settings here describe."""

import asyncio
import time
from collections.abc import AsyncIterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from profilesvc.settings import Settings

if TYPE_CHECKING:
    from profilesvc.provider.port import ProviderError

Status = Literal["ok", "warn", "fail"]
_CLOCK_WARN, _CLOCK_FAIL = 5, 60


class Check(NamedTuple):
    """One line: what was looked at, how it is, what was found, what to do about it."""

    name: str
    status: Status
    message: str
    hint: str = ""


def clock(date: str | None, now: float) -> Check:
    """Our clock against the Date header of an answer that came just now; seconds since the epoch."""
    try:
        away = abs(parsedate_to_datetime(date or "").timestamp() - now)
    except ValueError:
        return Check("clock", "warn", "the answer has no date to compare with")
    if away <= _CLOCK_WARN:
        return Check("clock", "ok", f"within {_CLOCK_WARN} s of theirs")
    status: Status = "warn" if away <= _CLOCK_FAIL else "fail"
    return Check(
        "clock", status, f"{away:.0f} s away from theirs", "run NTP on both machines: tokens live by the clock"
    )


async def inside(settings: Settings) -> AsyncIterator[Check]:
    """Secrets, sign-in, limits, database, migrations, signing keys and the provider, as the settings name them."""
    from profilesvc.cli import checks_settings

    yield _environment(settings)
    for secret in checks_settings.secrets(settings):
        yield secret
    yield await checks_settings.sign_in(settings)
    yield await checks_settings.limits(settings)
    if settings.production:
        yield _metrics(settings)
    migrated = True
    async for check in _database(settings):
        migrated = migrated and check.status == "ok"
        yield check
    if migrated:
        async for check in _readiness(settings):
            yield check
    if settings.provider.embedded:
        yield Check("clock", "ok", "there is no other one to compare with here; `doctor URL` does")
        yield Check("provider", "ok", "the emulator, inside the serving process")
        return
    yield await _provider_clock(settings)
    yield await _provider(settings)


def _environment(settings: Settings) -> Check:
    if not settings.production:
        hint = "set PROFILESVC_ENVIRONMENT=production where others can reach it"
        return Check("settings", "ok", "development: shortcuts are allowed", hint)
    return Check("settings", "ok", "production")


def _metrics(settings: Settings) -> Check:
    if settings.metrics.port is not None:
        return Check("metrics", "ok", f"on port {settings.metrics.port} alone")
    if settings.metrics.token.get_secret_value():
        return Check("metrics", "ok", "only with the token")
    hint = "set PROFILESVC_METRICS__TOKEN, or PROFILESVC_METRICS__PORT and keep that port to yourselves"
    return Check("metrics", "warn", "everyone who reaches this service can read /metrics", hint)


async def _database(settings: Settings) -> AsyncIterator[Check]:
    from sqlalchemy.exc import ArgumentError

    from profilesvc.cli.failures import expected
    from profilesvc.database import migrate
    from profilesvc.database.engine import create_engine, parsed_url
    from profilesvc.database.pooler import pooling

    try:
        url = parsed_url(settings.effective_database_url)
    except ArgumentError as error:
        yield Check("database", "fail", expected(error) or "", "see the README for the form of the URL")
        return
    where = f"{url.get_backend_name()} {url.database}"
    if url.get_backend_name() == "sqlite" and not await asyncio.to_thread(Path(str(url.database)).is_file):
        yield Check("database", "warn", f"{where} is not there yet", "the first `profilesvc serve` makes it")
        return
    engine = create_engine(settings.effective_database_url, 1)
    try:
        if url.get_backend_name() == "postgresql" and (mode := await pooling(engine)):
            yield (found := _pooler(mode))
            if found.status == "fail":
                return
        current = await migrate.current(engine)
    except Exception as error:
        line = expected(error) or f"the database cannot be read: {type(error).__name__}"
        yield Check("database", "fail", line, "is it running, and is PROFILESVC_DATABASE_URL right?")
        return
    finally:
        await engine.dispose()
    yield Check("database", "ok", where)
    yield _migrations(current, at_start=url.get_backend_name() == "sqlite")


def _pooler(mode: str) -> Check:
    if mode == "full":
        return Check("pooler", "warn", "it has no server process for a second client", "raise its pool_size")
    hint = "set pool_mode = session in PgBouncer: the service needs prepared statements and advisory locks to last"
    is_good = mode == "session"
    return Check("pooler", "ok" if is_good else "fail", f"it pools by {mode}", "" if is_good else hint)


def _migrations(current: str | None, at_start: bool) -> Check:
    """Check the database's migrations; with `at_start`, the next start applies missing ones."""
    from profilesvc.database import migrate

    found = f"at {current or 'none'}, this version has {migrate.head()}"
    if migrate.fits(current):
        return Check("migrations", "ok", found)
    if migrate.ahead(current) > migrate.LEAD:
        return Check("migrations", "fail", found, "start a newer version")
    return Check("migrations", "warn" if at_start else "fail", found, "run `profilesvc db upgrade`")


async def _readiness(settings: Settings) -> AsyncIterator[Check]:
    """What a server would find when it starts now."""
    from profilesvc.bootstrap import World, open_services
    from profilesvc.cli.failures import expected
    from profilesvc.operations import readiness

    try:
        async with open_services(settings, World(), provider=False) as services:
            ring = services.signer.keyring
            yield Check("signing keys", "ok", f"{len(ring.access.dates) + len(ring.refresh.dates)} in use")
            missing = [name for name, good in (await readiness.checks(services)).items() if not good]
    except Exception as error:
        line = expected(error) or f"unexpected {type(error).__name__}"
        yield Check("readiness", "fail", line, "`profilesvc serve` would not start either")
        return
    if missing:
        yield Check("readiness", "fail", f"not in order: {', '.join(missing)}")
    else:
        yield Check("readiness", "ok", "a server would answer")


async def _provider_clock(settings: Settings) -> Check:
    import httpx

    try:
        async with httpx.AsyncClient(timeout=settings.provider.timeout_seconds) as http:
            answer = await http.get(settings.provider.information_url or settings.provider.url)
    except httpx.HTTPError as error:
        return Check("clock", "warn", f"the provider gave no time to compare with ({type(error).__name__})")
    return clock(answer.headers.get("Date"), time.time())


async def _provider(settings: Settings) -> Check:
    """A login and one read."""
    from profilesvc.domain.world import SystemClock
    from profilesvc.provider.connect import open_provider
    from profilesvc.provider.port import ProviderError

    try:
        async with (
            open_provider(settings, clock=SystemClock()) as provider,
            asyncio.timeout(settings.provider.timeout_seconds),
        ):
            accounts = await provider.accounts()
    except TimeoutError:
        return Check("provider", "fail", "no answer in time", "is the address right and the network open?")
    except ProviderError as error:
        return Check("provider", "fail", str(error), _hint(error))
    if not accounts:
        return Check("provider", "warn", "the login works and has no accounts", "consent with the owner's account")
    return Check("provider", "ok", f"the login works and sees {len(accounts)} accounts")


def _hint(error: "ProviderError") -> str:
    if error.http_status == 429:
        return "a project without access has no quota: ask for it (docs/provider.md, step 1)"
    if error.http_status in (403, 404):
        return "switch the API on for the project, or check the address (docs/provider.md, steps 2 and 5)"
    if error.http_status is None and not error.retryable:
        return (
            "check PROFILESVC_PROVIDER__CLIENT_ID, __CLIENT_SECRET, __REFRESH_TOKEN; consent again (docs/provider.md)"
        )
    return "is the address right and the network open?"
