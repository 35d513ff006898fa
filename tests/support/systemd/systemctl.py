"""A systemctl for the folder of a test: it starts and stops the processes of the unit files below that folder.

Usage: systemctl.py FOLDER VERB [OPTION…] UNIT…, with the verbs start, enable, restart, stop, reload and daemon-reload.
"""

import configparser
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

STOP_SECONDS = 60


class Unit:
    """A service such as profilesvc@8000. Its process id and its output are in files of `root`."""

    def __init__(self, root: Path, name: str) -> None:
        self.root, self.name = root, name
        self.pid_file = root / "run" / name

    def start(self) -> None:
        template, _, instance = self.name.partition("@")
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.read(self.root / f"etc/systemd/system/{template}@.service", "utf-8")
        service = {name: self._inside(value).replace("%i", instance) for name, value in parser["Service"].items()}
        lines = Path(service["environmentfile"]).read_text("utf-8").splitlines()
        pairs = [line.split("=", 1) for line in lines if line and not line.startswith("#")]
        variables = os.environ | {name: "".join(shlex.split(value)) for name, value in pairs}
        self.pid_file.parent.mkdir(exist_ok=True)
        with (self.root / f"{self.name}.log").open("a") as log:
            words = [shlex.split(service[name]) for name in ("execstartpre", "execstart")]
            place = {"cwd": service["workingdirectory"], "env": variables, "stdout": log, "stderr": log}
            subprocess.run(words[0], check=True, **place)  # type: ignore[call-overload]
            process = subprocess.Popen(words[1], start_new_session=True, **place)  # type: ignore[call-overload]
        self.pid_file.write_text(str(process.pid))

    def _inside(self, text: str) -> str:
        return " ".join(f"{self.root}{word}" if word.startswith("/") else word for word in text.split())

    def stop(self) -> None:
        """Send SIGTERM and wait for the end. A process that does not end in time is killed, which is an error."""
        pid = int(self.pid_file.read_text())
        os.kill(pid, signal.SIGTERM)
        for _ in range(STOP_SECONDS * 20):
            if not _is_running(pid):
                return
            time.sleep(0.05)
        os.killpg(pid, signal.SIGKILL)
        raise SystemExit(f"{self.name} did not stop")


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def main(root: Path, verb: str, *words: str) -> None:
    """Run one command."""
    units = [Unit(root, word) for word in words if "@" in word]
    if verb in ("stop", "restart"):
        for unit in units:
            unit.stop()
    if verb in ("start", "enable", "restart"):
        for unit in units:
            unit.start()
    if verb == "reload":
        subprocess.run(["nginx"], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
