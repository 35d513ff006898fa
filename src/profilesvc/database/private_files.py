"""SQLite files that only their owner may read, whatever the umask."""

import glob
from pathlib import Path


def make_private(path: Path) -> None:
    """Create a database file with mode 0600, which SQLite's new journals get too, and correct what is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o600)
    for file in path.parent.glob(f"{glob.escape(path.name)}*"):
        if file.name.removeprefix(path.name) in ("", "-wal", "-shm") and file.stat().st_mode & 0o077:
            file.chmod(0o600)
