"""The checks of `doctor` on the deployment that the local settings describe."""

import asyncio
import time
from collections.abc import AsyncIterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING

from profilesvc.cli.doctor.check import Check, Status, connection_hint
from profilesvc.domain.problems import counted
from profilesvc.settings import Settings

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from profilesvc.database.pooler import Pooling
    from profilesvc.provider.port import ProviderError

_CLOCK_WARN, _CLOCK_FAIL = 5, 60
_REACHABLE = "check the address and the network"
_ACCOUNTS_SHOWN = 5


def clock(date: str | None, now: float) -> Check:
    """Compare the local clock (`now`, in seconds since the epoch) with the Date header of a new response."""
    try:
        difference = abs(parsedate_to_datetime(date or "").timestamp() - now)
    except ValueError:
        return Check("clock", "warn", "the response has no Date header to compare with")
    if difference <= _CLOCK_WARN:
        return Check("clock", "ok", f"differs by at most {_CLOCK_WARN} s")
    status: Status = "warn" if difference <= _CLOCK_FAIL else "fail"
    hint = "run NTP on both machines, because tokens expire by the clock"
    return Check("clock", status, f"differs by {difference:.0f} s", hint)


async def inside(settings: Settings) -> AsyncIterator[Check]:
    """Check secrets, sign-in, limits, mail, database, migrations, signing keys and provider."""
    from profilesvc.cli.doctor import consent as checks_consent
    from profilesvc.cli.doctor import feed as checks_feed
    from profilesvc.cli.doctor import settings as checks_settings

    yield _environment(settings)
    for secret in checks_settings.secrets(settings):
        yield secret
    yield await checks_settings.sign_in(settings)
    yield await checks_settings.limits(settings)
    yield await checks_settings.mail(settings)
    if settings.production:
        yield checks_settings.proxy(settings)
        yield _metrics(settings)
        yield checks_settings.guides(settings)
    migrated = True
    async for check in _database(settings):
        migrated = migrated and (check.status == "ok" or check.name in ("disk", "file system"))
        yield check
    if migrated:
        async for check in _readiness(settings):
            yield check
    if settings.provider.embedded:
        yield Check("clock", "ok", "there is no remote clock; `doctor URL` compares with a server")
        yield Check("provider", "ok", "the emulator, in the server process")
        return
    yield await _provider_clock(settings)
    yield await checks_consent.consent(settings)
    yield await checks_feed.feed(settings)
    yield await _provider(settings)


def _environment(settings: Settings) -> Check:
    if not settings.production:
        hint = "set PROFILESVC_ENVIRONMENT=production on a server that others can reach"
        return Check("settings", "ok", "development: insecure defaults are allowed", hint)
    return Check("settings", "ok", "production")


def _metrics(settings: Settings) -> Check:
    if settings.metrics.port is not None:
        return Check("metrics", "ok", f"only on port {settings.metrics.port}")
    if settings.metrics.token.get_secret_value():
        return Check("metrics", "ok", "only with the token")
    hint = "set PROFILESVC_METRICS__TOKEN, or set PROFILESVC_METRICS__PORT and do not publish that port"
    return Check("metrics", "warn", "everyone who can reach this service can read /metrics", hint)


async def _database(settings: Settings) -> AsyncIterator[Check]:
    from sqlalchemy.exc import ArgumentError

    from profilesvc.cli.doctor import disk as checks_disk
    from profilesvc.cli.failures import expected
    from profilesvc.database import pooler
    from profilesvc.database.engine import create_engine
    from profilesvc.database.postgres import named, parsed_url

    try:
        url = parsed_url(settings.effective_database_url)
    except ArgumentError as error:
        yield Check("database", "fail", expected(error) or "", "see docs/settings.md for the form of the URL")
        return
    where = f"{url.get_backend_name()} {url.database}"
    if url.get_backend_name() == "sqlite":
        for check in await asyncio.to_thread(checks_disk.disk, Path(str(url.database))):
            yield check
    if url.get_backend_name() == "sqlite" and not await asyncio.to_thread(Path(str(url.database)).is_file):
        yield Check("database", "warn", f"{where} does not exist yet", "`profilesvc serve` creates it")
        return
    engine = create_engine(named(settings.effective_database_url, "doctor"), 1)
    try:
        if url.get_backend_name() == "postgresql" and (mode := await pooler.pooling(engine)):
            yield (check := _pooler(mode))
            if check.status == "fail":
                return
        checks = await _contents(engine)
    except Exception as error:
        line = expected(error) or f"the database cannot be read: {type(error).__name__}"
        yield Check("database", "fail", line, "start the database, or correct PROFILESVC_DATABASE_URL")
        return
    finally:
        await engine.dispose()
    yield Check("database", "ok", where)
    for check in checks:
        yield check


async def _contents(engine: "AsyncEngine") -> list[Check]:
    """Check the time limits of the role, the nodes of a cluster, and the migrations."""
    from profilesvc.database import migrate, nodes, time_limits
    from profilesvc.storage.tables import distribution

    checks = []
    settings = await time_limits.missing(engine)
    hint = f"run `profilesvc db upgrade`, or as the administrator: {'; '.join(settings.values())};"
    if settings.pop(time_limits.PLANS, None):
        message = "the sessions of a node of Citus 14.0 grow with each statement without force_custom_plan"
        checks.append(Check("plans", "warn", message, hint))
    if settings:
        message = f"a lost connection keeps its locks without {', '.join(settings)}"
        checks.append(Check("time limits", "warn", message, hint))
    if (down := await nodes.without_response(engine)) is not None:
        checks.append(_nodes(down, await distribution.left(engine), await nodes.inactive(engine)))
    return [*checks, _migrations(await migrate.current(engine), at_start=engine.dialect.name == "sqlite")]


def _nodes(down: list[str], not_distributed: int, inactive: list[str]) -> Check:
    from profilesvc.database.nodes import CONNECTION

    if down:
        hint = f"check {CONNECTION}; the owners of this node get 503"
        return Check("nodes", "fail", f"no response from {', '.join(down)}", hint)
    if not_distributed:
        hint = "run `profilesvc db distribute` on the coordinator (docs/scaling.md)"
        return Check("nodes", "warn", f"one node has all rows of {counted(not_distributed, 'table')}", hint)
    if inactive:
        hint = "run SELECT citus_activate_node('HOST', PORT)"
        return Check("nodes", "warn", f"{', '.join(inactive)} is not active", hint)
    return Check("nodes", "ok", "all respond")


def _pooler(mode: "Pooling") -> Check:
    from profilesvc.database.pooler import problem

    if mode == "full":
        return Check("pooler", "warn", "it has no server connection for a second client", "raise its pool_size")
    if (bad := problem(mode)) is not None:
        return Check("pooler", "fail", *bad)
    return Check("pooler", "ok", f"it pools by {mode}")


def _migrations(current: str | None, at_start: bool) -> Check:
    """Check the revision of the database. With `at_start`, the next start applies missing migrations."""
    from profilesvc.database import migrate

    message = f"at {current or 'none'}, this version has {migrate.head()}"
    if migrate.is_supported(current):
        return Check("migrations", "ok", message)
    if migrate.revisions_ahead(current) > migrate.LEAD:
        return Check("migrations", "fail", message, "run a newer version of profilesvc")
    return Check("migrations", "warn" if at_start else "fail", message, "run `profilesvc db upgrade`")


def _replica(lag: float | None, problem: str) -> Check:
    if problem:
        return Check("replica", "warn", f"not used: {problem}", "the primary does its work; check its replication")
    return Check("replica", "ok", f"{lag:.1f} s behind")


async def _readiness(settings: Settings) -> AsyncIterator[Check]:
    """Check whether a server would start."""
    from profilesvc.bootstrap import Runtime, open_services
    from profilesvc.cli.failures import expected
    from profilesvc.operations import readiness

    try:
        async with open_services(settings, Runtime(), provider=False) as services:
            ring = services.signer.keyring
            yield Check("signing keys", "ok", f"{len(ring.access.dates) + len(ring.refresh.dates)} in use")
            failed = [name for name, passes in (await readiness.checks(services)).items() if not passes]
            if services.storage.replica is not None:
                yield _replica(*services.storage.replica.state)
                failed = [name for name in failed if name != "replica"]
    except Exception as error:
        line = expected(error) or f"unexpected {type(error).__name__}"
        yield Check("readiness", "fail", line, "`profilesvc serve` fails for the same reason")
        return
    if failed:
        yield Check("readiness", "fail", f"failed: {', '.join(failed)}")
    else:
        yield Check("readiness", "ok", "a server would start")


async def _provider_clock(settings: Settings) -> Check:
    import httpx

    try:
        async with httpx.AsyncClient(timeout=settings.provider.timeout_seconds) as http:
            response = await http.get(settings.provider.information_url or settings.provider.url)
    except httpx.HTTPError as error:
        message = f"no Date header from the provider to compare with ({type(error).__name__})"
        return Check("clock", "warn", message, connection_hint(error, _REACHABLE))
    return clock(response.headers.get("Date"), time.time())


async def _provider(settings: Settings) -> Check:
    """Log in to the provider and read its accounts."""
    from profilesvc.domain.time import SystemClock
    from profilesvc.provider.connect import open_provider
    from profilesvc.provider.port import ProviderError

    try:
        async with (
            open_provider(settings, clock=SystemClock()) as provider,
            asyncio.timeout(settings.provider.timeout_seconds),
        ):
            accounts = await provider.accounts()
    except TimeoutError:
        return Check("provider", "fail", "no response in time", _REACHABLE)
    except ProviderError as error:
        return Check("provider", "fail", str(error), connection_hint(error, _hint(error)))
    if not accounts:
        return Check("provider", "warn", "the login works but sees no account", "consent with the account of the owner")
    names = [str(account.get("name")) for account in accounts[:_ACCOUNTS_SHOWN]]
    listed = ", ".join([*names, "…"] if len(accounts) > len(names) else names)
    return Check("provider", "ok", f"the login works and sees {counted(len(accounts), 'account')}: {listed}")


def _hint(error: "ProviderError") -> str:
    if error.http_status == 429:
        return "the project has no quota: apply for access (docs/provider.md, step 1)"
    if error.http_status in (403, 404):
        return "enable the API for the project, or check the address (docs/provider.md, steps 2 and 5)"
    if error.http_status is None and not error.retryable:
        return (
            "check PROFILESVC_PROVIDER__CLIENT_ID, __CLIENT_SECRET, __REFRESH_TOKEN; consent again (docs/provider.md)"
        )
    return _REACHABLE
