"""A systemctl for the folder of a test: it runs the services of the unit files below that folder, as their user.

Usage: plain_units.py FOLDER VERB [OPTION…] UNIT…, with the verbs start, enable and stop. It ignores daemon-reload,
timers, and units without a file. Users that do not exist here are SERVER_USER, or the one who runs it.
"""

import configparser
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

_STOP_SECONDS = 60


class PlainUnit:
    """A service; the id of its process is in a file."""

    def __init__(self, root: Path, name: str) -> None:
        self.name, self.log = name, root / f"{name}.log"
        self.pid_file = root / "run" / f"{name}.pid"
        parser = configparser.ConfigParser(interpolation=None, strict=False)  # SystemCallFilter is there twice
        parser.optionxform = str  # type: ignore[assignment, method-assign]
        self.exists = bool(parser.read(root / "etc/systemd/system" / f"{name}.service", "utf-8"))
        self.service = dict(parser["Service"]) if self.exists else {}

    def start(self) -> None:
        lines = []
        if "EnvironmentFile" in self.service:
            lines = Path(self.service["EnvironmentFile"]).read_text("utf-8").splitlines()
        pairs = [line.split("=", 1) for line in lines if line and not line.startswith("#")]
        variables = {name: "".join(shlex.split(value)) for name, value in pairs}
        words = shlex.split(self.service["ExecStart"])
        words = [re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], word) for word in words]
        user = os.environ.get("SERVER_USER") if self.service.get("User") == "postgres" else None
        with self.log.open("a") as log:
            process = subprocess.Popen(
                words, env=os.environ | variables, stdout=log, stderr=log, start_new_session=True, user=user, group=user
            )
        if self.service.get("Type") == "oneshot":
            if process.wait() != 0:
                raise SystemExit(f"{self.name} failed: {self.log.read_text()}")
            return
        self.pid_file.parent.mkdir(exist_ok=True)
        self.pid_file.write_text(str(process.pid))

    def stop(self) -> None:
        """End the service if it runs. One that does not end in time is an error."""
        if not self.pid_file.exists():
            return
        pid = int(self.pid_file.read_text())
        self.pid_file.unlink()
        number = signal.Signals[self.service.get("KillSignal", "SIGTERM")]
        for _ in range(_STOP_SECONDS * 20):
            if not _is_running(pid):
                return
            os.kill(pid, number)
            number = signal.Signals.SIGCONT  # once is enough
            time.sleep(0.05)
        os.kill(pid, signal.SIGKILL)
        raise SystemExit(f"{self.name} did not stop")


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def main(root: Path, verb: str, *words: str) -> None:
    """Run one command."""
    units = [PlainUnit(root, word) for word in words if not word.startswith("-")]
    for unit in units:
        if unit.exists and verb == "stop":
            unit.stop()
        if unit.exists and verb in ("start", "enable"):
            unit.start()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
