"""One process for a SQLite file: its locks, its counters and its caches are in that process (D-60)."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import make_url

from profilesvc.settings import PREFIX, Settings, SettingsError


@contextlib.contextmanager
def sole_server(settings: Settings) -> Iterator[None]:
    """A block that no other server on the same SQLite file is in. SettingsError.

    Servers on PostgreSQL may share the file of their embedded emulator, but not with an emulator that is a server of
    its own. Commands may use both files meanwhile.
    """
    url = make_url(settings.effective_database_url)
    with contextlib.ExitStack() as held:
        if url.get_backend_name() == "sqlite" and url.database:
            other = f"set {PREFIX}DATABASE_URL=postgresql+asyncpg://…"
            held.enter_context(_locked(Path(url.database), f"SQLite allows only one server: stop it, or {other}"))
        if settings.provider.embedded:
            held.enter_context(_emulator_lock(settings, fcntl.LOCK_SH))
        yield


def sole_emulator(settings: Settings) -> contextlib.AbstractContextManager[None]:
    """A block that no other process serves the emulator's file in. SettingsError."""
    return _emulator_lock(settings, fcntl.LOCK_EX)


def _emulator_lock(settings: Settings, kind: int) -> contextlib.AbstractContextManager[None]:
    from profilesvc.emulator.embedded import EMULATOR_FILE

    return _locked(settings.data_dir / EMULATOR_FILE, "each emulator needs a file of its own: stop the other one", kind)


@contextlib.contextmanager
def _locked(file: Path, advice: str, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    """The lock ends with the process, however that ends; its file stays."""
    path = Path(f"{file}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        message = f"another server runs on {file}; {advice}, or name another folder in {PREFIX}DATA_DIR"
        raise SettingsError(message) from None
    finally:
        os.close(descriptor)
