"""The checks of `doctor` on the disk with the file of the SQLite database: free space and kind of file system."""

import re
import shutil
from pathlib import Path

from profilesvc.cli.doctor.check import Check

MB = 1_000_000
FAIL_BELOW, WARN_BELOW = 200 * MB, 1_000 * MB  # docs/operations.md names both
_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = re.compile(r"(nfs|nfs4|cifs|smb3|smbfs|9p|afs|ceph|lustre|ocfs2|gfs2|virtiofs|fuse|fuse\..+)\Z")


def disk(database: Path) -> list[Check]:
    """Check the file system of a database's file, which need not exist yet."""
    folder = next(path for path in database.resolve().parents if path.is_dir())
    checks = [_space(shutil.disk_usage(folder).free, folder)]
    try:
        kind = _kind_of(folder, _MOUNTS.read_text("utf-8", "surrogateescape"))
    except OSError:  # not Linux
        return checks
    if kind and _NETWORK.match(kind):
        message = f"{folder} is on {kind}, where SQLite's locks and shared memory may not work and data can be lost"
        checks.append(Check("file system", "warn", message, "use a local disk, or PostgreSQL (docs/operations.md)"))
    return checks


def _space(free: int, folder: Path) -> Check:
    message = f"{free // MB:,} MB free in {folder}"
    if free >= WARN_BELOW:
        return Check("disk", "ok", message)
    hint = "make room, or move PROFILESVC_DATA_DIR to a larger disk (docs/operations.md, A full disk)"
    return Check("disk", "fail" if free < FAIL_BELOW else "warn", message, hint)


def _kind_of(folder: Path, mounts: str) -> str:
    """Return the type of the file system that has a folder, by the lines of proc_pid_mountinfo(5); "" if unknown."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4]))
        if folder.is_relative_to(point) and len(point.parts) >= best:  # a later mount hides an earlier one
            best, kind = len(point.parts), after.split(" ")[0]
    return kind
