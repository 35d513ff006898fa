"""Hosts of a cluster on this machine, each with an address, programs of its own and a network that can be cut.

As root each host is a network namespace on one bridge, if the system allows it. Otherwise the hosts are addresses of
the loopback interface, whose network cannot be cut. Namespaces and programs end with the test's process.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil

from support.waiting import until

_HOLD = ("setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity")
# PostgreSQL refuses to run as root. The files of an environment may be below root's own folder.
_AS_OTHER = ("--reuid=nobody", "--regid=nogroup", "--clear-groups", "--inh-caps=+dac_read_search")
_READS_ALL = "--ambient-caps=+dac_read_search"
_STOP_SECONDS = 60


class Network:
    """The addresses of hosts by their last number, which are 10.0.0.x in the files of deploy/cluster/."""

    def __init__(self, can_be_cut: bool) -> None:
        self.can_be_cut = can_be_cut
        place = os.getpid()
        first = f"10.{128 + (place >> 8) % 100}" if can_be_cut else f"127.{1 + (place >> 8) % 200}"
        self.prefix = f"{first}.{place % 256}."
        self._holders: dict[str, subprocess.Popen[bytes]] = {}
        if can_be_cut:
            self._join("switch")
            self._run("switch", "link", "add", "bridge", "type", "bridge")
            self._run("switch", "link", "set", "bridge", "up")
            link = f"pfs{place}"
            self._run("switch", "link", "add", "test", "type", "veth", "peer", "name", link, "netns", str(place))
            self._run("switch", "link", "set", "test", "master", "bridge", "up")
            for words in (("addr", "add", f"{self.prefix}254/24", "dev", link), ("link", "set", link, "up")):
                subprocess.run(["ip", *words], check=True)

    def add(self, name: str, number: int) -> str:
        """Connect a host; return its address."""
        address = f"{self.prefix}{number}"
        if self.can_be_cut:
            holder = self._join(name)
            self._run("switch", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(holder))
            self._run("switch", "link", "set", name, "master", "bridge", "up")
            self._run(name, "addr", "add", f"{address}/24", "dev", "eth0")
            for link in ("lo", "eth0"):
                self._run(name, "link", "set", link, "up")
        return address

    def within(self, name: str) -> list[str]:
        """Return the words before a command that runs on a host."""
        return ["nsenter", f"--net=/proc/{self._holders[name].pid}/ns/net"] if self.can_be_cut else []

    def cut(self, name: str) -> None:
        """No packet reaches the host or leaves it, and the other side gets no error."""
        self._run("switch", "link", "set", name, "down")

    def heal(self, name: str) -> None:
        """Undo `cut`."""
        self._run("switch", "link", "set", name, "up")

    def close(self) -> None:
        for holder in self._holders.values():
            holder.kill()
            holder.wait()

    def _join(self, name: str) -> int:
        holder = self._holders[name] = subprocess.Popen(_HOLD)
        ours = os.readlink("/proc/self/ns/net")

        def is_inside() -> bool:
            assert holder.poll() is None, "no network namespace"
            return os.readlink(f"/proc/{holder.pid}/ns/net") != ours

        until(is_inside, "a network namespace", every=0.01)
        return holder.pid

    def _run(self, name: str, *words: str) -> None:
        subprocess.run([*self.within(name), "ip", *words], check=True)


def can_cut() -> bool:
    """Return whether this process may create network namespaces."""
    if os.geteuid() != 0:
        return False
    # In full: to ip, `a` alone is short for `address`.
    words = "ip link add name one type veth peer name two; ip link add name three type bridge"
    tried = subprocess.run(
        ["unshare", "--net", "sh", "-ec", words], check=False, capture_output=True, text=True, env=_SYSTEM
    )
    lacks = ("not permitted", "not supported", "not found", "Unknown device type", "No such file")
    assert tried.returncode == 0 or any(reason in tried.stderr for reason in lacks), tried.stderr
    return tried.returncode == 0


def can_be_other() -> bool:
    """Return whether PostgreSQL can run: as this user, or as root by giving up its rights."""
    if os.geteuid() != 0:
        return True
    tried = subprocess.run(["setpriv", *_AS_OTHER, _READS_ALL, "--", "true"], check=False, capture_output=True)
    return tried.returncode == 0


def as_other() -> tuple[str, ...]:
    """Return the options of setpriv with which PostgreSQL runs."""
    return (*_AS_OTHER, _READS_ALL) if os.geteuid() == 0 else ()


class Host:
    """A host and its programs by name; `folder` is its disk."""

    def __init__(self, network: Network, folder: Path, name: str, number: int) -> None:
        self.name, self.network, self.folder = name, network, folder / name
        self.address = network.add(name, number)
        self.folder.mkdir()
        self.folder.chmod(0o777)
        self._programs: dict[str, tuple[subprocess.Popen[bytes], Callable[[], None]]] = {}

    def run(self, name: str, words: Sequence[str], variables: dict[str, str], *, unprivileged: bool = False) -> None:
        """Start a program; its output is in the host's folder. `unprivileged`: it refuses to run as root."""
        changed = as_other() if unprivileged else ()
        command = [*self.network.within(self.name), "setpriv", *changed, "--pdeathsig", "KILL", "--", *words]
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=self.folder, env=variables | _SYSTEM, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        self._programs[name] = process, lambda: self.run(name, words, variables, unprivileged=unprivileged)

    def start(self, *names: str) -> None:
        """Start programs again that have run before; without names, all that do not run."""
        for name in names or list(self._programs):
            if names or self._programs[name][0].poll() is not None:
                self._programs[name][1]()

    def is_running(self, name: str) -> bool:
        """Return whether a program has been started and has not ended."""
        return name in self._programs and self._programs[name][0].poll() is None

    def stop(self, name: str, number: int = signal.SIGTERM) -> int:
        """Send a signal to a program and wait for its end; return its exit code."""
        process = self._programs[name][0]
        process.send_signal(number)
        return process.wait(_STOP_SECONDS)

    def kill(self) -> None:
        """End all programs at once, as the loss of power does."""
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        for program, _ in self._programs.values():
            program.wait(_STOP_SECONDS)

    def processes(self, *names: str) -> list[psutil.Process]:
        """Return the running processes of some programs, or of all; `postgres` is Patroni's server."""
        roots = [
            program.pid
            for name, (program, _) in self._programs.items()
            if program.poll() is None and (not names or name in names)
        ]
        if not names or "postgres" in names:
            roots += self._postmaster()
        return list(_trees(roots))

    def freeze(self, *names: str) -> Callable[[], None]:
        """Stop some programs, or all, in the middle of what they do; call the result to continue them."""
        frozen = self.processes(*names)
        for process in frozen:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()

        def thaw() -> None:
            for process in frozen:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.resume()

        return thaw

    def _postmaster(self) -> list[int]:
        with contextlib.suppress(OSError, ValueError, IndexError):
            return [int((self.folder / "data" / "postmaster.pid").read_text().split()[0])]
        return []


_SYSTEM = {"PATH": os.environ["PATH"] + ":/usr/sbin", "LC_ALL": "C.UTF-8"}


def _trees(roots: list[int]) -> Iterator[psutil.Process]:
    for root in roots:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(root)
            yield process
            yield from process.children(recursive=True)
