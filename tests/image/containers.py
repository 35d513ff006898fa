"""podman for the tests: a base of Debian's packages, the image of Containerfile, and containers of it."""

import contextlib
import os
import resource
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from support.repository import ROOT
from support.waiting import until

CACHE = ROOT / "build/image"
_PROGRAMS = ("podman", "crun", "mmdebstrap", "unshare")
_START_SECONDS = 90
_SAFE = ("--read-only", "--cap-drop=all", "--security-opt=no-new-privileges")
# As Debian's and the registry's Python images. async-timeout is for Python 3.11.2, which Debian 12 has.
_PACKAGES = "python3,python3-venv,ca-certificates"
_MORE = ("hatchling", "async-timeout")


def missing() -> str | None:
    """Return why no image can be built here, or None if it can."""
    if os.geteuid() != 0:
        return "only root can build the base of the image"
    absent = [name for name in _PROGRAMS if shutil.which(name) is None]
    return f"{', '.join(absent)} cannot be installed here" if absent else None


def _debian() -> str:
    lines = Path("/etc/os-release").read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)["VERSION_CODENAME"]


class Container:
    """A running container."""

    def __init__(self, podman: "Podman", name: str) -> None:
        self._podman, self._name = podman, name

    def run(self, *words: str) -> str:
        """Run a command in it; return what it prints."""
        return self._podman.run("exec", self._name, *words)

    def wait_until_ready(self, port: int) -> None:
        """Wait until it accepts requests."""

        def is_ready() -> bool:
            with contextlib.suppress(httpx.HTTPError):
                return httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200
            return False

        until(is_ready, lambda: "the container: " + self._podman.run("logs", self._name), _START_SECONDS, every=0.1)

    def stop(self) -> int:
        """Send the signal of the image; return the exit code."""
        self._podman.run("stop", "--time", "60", self._name)
        return int(self._podman.run("inspect", "--format", "{{.State.ExitCode}}", self._name))


class Podman:
    """podman with storage of its own, and without network of its own for containers. A context manager."""

    BASE, IMAGE = "localhost/profilesvc-base", "localhost/profilesvc"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        files = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 20_000)  # more than it has cannot be set
        self._limits = (
            f"--ulimit=nofile={files}:{files}",
            "--ulimit=nproc=1000:1000",
            "--cgroups=disabled",
            "--network=host",
        )
        self._build: tuple[str, ...] = ()
        self._words = ["podman", "--root", f"{folder}/storage", "--runroot", f"{folder}/run"]
        if not Path("/sys/fs/cgroup/cgroup.controllers").exists():  # crun needs the second version of control groups
            mounted = 'mount -t cgroup2 cgroup2 /sys/fs/cgroup; exec "$@"'
            self._words = ["unshare", "--mount", "sh", "-c", mounted, "sh", *self._words]

    def __enter__(self) -> "Podman":
        return self

    def __exit__(self, *_: object) -> None:
        self.run("system", "reset", "--force")

    def run(self, *words: str) -> str:
        """Run a command of podman; return what it prints."""
        done = subprocess.run([*self._words, *words], capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, f"podman {' '.join(words)}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr * (words[0] == "logs")

    def prepare(self) -> None:
        """Make the base. Python's packages come from a folder, because this machine may have an index of its own."""
        base, wheels, settings = CACHE / "base.tar", CACHE / "wheels", self._folder / "pip.conf"
        CACHE.mkdir(parents=True, exist_ok=True)
        if not base.exists():
            made = [
                "mmdebstrap",
                "--quiet",
                "--variant=minbase",
                f"--include={_PACKAGES}",
                _debian(),
                str(CACHE / "new.tar"),
            ]
            subprocess.run(made, check=True)
            os.replace(CACHE / "new.tar", base)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(wheels), "--only-binary=:all:"]
        constraints = ["--constraint", "constraints.txt"]
        subprocess.run([*pip, *constraints, ".[server]", *_MORE], cwd=ROOT, check=True)
        settings.write_text("[global]\nno-index = true\nfind-links = /wheels\n")
        self.run("import", str(base), self.BASE)
        self._build = (
            *("--isolation=chroot", "--pull=never", f"--build-arg=BASE={self.BASE}"),
            *(f"--volume={wheels}:/wheels:ro", f"--volume={settings}:/etc/pip.conf:ro"),
        )

    def shell(self, script: str) -> str:
        """Run commands of a page in the checkout. Their `podman` is this one, with the options that it needs here."""
        options = f'build) set -- {shlex.join(self._build)} "$@";; run) set -- {shlex.join(self._limits)} "$@";;'
        function = f'podman() {{ verb=$1; shift; case $verb in {options} esac; {shlex.join(self._words)} $verb "$@"; }}'
        done = subprocess.run(
            ["bash", "-euc", f"{function}\n{script}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    def once(self, *command: str, options: Sequence[str] = ()) -> str:
        """Run a container until it ends; return what it prints."""
        return self.run("run", "--rm", *self._limits, *_SAFE, *options, self.IMAGE, *command)

    @contextmanager
    def container(self, *command: str, options: Sequence[str] = ()) -> Iterator[Container]:
        """Start a container with a read-only root, on the network of this machine."""
        name = f"profilesvc-{secrets.token_hex(8)}"
        self.run(
            "run", "--detach", "--no-healthcheck", "--name", name, *self._limits, *_SAFE, *options, self.IMAGE, *command
        )
        try:
            yield Container(self, name)
        finally:
            self.run("rm", "--force", "--time", "60", name)
