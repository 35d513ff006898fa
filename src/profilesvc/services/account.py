"""The account of a user: its profile, its sign-ins, the end of all sessions, and a copy of its data."""

from typing import NamedTuple
from urllib.parse import urlsplit

import orjson

from profilesvc.contract.audit import AuditEntry
from profilesvc.contract.json import JsonObject
from profilesvc.domain.audit import Wanted
from profilesvc.domain.time import iso
from profilesvc.services import alerts, audit, keys, overview, provider_connections, webhooks
from profilesvc.services.context import Caller, Services
from profilesvc.storage import users

_SIGN_INS = 10
_MOST_EVENTS = 2_000
_PIECE = 100


class Account(NamedTuple):
    """Who the user is, and when and from which networks the user signed in last, newest first."""

    name: str
    email: str
    sign_ins: list[AuditEntry]


async def read(services: Services, caller: Caller) -> Account:
    name, email = await overview.person(services, caller)
    found, _ = await audit.search(services, caller.owner_id, Wanted(events=["user.login"]), None, _SIGN_INS)
    return Account(name, email, found)


async def sign_out_everywhere(services: Services, caller: Caller) -> None:
    """End all sessions and user tokens of the caller, also that of this request. Keys and their tokens stay."""
    async with services.storage.write() as session:
        await users.lock_user(session, caller.owner_id)
        await users.raise_user_epoch(session, caller.owner_id)
        await audit.record(services, session, "user.signed_out", caller.owner_id)


async def export(services: Services, caller: Caller) -> JsonObject:
    """Return what the service stores about the caller, as JSON, without secrets and addresses that work like one.

    The audit trail is limited to its newest entries; `audit_is_whole` shows whether there are more. What the provider
    stores, such as posts and reviews, is not included.
    """
    name, email = await overview.person(services, caller)
    events, is_whole = await _trail(services, caller)
    hooks = (await webhooks.list_all(services, caller)).webhooks
    return {
        "exported_at": iso(services.clock.now()),
        "user": {"id": caller.owner_id, "name": name, "email": email, "plan": caller.plan.name},
        "businesses": [each.model_dump() for each in (await keys.businesses(services, caller)).businesses],
        "sites": [_site(site) for site in await overview.sites(services, caller)],
        "keys": [each.model_dump() for each in await overview.all_keys(services, caller, ended=True)],
        "provider_connections": [
            each.model_dump() for each in (await provider_connections.list_all(services, caller)).connections
        ],
        "alerts": [each.model_dump() for each in (await alerts.list_all(services, caller)).alerts],
        "webhooks": [{**each.model_dump(exclude={"url"}), "host": urlsplit(each.url).hostname} for each in hooks],
        "audit": [each.model_dump() for each in events],
        "audit_is_whole": is_whole,
    }


def _site(site: overview.SiteView) -> JsonObject:
    row = site.row
    return {
        "location": row.name,
        "title": site.title,
        "business": row.business_name,
        "sync_enabled": row.sync_enabled,
        "profile": orjson.loads(row.profile),
        "profile_read_at": iso(row.profile_read_at),
    }


async def _trail(services: Services, caller: Caller) -> tuple[list[AuditEntry], bool]:
    events: list[AuditEntry] = []
    before = None
    while len(events) < _MOST_EVENTS:
        found, before = await audit.search(services, caller.owner_id, Wanted(), before, _PIECE)
        events += found
        if before is None:
            return events, True
    return events, False
