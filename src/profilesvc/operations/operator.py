"""The operator's commands on users, their businesses and their plans."""

from typing import NamedTuple

from profilesvc.contract.errors import CONFLICT, NOT_FOUND, VALIDATION_ERROR
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.permissions import ALL
from profilesvc.services.context import Caller, Services
from profilesvc.services.holds import fit_plan
from profilesvc.services.users import clean, clean_name, find_plan, find_user, insert_user
from profilesvc.storage import identities, keys, locations, users
from profilesvc.storage.users import UserState

_SUBJECT_LIMIT = 255


class PlanChange(NamedTuple):
    """The result of a plan change: the client ids of keys that it deactivates, and of keys that it reactivates."""

    email: str
    plan: str
    held: list[str]
    lifted: list[str]


class Login(NamedTuple):
    """A login of an identity provider and its user."""

    email: str
    issuer: str
    subject: str


async def add_user(services: Services, email: str, name: str | None = None, plan: str | None = None) -> UserState:
    """Add a user, by default on the catalogue's first plan.

    Raises:
        ServiceError: VALIDATION_ERROR, NOT_FOUND for an unknown plan, CONFLICT.
    """
    async with services.storage.write() as session:
        return await insert_user(services, session, email, name, plan)


async def list_users(services: Services) -> list[UserState]:
    """Return all users, oldest first."""
    async with services.storage.read() as session:
        return await users.list_users(session)


async def suspend(services: Services, email: str) -> UserState:
    """Reject a user and all their keys, and send none of their events, until the user is resumed.

    Repeating it has no effect.

    Raises:
        ServiceError: NOT_FOUND.
    """
    return await _switch(services, email, suspended_at=services.clock.now())


async def resume(services: Services, email: str) -> UserState:
    """Accept a suspended user and their keys again.

    Raises:
        ServiceError: NOT_FOUND.
    """
    return await _switch(services, email, suspended_at=None)


async def _switch(services: Services, email: str, suspended_at: int | None) -> UserState:
    async with services.storage.write() as session:
        user = await users.lock_user(session, (await find_user(session, email)).id)
        if (user.suspended_at is None) is not (suspended_at is None):
            await users.update_user(session, user.id, suspended_at=suspended_at)
            user = user._replace(suspended_at=suspended_at)
        return user


async def logout(services: Services, email: str) -> UserState:
    """End every user token of the user.

    Raises:
        ServiceError: NOT_FOUND.
    """
    async with services.storage.write() as session:
        user = await find_user(session, email)
        await users.raise_user_epoch(session, user.id)
        return user


async def link(services: Services, email: str, subject: str, issuer: str | None = None) -> Login:
    """Link a login of the identity provider to the user.

    Raises:
        ServiceError: NOT_FOUND, VALIDATION_ERROR, CONFLICT.
    """
    subject, issuer = clean("The subject", subject, _SUBJECT_LIMIT), _issuer(services, issuer)
    async with services.storage.write() as session:
        user = await find_user(session, email)
        if not await identities.link(session, issuer, subject, user.id, services.clock.now()):
            raise ServiceError(CONFLICT, f"{subject} of {issuer} is already linked. Unlink it first.")
        return Login(user.email, issuer, subject)


async def unlink(services: Services, subject: str, issuer: str | None = None) -> Login:
    """Remove a link. Tokens stay valid until they expire or the user is logged out.

    Raises:
        ServiceError: NOT_FOUND, VALIDATION_ERROR.
    """
    issuer = _issuer(services, issuer)
    async with services.storage.write() as session:
        user = await identities.user_of(session, issuer, subject)
        if user is None:
            raise ServiceError(NOT_FOUND, f"{subject} of {issuer} is not linked to a user.")
        await identities.unlink(session, issuer, subject)
        return Login(user.email, issuer, subject)


def _issuer(services: Services, issuer: str | None) -> str:
    if issuer is None and services.identity is None:
        raise ServiceError(VALIDATION_ERROR, "No identity provider is configured. Name the issuer.")
    configured = "" if services.identity is None else services.identity.issuer
    return clean("The issuer", configured if issuer is None else issuer, _SUBJECT_LIMIT)


async def add_business(services: Services, email: str, name: str) -> int:
    """Add a business of a user and return its id.

    Raises:
        ServiceError: NOT_FOUND, VALIDATION_ERROR.
    """
    name = clean_name(name)
    async with services.storage.write() as session:
        user = await find_user(session, email)
        return await users.add_business(session, user.id, name, services.clock.now())


async def list_businesses(services: Services, email: str | None = None) -> list[tuple[int, int, str]]:
    """Return (id, user id, name) of one user's businesses, or of all.

    Raises:
        ServiceError: NOT_FOUND.
    """
    async with services.storage.read() as session:
        owner_id = None if email is None else (await find_user(session, email)).id
        return await users.list_businesses(session, owner_id)


async def assign_plan(services: Services, email: str, plan: str) -> PlanChange:
    """Change a user's plan and, in the same transaction, the holds on keys of locations beyond the plan.

    The locations that were assigned first stay within the plan (D-27).

    Raises:
        ServiceError: NOT_FOUND for an unknown user or plan.
    """
    chosen = find_plan(services, plan)
    async with services.storage.write() as session:
        user = await users.lock_user(session, (await find_user(session, email)).id)
        await users.update_user(session, user.id, plan=chosen.name)
        effect = await fit_plan(services, session, user._replace(plan=chosen.name))
    return PlanChange(user.email, chosen.name, effect.held, effect.lifted)


async def unassign_location(services: Services, name: str) -> list[str]:
    """Unassign a location from its business and return the client ids of keys that this reactivates.

    This frees a location of the plan, so the plan may no longer hold back another location's keys (D-27).

    Raises:
        ServiceError: NOT_FOUND for an unknown or unassigned location, CONFLICT while it has live keys.
    """
    async with services.storage.write() as session:
        row = await locations.state_by_name(session, name)
        if row is None or row.business_id is None:
            raise ServiceError(NOT_FOUND, f"There is no assigned location {name}.")
        user = await users.lock_user(session, row.owner_id)
        if await keys.count_live(session, row.owner_id, name, services.clock.now()):
            raise ServiceError(CONFLICT, f"{name} has live keys. Revoke them first.")
        await locations.change(session, row.owner_id, name, business_id=None, assigned_at=None)
        return (await fit_plan(services, session, user)).lifted


async def act_for(services: Services, email: str) -> Caller:
    """Return the user as a caller with the rights of their token.

    Raises:
        ServiceError: NOT_FOUND.
    """
    async with services.storage.read() as session:
        user = await find_user(session, email)
    return Caller(user.id, find_plan(services, user.plan), frozenset(ALL))
