"""A machine of its own that systemd runs, on a copy-on-write view of this one: the unit files of deploy/ for real."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil

from support.repository import ROOT
from support.waiting import until

ANALYZE = shutil.which("systemd-analyze")
_SYSTEMD = Path("/lib/systemd/systemd")
_START_SECONDS = 60
PEPPER_FILE = "/etc/profilesvc/pepper"  # as in docs/deploy.md
# The interpreter, the packages and the checkout may be below root's own folder, which the units cannot see.
_PREPARE = """
root=$1
sed -i '1i profilesvc:x:{user}:{user}::/var/lib/profilesvc:/usr/sbin/nologin' "$root/etc/passwd"
sed -i '1i profilesvc:x:{user}:' "$root/etc/group"
mounted() {{ mkdir -p "$root/$2"; mount --bind "$1" "$root/$2"; }}
mounted {python} opt/python
mounted {packages} opt/packages
mounted {checkout} opt/checkout
mounted {database} opt/database
site=$root/opt/profilesvc/lib/python{version}/site-packages
mkdir -p "$root/opt/profilesvc/bin" "$site"
printf '/opt/checkout/src\\n/opt/packages\\n' >"$site/paths.pth"
printf 'home = /opt/python/bin\\n' >"$root/opt/profilesvc/pyvenv.cfg"
ln -s /opt/python/bin/python{version} "$root/opt/profilesvc/bin/python"
cat >"$root/opt/profilesvc/bin/profilesvc" <<'END'
#!/usr/bin/env -S LD_LIBRARY_PATH=/opt/python/lib /opt/profilesvc/bin/python
from profilesvc.cli import main
if __name__ == "__main__":
    main()
END
chmod 755 "$root/opt/profilesvc/bin/profilesvc"
cp {checkout}/deploy/profilesvc*.service {checkout}/deploy/profilesvc*.socket {checkout}/deploy/profilesvc*.timer \\
  "$root/etc/systemd/system/"
cp -a {files}/. "$root/etc/"
"""


def _cgroups() -> Path | None:
    """Return where the second version of control groups is mounted."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text("utf-8").splitlines()]
    return next((Path(place) for _, place, kind, *_ in mounts if kind == "cgroup2"), None)


def missing() -> str | None:
    """Return why systemd cannot run here, or None if it can."""
    if os.geteuid() != 0:
        return "only root can run systemd in namespaces"
    if not _SYSTEMD.exists() or not all(shutil.which(name) for name in ("unshare", "nsenter", "setpriv")):
        return "systemd is not installed"
    if _cgroups() is None:
        return "control groups of version 2 are not mounted"
    tried = subprocess.run(
        ["unshare", "-m", "sh", "-c", "mount -t tmpfs tmpfs /mnt && cd /mnt && mkdir u w r && "
         "mount -t overlay overlay -o lowerdir=/,upperdir=u,workdir=w r"],
        capture_output=True, check=False,
    )  # fmt: skip
    return "this machine cannot mount an overlay" if tried.returncode else None


class SystemdMachine:
    """A context manager. `files` are copied to /etc, and `database` is the folder of PostgreSQL's socket."""

    def __init__(self, folder: Path, files: Path, database: str) -> None:
        self._folder = folder
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        prepare = _PREPARE.format(
            user=os.stat(database).st_uid,  # only this user can reach the socket
            python=sys.base_prefix,
            packages=Path(sys.prefix) / f"lib/python{version}/site-packages",
            checkout=ROOT,
            database=database,
            version=version,
            files=files,
        )
        (folder / "prepare.sh").write_text(prepare)
        (folder / "view").mkdir()
        mounted = _cgroups()
        assert mounted is not None
        self._cgroup = mounted / f"profilesvc-test-{os.getpid()}"

    def __enter__(self) -> "SystemdMachine":
        self._cgroup.mkdir()
        boot = ("sh", f"{ROOT}/tests/support/systemd/boot.sh", f"{self._folder}/view", f"{self._folder}/prepare.sh")
        unshare = ("unshare", "--mount", "--pid", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child")
        inside = f'echo $$ >{self._cgroup}/cgroup.procs; exec setpriv --pdeathsig KILL "$@"'
        with (self._folder / "boot.log").open("wb") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", inside, "sh", *unshare, *boot],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        until(
            lambda: self._enter("systemctl", "is-system-running").stdout.strip() == "running",
            lambda: "systemd: " + (self._folder / "boot.log").read_text(),
            _START_SECONDS,
            every=0.2,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._enter("systemctl", "stop", "profilesvc@*")
        children = psutil.Process(self._process.pid).children()
        for child in children:
            child.kill()
        self._process.kill()
        self._process.wait()
        psutil.wait_procs(children, timeout=30)
        for path in sorted(self._cgroup.rglob("*"), reverse=True):
            if path.is_dir():
                with contextlib.suppress(OSError):
                    path.rmdir()
        with contextlib.suppress(OSError):
            self._cgroup.rmdir()

    def _enter(self, *words: str) -> subprocess.CompletedProcess[str]:
        first = next(iter(psutil.Process(self._process.pid).children()), None)
        target = ("--target", str(first.pid if first else os.getpid()))
        spaces = ("--mount", "--pid", "--uts", "--ipc", "--cgroup") if first else ()
        program = ["nsenter", *target, *spaces, *words] if first else ["true"]
        return subprocess.run(program, capture_output=True, text=True, timeout=180, check=False)

    def run(self, *words: str) -> str:
        """Run a command as root; return what it prints."""
        done = self._enter(*words)
        journal = "" if done.returncode == 0 else self._enter("journalctl", "--no-pager", "-n", "60").stdout
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}{journal}"
        return done.stdout

    def admin(self, *words: str) -> str:
        """Run a command of the service with its settings, and with the secret that systemd passes to it as a file."""
        settings = f"set -a; . /etc/profilesvc.env; PROFILESVC_SECRET_PEPPER_FILE={PEPPER_FILE}"
        return self.run("sh", "-c", f'{settings}; exec "$@"', "sh", "/opt/profilesvc/bin/profilesvc", *words)
