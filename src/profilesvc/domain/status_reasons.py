"""Why a site is not connected as expected: one order of all that is known, for status, events, mails and pages."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from profilesvc.contract.connection import ReasonHint
from profilesvc.domain.heartbeats import state

Rejection = Literal["wrong_secret", "revoked", "origin_not_allowed"]  # `reason` in the log of requests
REJECTIONS: tuple[Rejection, ...] = get_args(Rejection)


class Reason(NamedTuple):
    """What the owner should check first, and since when that is known, in milliseconds; None: nothing."""

    hint: ReasonHint | None
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a key. Instants in milliseconds.

    `secret_at` is when the newest secret was made, and `retiring_until` when the one before ends or has ended.
    `rejection` is the newest rejected request of the key.
    """

    created_at: int
    is_held: bool = False
    last_heartbeat_at: int | None = None
    last_used_at: int | None = None
    mismatch: bool = False
    secret_at: int | None = None
    retiring_until: int | None = None
    rejection: tuple[Rejection, int] | None = None


def reason(known: Known, now: int) -> Reason:
    """Return what the owner should check first. What is certain comes before what is only likely.

    Anyone can send a wrong secret or use another page, so neither says anything of a site that is online. A token that
    was revoked had been issued to the site, so it does.
    """
    contact = max(known.last_heartbeat_at or 0, known.last_used_at or 0)
    rejection, rejected_at = known.rejection or (None, 0)
    if rejected_at < contact:
        rejection = None
    connection = state(known.last_heartbeat_at, now)
    if known.is_held:
        return Reason("deactivated")
    if _is_changed(known, contact, now):
        return Reason("secret_changed", known.secret_at)
    if rejection == "revoked":
        return Reason("token_revoked", rejected_at)
    if rejection == "wrong_secret" and connection != "online":
        return Reason("secret_rejected", rejected_at)
    if rejection == "origin_not_allowed" and connection != "online":
        return Reason("origin_not_allowed", rejected_at)
    if known.last_heartbeat_at is None:
        return Reason("never_connected")
    if known.mismatch:
        return Reason("site_mismatch")
    return Reason(None) if connection == "online" else Reason("was_online", known.last_heartbeat_at)


def _is_changed(known: Known, contact: int, now: int) -> bool:
    """Return whether the secret was replaced since the last contact, and no earlier one is valid."""
    if known.secret_at is None or known.secret_at <= known.created_at or contact == 0:
        return False
    return contact <= known.secret_at and (known.retiring_until or 0) <= now


def rejection_of(logged: str | None) -> tuple[Rejection, int] | None:
    """Return a rejection as a query has joined it: its reason and its instant."""
    name, _, at = (logged or "").partition(" ")
    return next(((each, int(at)) for each in REJECTIONS if each == name), None)
