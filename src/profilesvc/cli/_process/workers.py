"""Several processes of `serve`: start them and create the server of each."""

import os
import socket
import tempfile
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import make_url

from profilesvc.bootstrap import create_app
from profilesvc.settings import PREFIX, Settings
from profilesvc.telemetry.metrics import SHARED_FOLDER, forget

if TYPE_CHECKING:
    from quart import Quart

    from profilesvc.server.serving import Server

MakeApp = Callable[[Settings], "Quart"]


def serve_workers(
    settings: Settings,
    listeners: list[socket.socket],
    count: int,
    ready: Callable[[], None],
    make: MakeApp = create_app,
) -> bool:
    """Serve in `count` processes until SIGTERM or SIGINT. Return False if one did not start at first; see its log."""
    from profilesvc.server.workers import Supervisor

    with tempfile.TemporaryDirectory(prefix="profilesvc-metrics-") as folder:
        os.environ[SHARED_FOLDER] = folder
        create = partial(_create_server, settings, make)
        return Supervisor(create, listeners, count, ready, forget, settings.drain_seconds).serve()


def _create_server(settings: Settings, make: MakeApp) -> "Server":
    from profilesvc.cli._process.logs import log_requests, log_to_stderr
    from profilesvc.server.serving import Server, freeze_heap

    log_to_stderr()
    log_requests(settings)
    app = make(settings)
    return Server(app, freeze_heap, app.extensions["profilesvc.draining"].set, settings.drain_seconds)


def workers_problem(settings: Settings, workers: int) -> str | None:
    """Return why several processes cannot share this database, or None."""
    if workers > 1 and make_url(settings.effective_database_url).get_backend_name() == "sqlite":
        return f"several workers need PostgreSQL. Set {PREFIX}DATABASE_URL=postgresql+asyncpg://…"
    return None


def workers_warning(settings: Settings, workers: int) -> str | None:
    """Return a warning if several processes count rate limits separately, or None."""
    if workers > 1 and settings.limits.enabled and not settings.limits.shared:
        return (
            f"each of {workers} workers counts rate limits separately, so callers can get up to {workers} times the "
            f"limit. Set {PREFIX}LIMITS__STORAGE_URL=redis://… to count together."
        )
    return None
