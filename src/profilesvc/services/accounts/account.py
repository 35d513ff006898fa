"""The account of a user: its profile, its sign-ins, and the end of all sessions."""

from typing import NamedTuple

from profilesvc.contract.audit import AuditEntry, Wanted
from profilesvc.services import audit
from profilesvc.services.context import Caller, Services
from profilesvc.services.insight import overview
from profilesvc.storage import users

_SIGN_INS = 10


class Account(NamedTuple):
    """The user, and the last sign-ins with their networks, newest first."""

    name: str
    email: str
    sign_ins: list[AuditEntry]


async def read(services: Services, caller: Caller) -> Account:
    name, email = await overview.person(services, caller)
    sign_ins, _ = await audit.search(services, caller.owner_id, Wanted(events=["user.login"]), None, _SIGN_INS)
    return Account(name, email, sign_ins)


async def sign_out_everywhere(services: Services, caller: Caller) -> None:
    """End all sessions and user tokens of the caller, also that of this request. Keys and their tokens stay."""
    async with services.storage.write() as session:
        await users.lock_user(session, caller.owner_id)
        await users.raise_user_epoch(session, caller.owner_id)
        await audit.record(services, session, "user.signed_out", caller.owner_id)
