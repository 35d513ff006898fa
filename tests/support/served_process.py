"""The service as a process of its own, to be signalled and killed."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence

import httpx

from profilesvc.fixtures import fixture_path
from profilesvc.settings import Settings
from support.forks import Fork
from support.waiting import patience, until

# A process that does not reject requests because the machine is busy.
PATIENT = """
from profilesvc.database import batches, engine
engine.BUSY_SECONDS = batches.BUSY_SECONDS = 60.0
"""
# The emulator has no socket here, so that a delay is asked for by the first argument.
_SERVE = f"""{PATIENT}
import sys
from profilesvc.server import serving
from profilesvc.bootstrap import Runtime, create_app
from profilesvc.emulator.faults import Fault
from profilesvc.settings import load

world = Runtime()
app = create_app(load(), world)
listener = serving.bind("127.0.0.1", 0)
port = listener.getsockname()[1]
draining = app.extensions["profilesvc.draining"]

def ready():
    if float(sys.argv[1]):
        world.emulator.extensions["emulator"].faults.add(Fault(kind="delay", seconds=float(sys.argv[1]), times=10))
    print(port, flush=True)

def stopping():
    draining.set()
    print("draining", flush=True)

sys.exit(0 if serving.serve_forever(app, [listener], ready, stopping) else 1)
"""


def environment(settings: Settings) -> dict[str, str]:
    """For a process of its own with these settings."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("PROFILESVC_")},
        "PROFILESVC_BASE_URL": settings.base_url,
        "PROFILESVC_DATA_DIR": str(settings.data_dir),
        "PROFILESVC_TOKENS__SIGNING_KEY_FILE": str(fixture_path("signing_key.pem")),
        "PROFILESVC_TOKENS__REFRESH_KEY_FILE": str(fixture_path("refresh_key.pem")),
        "PROFILESVC_LIMITS__ENABLED": "false",
        "PROFILESVC_PROVIDER__TIMEOUT_SECONDS": str(settings.provider.timeout_seconds),
    }


def started(program: str, arguments: Sequence[str], settings: Settings) -> subprocess.Popen[str]:
    """A Python program in a process as the system starts it."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(settings),
        cwd=settings.data_dir,
    )


def forked(program: str, arguments: Sequence[str], settings: Settings) -> Fork:
    """A Python program in a fork, which starts at once. Its stderr is pytest's."""
    return Fork(_run, (program, list(arguments)), environment(settings), settings.data_dir, errors=False)


def _run(program: str, arguments: list[str]) -> None:
    """Do in the fork what `python -c` does."""
    sys.argv = ["-c", *arguments]
    exec(program, {"__name__": "__main__"})


Start = Callable[[str, Sequence[str], Settings], subprocess.Popen[str] | Fork]


class ServedProcess:
    """A running process, and its port."""

    def __init__(self, settings: Settings, delay: float = 0, start: Start = started) -> None:
        self._process = start(_SERVE, [str(delay)], settings)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(self.end()[1])
        self.port = int(line)

    def client(self, token: str) -> httpx.Client:
        """A caller with a token; certificates, which take long to load, are of no use here."""
        headers, base_url = {"Authorization": f"Bearer {token}"}, f"http://127.0.0.1:{self.port}"
        return httpx.Client(base_url=base_url, headers=headers, timeout=90, trust_env=False, verify=False)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def end(self, timeout: float = 25) -> tuple[str, str]:
        """Wait for the end; what else it wrote to stdout, and to stderr."""
        return self._process.communicate(timeout=patience(timeout))

    def ended(self, seconds: float) -> bool:
        """Wait for the end at most that long, and return whether it came."""
        with contextlib.suppress(AssertionError):
            until(lambda: self.returncode is not None, "the end of the process", seconds, every=0.005)
        return self.returncode is not None

    @property
    def returncode(self) -> int | None:
        """How it ended."""
        return self._process.poll()


@contextlib.contextmanager
def served_process(settings: Settings, delay: float = 0, start: Start = started) -> Iterator[ServedProcess]:
    """A process that does not outlive the block; provider calls of the first ten take `delay` seconds."""
    process = ServedProcess(settings, delay, start)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.signal(signal.SIGKILL)
        process.end()  # closes its pipes, also those of a process that ended by itself
