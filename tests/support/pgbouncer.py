"""A PgBouncer of the test's own, from the system's package, in front of the test's PostgreSQL server."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Postgres
from support.redis_server import free_port

_PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
_FILE = """
[databases]
* = host={host} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
server_round_robin = {robin}
ignore_startup_parameters = {ignored}
logfile = {folder}/log
"""
IGNORED = "lock_timeout, statement_timeout, idle_in_transaction_session_timeout"


@contextlib.contextmanager
def pooling(postgres: Postgres, mode: str, *, ignored: str = IGNORED, robin: int = 0) -> Iterator[str]:
    """The URL of the database `work` through a PgBouncer in that mode."""
    if _PROGRAM is None:
        pytest.skip("PgBouncer is not installed here (Debian: apt-get install pgbouncer)")
    port, folder = free_port(), Path(tempfile.mkdtemp(prefix="profilesvc-"))
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        _FILE.format(host=postgres.host, port=port, mode=mode, robin=robin, ignored=ignored, folder=folder), "utf-8"
    )
    user = None
    if os.geteuid() == 0:  # it refuses to run as root
        user = pwd.getpwuid(Path(postgres.host).stat().st_uid).pw_name
        shutil.chown(folder, user)
    process = subprocess.Popen([_PROGRAM, "-q", str(settings)], user=user, stderr=subprocess.DEVNULL)
    try:
        _wait(process, port)
        yield f"postgresql+asyncpg://postgres@127.0.0.1:{port}/work"
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder)


def _wait(process: "subprocess.Popen[bytes]", port: int) -> None:
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        assert process.poll() is None, "PgBouncer did not start"
        time.sleep(0.05)
    raise AssertionError("PgBouncer does not answer")
