"""The parts of the machine that tests use, and the variables that they must not read."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

NO_SERVER = "/nonexistent"  # a folder without the socket of a PostgreSQL
# How the suite itself is run.
OURS = {
    *("PROFILESVC_FUZZ", "PROFILESVC_DEPLOYED", "PROFILESVC_FAILOVER_ROUNDS"),
    *("PROFILESVC_TEST_PGBOUNCER", "PROFILESVC_TEST_CITUS_URL"),
}


def foreign(names: Iterable[str]) -> list[str]:
    """The variables that lead the service, the PostgreSQL driver or an HTTP client elsewhere."""
    return [
        name
        for name in names
        if (name.upper().startswith(("PROFILESVC_", "PG")) and name not in OURS) or name.lower().endswith("_proxy")
    ]


def memory_folder(needed: int = 4 << 30) -> Path | None:
    """Return the file system in memory if it has that many bytes free, else None."""
    memory = Path("/dev/shm")
    usable = memory.is_dir() and os.access(memory, os.W_OK | os.X_OK) and shutil.disk_usage(memory).free >= needed
    return memory if usable else None
