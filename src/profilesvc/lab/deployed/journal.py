"""The journal of a lab's changes to a deployed service, written in advance, so that a later process can undo them."""

import fcntl
import hashlib
import json
import os
import threading
from contextlib import suppress
from pathlib import Path

from profilesvc.contract.json import JsonObject

FOLDER = "smoke"  # in DATA_DIR


def name_of(target: str, location: str) -> str:
    """Return the prefix of the journals' names for a location at a deployment."""
    return hashlib.sha256(f"{target} {location}".encode()).hexdigest()[:16]


class Journal:
    """Lines of JSON in a file that only its owner can read. `lock` reserves it for one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._writing = threading.Lock()

    def lock(self) -> bool:
        """Reserve the file for this process. Return False if another process uses it or has removed it."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return os.fstat(self._descriptor).st_nlink > 0

    def write(self, **entry: object) -> None:
        """Append an entry and wait until it is on the disk.

        Raises:
            RuntimeError: The file was removed, because its run is over.
        """
        if os.fstat(self._descriptor).st_nlink == 0:
            raise RuntimeError(f"{self.path.name} was removed, because its run is over")
        line = json.dumps(entry).encode() + b"\n"
        with self._writing:
            os.write(self._descriptor, line)
            os.fsync(self._descriptor)

    def entries(self) -> list[JsonObject]:
        """Return all entries, oldest first."""
        entries = []
        for line in self.path.read_bytes().splitlines():
            with suppress(ValueError):  # incomplete because the machine failed, so its request was never sent
                entries.append(json.loads(line))
        return entries

    def remove(self) -> None:
        """Delete the file once everything is undone."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file and release its lock."""
        os.close(self._descriptor)
