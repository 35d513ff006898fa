"""The deletion of an account: ended at once, deleted in pieces, finished by a job.

The request commits the end of all sign-ins, tokens, keys and messages. What follows can be interrupted at any moment:
each pass deletes what it finds, and the account is finished when a pass finds nothing, minutes after the request, so
that no request, and no consent at the provider, that had started before can leave a row.
"""

import logging
from typing import NamedTuple

from profilesvc.contract.errors import CONFLICT, NOT_FOUND
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.keys import secret_digest
from profilesvc.domain.time import DAY, MINUTE, iso
from profilesvc.services import audit, sessions
from profilesvc.services.context import Caller, Services
from profilesvc.services.jobs import run_alone
from profilesvc.services.logins import consent as provider_consent
from profilesvc.services.logins import logins
from profilesvc.services.users import find_user
from profilesvc.storage import logins as stored_logins
from profilesvc.storage import users
from profilesvc.storage.accounts import deletions
from profilesvc.storage.accounts.deletions import Deletion

log = logging.getLogger("profilesvc")
FRESH = 10 * MINUTE  # since the sign-in, for a deletion by the owner
SETTLED = provider_consent.STATE_MS + 5 * MINUTE  # longer than a consent that had started, and than any request
_NOTICE = DAY  # how long the last message may wait for the mail server
_RETENTION = audit.RETENTION + 31 * DAY  # the audit trail is deleted by the month
_MOST = 1_000  # accounts of a round


class Plan(NamedTuple):
    """The rows that a deletion would delete, by table. `is_fresh` means that the owner has just signed in."""

    email: str
    rows: dict[str, int]
    is_fresh: bool


async def plan(services: Services, caller: Caller, token: str) -> Plan:
    """Return what the deletion of the caller's account would delete; `token` is that of the caller's session."""
    email, is_fresh = await _signed_in(services, caller, token)
    async with services.storage.read() as session:
        rows = await deletions.rows_by_table(session, caller.owner_id)
    return Plan(email, rows, is_fresh)


async def _signed_in(services: Services, caller: Caller, token: str) -> tuple[str, bool]:
    """Return the address of the caller, and whether the sign-in is recent."""
    started_at = await sessions.started_at(services, caller, token)
    async with services.storage.read() as session:
        user = await users.user(session, caller.owner_id)
    assert user is not None, "the caller was just admitted"
    return user.email, services.clock.now() - started_at <= FRESH


async def request_own(services: Services, caller: Caller, token: str, email: str) -> None:
    """Delete the caller's account. The caller has signed in just now and has typed the e-mail address.

    Raises:
        ServiceError: CONFLICT if the sign-in is too old; VALIDATION_ERROR for another address.
    """
    own, is_fresh = await _signed_in(services, caller, token)
    if not is_fresh:
        raise ServiceError(CONFLICT, "Your sign-in is too old for this. Sign in again.")
    if email.strip().lower() != own:
        raise invalid("body", "email", f"must be {own}")
    await request(services, caller.owner_id)


async def request(services: Services, owner_id: int) -> None:
    """End an account: its sessions, keys, tokens and messages. Repeating it has no effect."""
    now = services.clock.now()
    async with services.storage.write() as session:
        user = await users.lock_user(session, owner_id)
        digest = secret_digest(user.email, services.pepper)
        if not await deletions.request(session, user, digest, now):
            return
        if services.settings.mail.sends(services.settings.production):
            await deletions.add_notice(session, owner_id, user.email, now)
        await audit.record(services, session, "user.deletion_requested", owner_id, email_digest=digest)
    services.due.set()
    log.warning("account %d: its deletion was requested", owner_id)


class Deleted(NamedTuple):
    """A deletion by the operator: the rows by table, and since when the account has ended (None: it has not)."""

    email: str
    rows: dict[str, int]
    requested_at: str | None


async def delete_user(services: Services, email: str, *, dry_run: bool = False) -> Deleted:
    """Delete the account of a user for the operator. With `dry_run` only count what would be deleted.

    Raises:
        ServiceError: NOT_FOUND.
    """
    async with services.storage.read() as session:
        past = await deletions.last_deletion(session, secret_digest(email.strip().lower(), services.pepper))
        try:
            user = await find_user(session, email)
        except ServiceError:
            if past is None:
                raise
            raise ServiceError(NOT_FOUND, f"The account of {email} was deleted on {iso(past.requested_at)}.") from None
        rows = await deletions.rows_by_table(session, user.id)
    if dry_run:
        return Deleted(user.email, rows, None)
    await request(services, user.id)
    await run_alone(services, "deletions", run_once)
    async with services.storage.read() as session:
        done = await deletions.find(session, user.id)
    assert done is not None, "it was requested"
    return Deleted(user.email, rows, iso(done.requested_at))


async def run_once(services: Services) -> None:
    """Continue all deletions, and forget those whose audit trail is old."""
    async with services.storage.read() as session:
        unfinished = await deletions.unfinished(session, _MOST)
        old = await deletions.finished(session, services.clock.now() - _RETENTION, _MOST)
    for deletion in unfinished:
        await _pass(services, deletion)
    for deletion in old:
        services.storage.renew()
        async with services.storage.write() as session:
            await deletions.forget(session, deletion.owner_id)


async def _pass(services: Services, deletion: Deletion) -> None:
    """Delete what there is of an account, each piece in a transaction of its own."""
    now, owner_id = services.clock.now(), deletion.owner_id
    async with services.storage.read() as session:
        rows = await stored_logins.listing(session, owner_id)
    for row in rows:
        services.storage.renew()
        async with services.storage.write() as session:
            await logins.withdraw(services, session, row)  # another round withdraws the consent
    services.storage.renew()
    async with services.storage.read() as session:
        is_recent = now < deletion.requested_at + _NOTICE
        notice = await deletions.awaited_notice(session, owner_id) if is_recent else None
    try:
        await _delete(services, owner_id, notice)
    except deletions.Blocked as blocked:
        log.warning("account %d: a new row refers to %s, which the next round deletes", owner_id, blocked)
        return
    await _finish(services, deletion)


async def _delete(services: Services, owner_id: int, notice: int | None) -> None:
    more = True
    while more:
        services.storage.renew()
        async with services.storage.write() as session:
            more = await deletions.pseudonymise_piece(session, owner_id)
    for table in deletions.in_order():
        more = True
        while more:
            services.storage.renew()
            async with services.storage.write() as session:
                more = await deletions.delete_piece(session, table, owner_id, notice)


async def _finish(services: Services, deletion: Deletion) -> None:
    now, owner_id = services.clock.now(), deletion.owner_id
    if now < deletion.requested_at + SETTLED:
        return
    if not await services.storage.empty_log():  # Litestream always reads it, so the deletion must not wait
        log.warning("account %d: a reader needs the log of the database, which later writes overwrite", owner_id)
    async with services.storage.write() as session:
        if any((await deletions.rows_by_table(session, owner_id)).values()):
            return
        await deletions.finish(session, owner_id, now)
        await audit.record(services, session, "user.deleted", owner_id)
    log.warning("account %d: its data is deleted", owner_id)
