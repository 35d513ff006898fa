"""`profilesvc serve`: run the service in one or several processes."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from profilesvc.cli._process.listening import Host, Port, announce, bound, bound_or_inherited, publish, with_base_url
from profilesvc.cli._process.logs import log_requests
from profilesvc.cli._process.stopping import until_stopped
from profilesvc.settings import PREFIX, Settings, SettingsError, forbid_in_production, load

if TYPE_CHECKING:
    from profilesvc.bootstrap import Runtime

log = logging.getLogger("profilesvc")


def serve(
    host: Host = "127.0.0.1",
    port: Port = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes; more than one requires PostgreSQL.")] = 1,
    demo: Annotated[bool, typer.Option("--demo", help="Load the demo data into an empty database.")] = False,
) -> None:
    """Run the service. On SIGTERM or SIGINT, finish the open requests, then stop."""
    from profilesvc.bootstrap import Runtime, create_app
    from profilesvc.cli._process.sqlite_lock import exclusive_server
    from profilesvc.cli._process.workers import serve_workers
    from profilesvc.server.serving import serve_forever

    if demo:
        forbid_in_production("the demo data")
    settings = load()
    _check(settings, workers)
    log_requests(settings)
    with until_stopped(), bound_or_inherited(host, port) as listener, exclusive_server(settings), ExitStack() as opened:
        listeners = [listener]
        if settings.metrics.port is not None:
            listeners.append(opened.enter_context(bound(host, settings.metrics.port, f"{PREFIX}METRICS__PORT")))
        settings = with_base_url(settings, host, listener)
        ready = announce(host, listener)
        if workers > 1:
            asyncio.run(_check_services(settings, demo))
            started = serve_workers(settings, listeners, workers, ready)
        else:
            runtime = Runtime()
            app, services = create_app(settings, runtime), _prepared(settings, runtime, demo)
            draining = app.extensions["profilesvc.draining"].set
            started = serve_forever(app, listeners, ready, draining, settings.drain_seconds, services)
        if not started:
            raise typer.Exit(1)


def _check(settings: Settings, workers: int) -> None:
    """Report what cannot work, before a worker starts.

    Raises:
        SettingsError: The number of workers, or a package that is missing.
    """
    from profilesvc.cli._process.workers import workers_problem, workers_warning
    from profilesvc.telemetry.observing import open_observer

    if problem := workers_problem(settings, workers):
        raise SettingsError(problem)
    open_observer(settings)
    if warning := workers_warning(settings, workers):
        log.warning(warning)


@asynccontextmanager
async def _prepared(settings: Settings, runtime: "Runtime", demo: bool, *, jobs: bool = True) -> AsyncIterator[None]:
    """Open the services. Load the demo data if `demo`, and store the base URL for other commands."""
    from profilesvc.bootstrap import open_services
    from profilesvc.fixtures import load_world
    from profilesvc.operations import seeding

    async with open_services(settings, runtime, jobs=jobs) as services:
        if demo:
            await seeding.load_if_empty(services, load_world())
        publish(settings)
        runtime.services = services
        yield


async def _check_services(settings: Settings, demo: bool) -> None:
    """Open the services in the supervisor, so that a problem is one line, and the demo data is loaded once."""
    from profilesvc.bootstrap import Runtime

    async with _prepared(settings, Runtime(), demo, jobs=False):
        pass
