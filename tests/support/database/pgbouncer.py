"""A PgBouncer of the test's own in front of the test's PostgreSQL server.

From the system's package, for Debian 12 that is 1.18, or the program that PROFILESVC_TEST_PGBOUNCER names.
"""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Postgres
from support.network.ports import free_port
from support.waiting import until

_OLDER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
_NEWER = os.environ.get("PROFILESVC_TEST_PGBOUNCER")
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
{more}
logfile = {folder}/log
"""


@contextlib.contextmanager
def pooling(
    postgres: Postgres, mode: str, *, newer: bool = False, robin: int = 0, more: str = "", database: str = "work"
) -> Iterator[str]:
    """The URL of a database through a PgBouncer in that mode; `newer` is 1.21 or later."""
    program = _NEWER if newer else _OLDER
    if program is None and newer:
        pytest.skip("PROFILESVC_TEST_PGBOUNCER does not name a PgBouncer 1.21 or later")
    if program is None:
        pytest.skip("PgBouncer is not installed here (Debian: apt-get install pgbouncer)")
    port, folder = free_port(), Path(tempfile.mkdtemp(prefix="profilesvc-"))
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        _FILE.format(host=postgres.host, port=port, mode=mode, robin=robin, more=more, folder=folder), "utf-8"
    )
    user = None
    if os.geteuid() == 0:  # it refuses to run as root
        user = pwd.getpwuid(Path(postgres.host).stat().st_uid).pw_name
        shutil.chown(folder, user)
    process = subprocess.Popen([program, "-q", str(settings)], user=user, stderr=subprocess.DEVNULL)
    try:
        _wait(process, port)
        yield f"postgresql+asyncpg://postgres@127.0.0.1:{port}/{database}"
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder)


def _wait(process: "subprocess.Popen[bytes]", port: int) -> None:
    def answers() -> bool:
        assert process.poll() is None, "PgBouncer did not start"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    until(answers, "PgBouncer", every=0.05)
