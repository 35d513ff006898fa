"""What a lab makes on a deployed service: noted on disk before it is made, so that any later process can undo it."""

import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Entry = dict[str, Any]
FOLDER = "smoke"  # in DATA_DIR


def name_of(target: str, location: str) -> str:
    """Return the prefix of the journals' names for a location at a deployment."""
    return hashlib.sha256(f"{target} {location}".encode()).hexdigest()[:16]


class Journal:
    """Lines of JSON in a file that only its owner can read; `lock` keeps other runs from it while it is in use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._writing = threading.Lock()

    def lock(self) -> bool:
        """Reserve the file for this process; False if another one has it or has removed it meanwhile."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return os.fstat(self._descriptor).st_nlink > 0

    def write(self, **entry: Any) -> None:
        """Append an entry; it is on the disk when this returns.

        Raises:
            RuntimeError: the file was removed, because the run that it belongs to is over.
        """
        if os.fstat(self._descriptor).st_nlink == 0:
            raise RuntimeError(f"{self.path.name} was removed: the run that it belongs to is over")
        line = json.dumps(entry).encode() + b"\n"
        with self._writing:
            os.write(self._descriptor, line)
            os.fsync(self._descriptor)

    def entries(self) -> list[Entry]:
        """Every entry, oldest first."""
        return list(self._parsed())

    def _parsed(self) -> Iterator[Entry]:
        for line in self.path.read_bytes().splitlines():
            try:
                yield json.loads(line)
            except ValueError:  # cut off when the machine failed: its request was never sent
                continue

    def remove(self) -> None:
        """Delete the file, because nothing is left to undo."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file and give up its lock."""
        os.close(self._descriptor)
