"""The values that the worker and the senders of each kind of channel exchange."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from profilesvc.contract.events import PublishedEvent
from profilesvc.services.context import Services
from profilesvc.storage.events import Subject
from profilesvc.storage.notify.channels import Channel


class Due(NamedTuple):
    """A delivery to send now. `event` is None for a test; `tries` counts the attempts before this one.

    `created_at` is the instant at which the delivery was queued.

    `subject` names what the event is about, for a channel that a person reads.
    """

    owner_id: int
    id: int
    channel: Channel
    event: PublishedEvent | None
    created_at: int
    now: int
    tries: int
    subject: Subject = Subject()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt, as its owner sees it. `at` is an instant; `response` is the start of the response's body."""

    at: int
    status: int | None = None
    error: str | None = None
    duration_ms: int = 0
    response: str | None = None


@dataclass(frozen=True, slots=True)
class Delivered:
    """The receiver accepted it."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Retry:
    """The attempt failed; the next one follows by the schedule, not before an instant if the receiver names one.

    A webhook is disabled if all attempts of five days failed, and an e-mail address is not, because the mail server may
    be the cause. Failures of our own do not count.
    """

    attempt: Attempt
    not_before: int = 0
    blames_receiver: bool = True


@dataclass(frozen=True, slots=True)
class Postponed:
    """Nothing was sent, because the owner wants it later. It does not count as an attempt."""

    until: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """It is not sent; `reason` is what the owner sees."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed and is not repeated. With `disable` the channel gets nothing more, for this reason."""

    attempt: Attempt
    disable: str | None = None


Outcome = Delivered | Retry | Postponed | Skipped | Failed
# Sends the deliveries of one channel, several only to an e-mail address: all that are due. It adds each outcome to the
# last argument, by the number of the delivery, as soon as it has sent a message, because it may be interrupted. The
# result is the outcome of all others. What it raises counts as Retry.
Sender = Callable[[Services, list[Due], dict[int, Outcome]], Awaitable[Outcome]]
