"""Processes that sweep and deliver at short intervals, and kill themselves at a step of that work when told to."""

from collections.abc import Sequence
from pathlib import Path

from profilesvc.settings import Settings
from support.forks import Fork
from support.served_process import Start, forked

# Where a process kills itself: before or after a call of a function.
STEPS = (
    "after profilesvc.storage.notify.watches:flip",  # in the transaction of the event
    "before profilesvc.storage.events:_append",
    "after profilesvc.storage.events:_append",  # the last statement before the commit
    "after profilesvc.operations.notify.sweep:_publish_of_owner",  # committed
    "after profilesvc.storage.notify.deliveries:claim",  # in the transaction of the claim
    "after profilesvc.delivery.worker:Worker._claim",  # committed, and not sent
    "before profilesvc.delivery.transport:Transport.post",
    "after profilesvc.delivery.transport:Transport.post",  # accepted by the receiver, and not recorded
    "before profilesvc.delivery.smtp:Mailer.send",
    "after profilesvc.delivery.smtp:Mailer.send",
    "before profilesvc.delivery.worker:Worker._record",
    "after profilesvc.delivery.worker:Worker._record",
)
# The intervals are short, so that a kill costs a second and not a minute. A claim stays longer than a round of mails.
_BEFORE = """
import dataclasses, functools, importlib, os, pathlib, signal
os.environ.update({environment!r})
from profilesvc.database import leases
from profilesvc.delivery import mail, worker
from profilesvc.domain.time import SECOND
from profilesvc.operations import schedule
leases.LEASE_SECONDS = 1.0
worker.LEASE, mail._ROUND = 4 * SECOND, 2 * SECOND
find_jobs = schedule.jobs
schedule.jobs = lambda *parts: [
    dataclasses.replace(job, first=0.05, every=0.1) if job.name == "sweep" else job for job in find_jobs(*parts)
]
chosen = pathlib.Path("step")

def end_at(step):
    if chosen.exists() and chosen.read_text() == step:
        os.kill(os.getpid(), signal.SIGKILL)

def wrap(place):
    module, _, path = place.partition(":")
    holder, name = importlib.import_module(module), path.rpartition(".")[2]
    for part in path.split(".")[:-1]:
        holder = getattr(holder, part)
    original = getattr(holder, name)

    @functools.wraps(original)
    async def wrapped(*arguments, **named):
        end_at("before " + place)
        result = await original(*arguments, **named)
        end_at("after " + place)
        return result

    setattr(holder, name, wrapped)

for each in {places!r}:
    wrap(each)
"""


def sweeping(environment: dict[str, str]) -> Start:
    """Return how such a process starts, with more of the environment."""
    before = _BEFORE.format(environment=environment, places=sorted({step.split()[1] for step in STEPS}))

    def start(program: str, arguments: Sequence[str], settings: Settings) -> Fork:
        return forked(before + program, arguments, settings)

    return start


def choose(settings: Settings, step: str | None) -> None:
    """Choose at which step the process of these settings kills itself; None: at none."""
    chosen = Path(settings.data_dir) / "step"
    if step is None:
        chosen.unlink(missing_ok=True)
        return
    written = chosen.with_suffix(".new")
    written.write_text(step)
    written.rename(chosen)  # so that the process never reads half of it
