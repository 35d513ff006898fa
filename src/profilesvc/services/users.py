"""Create users, for the operator and at a person's first login."""

import re

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import CONFLICT, NOT_FOUND, VALIDATION_ERROR
from profilesvc.contract.visible import has_visible_text
from profilesvc.database.statements import Executor
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.hosts import mailbox
from profilesvc.domain.plans import Plan
from profilesvc.services.context import Services
from profilesvc.storage import users
from profilesvc.storage.users import UserState

NAME_LIMIT = 200
_EMAIL_LIMIT = 320
# The spaces of other scripts, the joiners of Persian and of Indian scripts, and the marks of a direction.
_OF_SCRIPTS = re.compile("[\u00a0\u1680\u2000-\u200a\u200c-\u200f\u202f\u205f\u3000\u061c]")


async def insert_user(
    services: Services, session: AsyncSession, email: str, name: str | None, plan_name: str | None = None
) -> UserState:
    """Add a user within a transaction, by default on the catalogue's first plan.

    Raises:
        ServiceError: VALIDATION_ERROR for the e-mail address or the name, NOT_FOUND for the plan, CONFLICT if a user
            already has the address.
    """
    email = clean("The e-mail address", email, _EMAIL_LIMIT).lower()
    try:
        mailbox(email, ascii_only=False)
    except ValueError as error:
        raise ServiceError(VALIDATION_ERROR, f"{email} is not an e-mail address: it {error}.") from None
    name = clean_name(email.partition("@")[0] if name is None else name)
    chosen = next(iter(services.plans.values())) if plan_name is None else find_plan(services, plan_name)
    user_id = await users.add_user(session, email, name, chosen.name, services.clock.now())
    if user_id is None:
        raise ServiceError(CONFLICT, f"The user {email} already exists.")
    return await users.lock_user(session, user_id)


def clean(label: str, text: str, limit: int) -> str:
    """Return the text without spaces around it.

    Raises:
        ServiceError: VALIDATION_ERROR unless it has 1 to `limit` printable characters.
    """
    text = text.strip()
    if not (1 <= len(text) <= limit and text.isprintable()):
        raise ServiceError(VALIDATION_ERROR, f"{label} must have 1 to {limit} printable characters.")
    return text


def clean_name(name: str) -> str:
    """Return a name of any script without spaces around it.

    Raises:
        ServiceError: VALIDATION_ERROR unless it has 1 to 200 printable characters, one of them visible.
    """
    name = name.strip()
    clean("The name", _OF_SCRIPTS.sub("-", name) if has_visible_text(name) else "", NAME_LIMIT)
    return name


def is_blank(name: str) -> bool:
    """Return whether nothing of a name can be seen."""
    return not _OF_SCRIPTS.sub("", name).strip()


async def find_user(session: Executor, email: str) -> UserState:
    """Return a user by e-mail address.

    Raises:
        ServiceError: NOT_FOUND.
    """
    user = await users.user_by_email(session, email)
    if user is None:
        raise ServiceError(NOT_FOUND, f"There is no user {email}.")
    return user


def find_plan(services: Services, name: str) -> Plan:
    """Return a plan of the catalogue.

    Raises:
        ServiceError: NOT_FOUND if the catalogue has no such plan.
    """
    if name not in services.plans:
        available = ", ".join(services.plans)
        raise ServiceError(NOT_FOUND, f"There is no plan {name}; the catalogue has {available}.")
    return services.plans[name]
