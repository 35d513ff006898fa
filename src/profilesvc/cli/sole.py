"""One server on a SQLite database: its turns, its counters and its caches are in one process (D-60)."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import make_url

from profilesvc.settings import PREFIX, Settings, SettingsError


@contextlib.contextmanager
def sole_server(settings: Settings) -> Iterator[None]:
    """A block that no other server on the same SQLite file is in; commands go on beside it. SettingsError.

    The lock ends with the process, however that ends; the file stays.
    """
    url = make_url(settings.effective_database_url)
    if url.get_backend_name() != "sqlite" or not url.database:
        yield
        return
    path = Path(f"{url.database}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise SettingsError(
            f"another server runs on {url.database}, and SQLite is for one: stop it, name another folder in "
            f"{PREFIX}DATA_DIR, or set {PREFIX}DATABASE_URL=postgresql+asyncpg://…"
        ) from None
    finally:
        os.close(descriptor)
