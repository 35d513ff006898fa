"""The sessions of a user: every user token that was issued, since when, from where, and its end.

A session ends by what every request reads anyway: the revocation of its token, or the epoch of the user.
"""

import re
from typing import NamedTuple, cast

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import AUTH_INVALID_TOKEN, NOT_FOUND
from profilesvc.domain import agents
from profilesvc.domain.agents import Agent
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.request import current_request, ip_prefix
from profilesvc.domain.time import HOUR, SECOND
from profilesvc.services import audit
from profilesvc.services.context import Caller, Services
from profilesvc.storage import revocations, sessions, users
from profilesvc.storage.sessions import Session
from profilesvc.storage.users import UserState
from profilesvc.tokens.claims import DASHBOARD, UserClaims
from profilesvc.tokens.signer import random_id

MOST = 50  # shown at once; programs that sign in often can have more
_WRITTEN_AFTER = HOUR
_ID = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)


class SessionView(NamedTuple):
    """A session as its user sees it. `is_this` marks the one that asks."""

    row: Session
    is_this: bool


class SessionList(NamedTuple):
    """The sessions that were used last, this one first, and how many there are in all."""

    rows: list[SessionView]
    total: int


async def start(services: Services, session: AsyncSession, user: UserState, user_agent: str = "") -> str:
    """Store a new session in the transaction of a sign-in, and return the id for its token."""
    now, session_id = services.clock.now(), random_id(services.entropy)
    until = now + services.settings.tokens.user_ttl_seconds * SECOND
    agent = agents.summary(user_agent)
    await sessions.put(session, _row(user.id, session_id, now, now, until, user.epoch, agent))
    return session_id


def _row(
    owner_id: int, session_id: str, created_at: int, used_at: int, until: int, epoch: int, agent: Agent
) -> Session:
    address = current_request().address
    prefix = ip_prefix(address)
    return Session(owner_id, session_id, created_at, used_at, until, epoch, prefix, *agent)


def record_use(services: Services, claims: UserClaims, used_at: int | None) -> None:
    """Store when a session was last used, in a task and at most once an hour.

    `used_at` is what is stored. It is None for a token that was issued before sessions were stored.
    """
    now = services.clock.now()
    if used_at is None or used_at <= now - _WRITTEN_AFTER:
        services.background.spawn(_store_use(services, _token_session(claims, now)))


async def _store_use(services: Services, row: Session) -> None:
    async with services.storage.write() as session:
        await sessions.put(session, row)


def _token_session(claims: UserClaims, now: int) -> Session:
    """Return the session of a token that may have no row."""
    created_at, until = claims["iat"] * SECOND, claims["exp"] * SECOND
    return _row(int(claims["sub"]), claims["jti"], created_at, now, until, claims["epoch"], Agent())


def _claims(services: Services, token: str) -> UserClaims:
    """Return the claims of the user token that has just been admitted."""
    return cast(UserClaims, services.signer.verify(token, "at+jwt", services.clock.now()))


async def list_live(services: Services, caller: Caller, token: str) -> SessionList:
    """Return the caller's sessions; `token` is that of the one that asks."""
    now, this = services.clock.now(), _token_session(_claims(services, token), services.clock.now())
    async with services.storage.read() as session:
        rows, total = await sessions.live(session, caller.owner_id, this.epoch, now, MOST)
    own = next((row for row in rows if row.id == this.id), this)
    others = [SessionView(row, is_this=False) for row in rows if row.id != this.id]
    return SessionList([SessionView(own, is_this=True), *others][:MOST], max(total, len(others) + 1))


async def started_at(services: Services, caller: Caller, token: str) -> int:
    """Return when the user of a session signed in, in milliseconds."""
    claims = _claims(services, token)
    async with services.storage.read() as session:
        row = await sessions.find(session, caller.owner_id, claims["jti"])
    return claims["iat"] * SECOND if row is None else row.created_at


async def end(services: Services, caller: Caller, session_id: str) -> None:
    """End a session of the caller, in every process from its next request on.

    Raises:
        ServiceError: NOT_FOUND, also for another user's session.
    """
    now, owner_id = services.clock.now(), caller.owner_id
    async with services.storage.write() as session:
        row = await sessions.find(session, owner_id, session_id) if _ID.fullmatch(session_id) else None
        if row is None:
            raise ServiceError(NOT_FOUND, "There is no such session.")
        if await revocations.add(session, owner_id, "token", row.id, now, row.expires_at):
            agent = {"browser": row.browser, "system": row.system}
            await audit.record(services, session, "user.session_ended", owner_id, None, **agent)


class Renewed(NamedTuple):
    """The token that continues a session, and for how many seconds."""

    token: str
    seconds: int


async def end_others(services: Services, caller: Caller, token: str) -> Renewed:
    """End all sessions and user tokens of the caller but this one, which continues with the token that is returned.

    The epoch ends them, because a token that was issued before sessions were stored may have no row.

    Raises:
        ServiceError: AUTH_INVALID_TOKEN if this session has ended since the request was admitted.
    """
    now, claims = services.clock.now(), _claims(services, token)
    session_id = random_id(services.entropy)
    async with services.storage.write() as session:
        user, until = await users.lock_user(session, caller.owner_id), claims["exp"] * SECOND
        is_first = await revocations.add(session, user.id, "token", claims["jti"], now, until)
        if not is_first or user.epoch != claims["epoch"]:
            raise ServiceError(AUTH_INVALID_TOKEN, "This session has ended. Sign in again.")
        await users.raise_user_epoch(session, user.id)
        this = await sessions.find(session, user.id, claims["jti"]) or _token_session(claims, now)
        await sessions.put(session, this._replace(id=session_id, epoch=user.epoch + 1, used_at=now))
        await audit.record(services, session, "user.session_ended", user.id, others=True)
    seconds = claims["exp"] - now // SECOND
    return Renewed(await sign(services, user.id, user.epoch + 1, session_id, seconds), seconds)


async def sign(services: Services, owner_id: int, epoch: int, session_id: str, seconds: int) -> str:
    """Return the token of a session, which is valid for so many seconds, unless the session or the epoch ends."""
    await services.signing_keys.reload()
    claims = {"sub": str(owner_id), "client_id": DASHBOARD, "scope": "user", "epoch": epoch, "jti": session_id}
    return services.signer.issue("at+jwt", claims, services.clock.now(), seconds)
