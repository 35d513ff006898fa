"""A lock that allows one process per SQLite file, because locks, counters and caches are in that process."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import make_url

from profilesvc.settings import PREFIX, Settings, SettingsError


@contextlib.contextmanager
def exclusive_server(settings: Settings) -> Iterator[None]:
    """Lock the server's SQLite file for the block.

    Servers on PostgreSQL may share the file of their embedded emulator, but not with `profilesvc emulator`. Other
    commands do not need the locks.

    Raises:
        SettingsError: another server runs on the file.
    """
    url = make_url(settings.effective_database_url)
    with contextlib.ExitStack() as locks:
        if url.get_backend_name() == "sqlite" and url.database:
            other = f"set {PREFIX}DATABASE_URL=postgresql+asyncpg://…"
            locks.enter_context(_locked(Path(url.database), f"SQLite allows only one: stop it, or {other}"))
        if settings.provider.embedded:
            locks.enter_context(_emulator_lock(settings, fcntl.LOCK_SH))
        yield


def exclusive_emulator(settings: Settings) -> contextlib.AbstractContextManager[None]:
    """Lock the emulator's file for a block.

    Raises:
        SettingsError: another process serves the file.
    """
    return _emulator_lock(settings, fcntl.LOCK_EX)


def _emulator_lock(settings: Settings, kind: int) -> contextlib.AbstractContextManager[None]:
    from profilesvc.emulator.embedded import EMULATOR_FILE

    return _locked(settings.data_dir / EMULATOR_FILE, "each emulator needs its own file: stop the other one", kind)


@contextlib.contextmanager
def _locked(file: Path, advice: str, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Lock a file; the lock ends with the process, and the lock file is not deleted."""
    path = Path(f"{file}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        message = f"another server runs on {file}; {advice}, or set {PREFIX}DATA_DIR to another folder"
        raise SettingsError(message) from None
    finally:
        os.close(descriptor)
