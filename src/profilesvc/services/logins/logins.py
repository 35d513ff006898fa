"""Owners' logins at the provider: list, look, import locations, disconnect (docs/connections.md)."""

import logging
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import PLAN_RESTRICTION
from profilesvc.contract.events import ProviderConnectionChanged, ProviderConnectionStatus
from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider_connections import (
    FoundAccount,
    FoundLocation,
    ProviderConnectionDetail,
    ProviderConnectionDisconnected,
    ProviderConnectionEntry,
    ProviderConnectionImport,
    ProviderConnectionImported,
    ProviderConnectionList,
    RefusedLocation,
)
from profilesvc.contract.stored import as_stored
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.profiles import at
from profilesvc.domain.request import low_priority
from profilesvc.domain.time import DAY, HOUR, MINUTE, iso, iso_or_none
from profilesvc.domain.verification import has_flag
from profilesvc.provider.port import Granted, ProviderError
from profilesvc.services import audit, events
from profilesvc.services.access import missing
from profilesvc.services.context import Caller, Services
from profilesvc.services.drafts import photos
from profilesvc.services.feed import feed
from profilesvc.services.holds import fit_plan, hold
from profilesvc.services.locations import assign_within_plan
from profilesvc.services.logins import location_moves
from profilesvc.services.logins.importing import Imported, store_imported
from profilesvc.services.provider_errors import raising_provider_failure
from profilesvc.services.provider_logins import consents, page_of, provider_of, purpose
from profilesvc.storage import holds, locations, provider_logins, users
from profilesvc.storage import logins as table
from profilesvc.storage.drafts import drafts
from profilesvc.storage.locations import Place
from profilesvc.storage.provider_logins import ProviderLogin
from profilesvc.storage.tables.columns import number_of

_REVOKE_PAUSES = (MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY)  # between attempts to withdraw a consent
log = logging.getLogger("profilesvc")


async def list_all(services: Services, caller: Caller) -> ProviderConnectionList:
    """Return the logins that the caller has connected."""
    async with services.storage.read() as session:
        rows = await table.listing(session, caller.owner_id)
        counts = await table.locations_by_login(session, caller.owner_id)
    return ProviderConnectionList(connections=[_entry(services, row, counts.get(row.id, 0)) for row in rows])


def _entry(services: Services, row: ProviderLogin, count: int) -> ProviderConnectionEntry:
    return as_stored(
        ProviderConnectionEntry,
        {
            "id": row.id,
            "email": row.email,
            "state": row.state,
            "scopes": row.scopes.split(),
            "locations": count,
            "created_at": iso(row.created_at),
            "last_used_at": iso_or_none(row.last_used_at),
            "last_error": row.last_error,
            "last_error_at": iso_or_none(row.last_error_at),
            "reconnect_url": page_of(services),
        },
    )


async def own(services: Services, caller: Caller, connection_id: str) -> tuple[ProviderLogin, int]:
    """Return a connection of the caller and the number of its locations.

    Raises:
        ServiceError: NOT_FOUND, also for another owner's connection and for one that is disconnected.
    """
    async with services.storage.read() as session:
        row = await provider_logins.find(session, caller.owner_id, number_of(connection_id))
        if row is None or row.state == "disconnected":
            raise missing("connection")
        return row, (await table.locations_by_login(session, caller.owner_id)).get(row.id, 0)


async def summary(services: Services, caller: Caller, connection_id: str) -> ProviderConnectionEntry:
    """Return a connection without asking the provider.

    Raises:
        ServiceError: NOT_FOUND.
    """
    return _entry(services, *await own(services, caller, connection_id))


async def get(services: Services, caller: Caller, connection_id: str) -> ProviderConnectionDetail:
    """Return a connection with the accounts and locations that it sees now.

    Raises:
        ServiceError: NOT_FOUND, PROVIDER_API_ERROR.
    """
    row, count = await own(services, caller, connection_id)
    accounts = await _offered(services, row)
    names = [profile["name"] for _, profiles in accounts for profile in profiles]
    async with services.storage.read() as session:
        owners = await locations.owners_of(session, names)
    listed = [
        FoundAccount(
            name=account["name"],
            title=_text(account.get("accountName")),
            type=_text(account.get("type")),
            locations=[_location(account["name"], profile, owners, caller.owner_id) for profile in profiles],
        )
        for account, profiles in accounts
    ]
    entry = _entry(services, row, count).model_dump(warnings=False)
    return as_stored(ProviderConnectionDetail, {**entry, "accounts": listed})


async def _offered(services: Services, row: ProviderLogin) -> list[tuple[JsonObject, list[JsonObject]]]:
    """Return the accounts that a login sees, each with the profiles of its locations."""
    with raising_provider_failure():
        provider = provider_of(services, row)
        accounts = await provider.accounts()
        return [(account, await provider.locations(account["name"])) for account in accounts]


def _location(account: str, profile: JsonObject, owners: dict[str, int], owner_id: int) -> FoundLocation:
    lines, locality = (at(profile, f"storefrontAddress.{name}") for name in ("addressLines", "locality"))
    parts = [*(lines if isinstance(lines, list) else []), locality]
    owner = owners.get(profile["name"])
    return FoundLocation(
        name=profile["name"],
        title=_text(profile.get("title")),
        address=", ".join(part for part in parts if isinstance(part, str) and part),
        account=account,
        imported=owner == owner_id,
        available=owner in (None, owner_id),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


async def import_locations(
    services: Services, caller: Caller, connection_id: str, body: ProviderConnectionImport
) -> ProviderConnectionImported:
    """Import locations that a login sees. Repeating it updates them, and moves them to this login.

    Raises:
        ServiceError: VALIDATION_ERROR, NOT_FOUND, PROVIDER_API_ERROR.
    """
    _require_one(body)
    row, _ = await own(services, caller, connection_id)
    started = services.clock.now()
    with low_priority():
        accounts = await _offered(services, row)
    chosen = {
        profile["name"]: (account["name"], profile)
        for account, profiles in accounts
        for profile in profiles
        if _is_chosen(body, profile)
    }
    refused = {name: "not_found" for name in body.locations or [] if name not in chosen}
    await _require_business(services, caller, body)
    await location_moves.release(services, caller.owner_id, chosen)
    for name, (account, profile) in chosen.items():
        async with services.storage.write() as session:  # one each, so that a long import blocks no other writer
            is_verified = has_flag(profile, "hasVoiceOfMerchant")
            location = Imported(profile, Place(account, row.id), started, is_verified)
            problem = await _import(services, session, row, location, body)
        if problem:
            refused[name] = problem
    imported = [name for name in chosen if refused.get(name) != "unavailable"]
    if services.settings.notifications.enabled:
        services.background.spawn(feed.turn_on_all(services, row, sorted({chosen[name][0] for name in imported})))
    async with services.storage.write() as session:
        count = len(imported)
        await audit.record(services, session, "provider.imported", caller.owner_id, connection_id=row.id, count=count)
        business_id = body.business_id
        if body.business_name is not None:
            business_id = await users.business_named(session, caller.owner_id, body.business_name)
    entries = [RefusedLocation.model_validate({"name": name, "reason": why}) for name, why in refused.items()]
    return ProviderConnectionImported(imported=imported, refused=entries, business_id=business_id)


def _require_one(body: ProviderConnectionImport) -> None:
    if (body.locations is None) == (body.title_contains is None):
        raise invalid("body", "locations", "is required unless `title_contains` is sent, and must not be sent with it")
    if body.business_id is not None and body.business_name is not None:
        raise invalid("body", "business_name", "must not be sent with `business_id`")


def _is_chosen(body: ProviderConnectionImport, profile: JsonObject) -> bool:
    if body.locations is not None:
        return profile["name"] in body.locations
    return (body.title_contains or "").casefold() in _text(profile.get("title")).casefold()


async def _require_business(services: Services, caller: Caller, body: ProviderConnectionImport) -> None:
    if body.business_id is not None:
        async with services.storage.read() as session:
            if await users.business_name(session, body.business_id, caller.owner_id) is None:
                raise missing("business")


async def _import(
    services: Services, session: AsyncSession, row: ProviderLogin, location: Imported, body: ProviderConnectionImport
) -> str | None:
    """Import one location, and return why it was not, or not into the business. A new business is added with it.

    Raises:
        ServiceError: NOT_FOUND if the connection was disconnected meanwhile.
    """
    name, owner_id = location.name, row.owner_id
    await users.lock_user(session, owner_id)
    current = await provider_logins.find(session, owner_id, row.id)
    if current is None or current.state == "disconnected":  # while the provider was asked
        raise missing("connection")
    if not await locations.claim(session, owner_id, name):
        return "unavailable"
    await store_imported(services, session, owner_id, location)
    if body.business_id is None and body.business_name is None:
        return None
    stored = await locations.state(session, owner_id, name)
    assert stored is not None, "it was just stored"
    try:
        async with session.begin_nested():  # a new business that gets no location is not added
            await assign_within_plan(services, session, stored, await _business(services, session, owner_id, body))
    except ServiceError as error:
        return "plan" if error.kind is PLAN_RESTRICTION else "other_business"
    return None


async def _business(services: Services, session: AsyncSession, owner_id: int, body: ProviderConnectionImport) -> int:
    """Return the business to add a location to. The owner is locked, so that no other import adds the same one."""
    if body.business_name is None:
        assert body.business_id is not None, "one of the two is set"
        return body.business_id
    business = await users.business_named(session, owner_id, body.business_name)
    return business or await users.add_business(session, owner_id, body.business_name, services.clock.now())


async def disconnect(services: Services, caller: Caller, connection_id: str) -> ProviderConnectionDisconnected:
    """Delete a login with the data of its locations, deactivate their keys, and withdraw the consent.

    Raises:
        ServiceError: NOT_FOUND.
    """
    row, _ = await own(services, caller, connection_id)
    done = await end(services, row)
    services.background.spawn(_revoke(services, row))
    return done


async def end(services: Services, row: ProviderLogin) -> ProviderConnectionDisconnected:
    """Delete a login with the data of its locations, in one transaction. `revoke_due` withdraws the consent.

    Raises:
        ServiceError: NOT_FOUND.
    """
    now, owner_id = services.clock.now(), row.owner_id
    async with services.storage.write() as session:
        user = await users.lock_user(session, owner_id)
        current = await provider_logins.find(session, owner_id, row.id)
        if current is None or current.state == "disconnected":  # by another request in the meantime
            raise missing("connection")
        row = current
        names = await table.names_of(session, owner_id, row.id)
        held = await hold(services, session, owner_id, holds.at_locations(names), "user_requested")
        documents = await drafts.documents(session, owner_id, names)
        await table.forget(session, owner_id, names, now)
        if names:
            await fit_plan(services, session, user)  # the plan has room for other locations
        await withdraw(services, session, row)
        await audit.record(services, session, "provider.disconnected", owner_id, connection_id=row.id)
        status = ProviderConnectionStatus(id=row.id, state="disconnected", url=page_of(services))
        event = events.new("provider_connection.disconnected", ProviderConnectionChanged(connection=status))
        events.publish(services, session, owner_id, event)
    services.background.spawn(_release_photos(services, owner_id, documents))
    return ProviderConnectionDisconnected(id=row.id, locations=names, deactivated_keys=held)


async def _release_photos(services: Services, owner_id: int, documents: list[str]) -> None:
    async with services.storage.write() as session:
        for document in documents:
            await photos.release(services, session, owner_id, document)


async def withdraw(services: Services, session: AsyncSession, row: ProviderLogin) -> None:
    """Forget a login, but for its encrypted token, by which `revoke_due` withdraws the consent."""
    empty = {"subject": None, "email": None, "last_error": None, "last_error_at": None}
    ended = _ended(services, row.owner_id, row.subject or "", _consent(services, row).token)
    await provider_logins.change(session, row.owner_id, row.id, **empty, **ended)


async def decline(services: Services, session: AsyncSession, owner_id: int, granted: Granted) -> None:
    """Keep a new consent only until `revoke_due` has withdrawn it.

    If it is of a login that the owner has connected, it is forgotten: the provider would end that login too.
    """
    connected = await table.listing(session, owner_id)
    if not any(row.subject == granted.subject and row.state == "active" for row in connected):
        ended = _ended(services, owner_id, granted.subject, granted.refresh_token)
        await table.put(session, owner_id, None, created_at=services.clock.now(), **ended)


def _ended(services: Services, owner_id: int, subject: str, token: str) -> dict[str, object]:
    """Return the columns of a login that is disconnected, with its token if there is one to revoke."""
    encrypted = services.vault.encrypt(f"{subject} {token}", purpose(owner_id, None)) if token else None
    revoke_at = services.clock.now() if encrypted else None
    return {"state": "disconnected", "scopes": "", "refresh_token": encrypted, "revoke_at": revoke_at}


class _Consent(NamedTuple):
    """The refresh token of a login. The subject is with it, encrypted, once the login is disconnected."""

    subject: str = ""
    token: str = ""


def _consent(services: Services, row: ProviderLogin) -> _Consent:
    try:
        text = services.vault.decrypt(row.refresh_token or "", purpose(row.owner_id, row.subject))
    except ValueError:
        return _Consent()
    subject, _, token = text.rpartition(" ")
    return _Consent(subject, token)


async def keep_consent(services: Services, session: AsyncSession, owner_id: int, subject: str) -> None:
    """Do not withdraw the earlier consent of a login that is connected again: that would end the new one too."""
    for row in await table.revoking(session, owner_id):
        if _consent(services, row).subject == subject:
            await provider_logins.change(session, owner_id, row.id, refresh_token=None, revoke_at=None)


async def revoke_due(services: Services) -> None:
    """Withdraw the consents of disconnected logins. A failure is repeated; after the last one the token is deleted."""
    async with services.storage.read() as session:
        due = await table.to_revoke(session, services.clock.now(), 100)
    for row in due:
        await _revoke(services, row)


async def _revoke(services: Services, row: ProviderLogin) -> None:
    async with consents(services, row.owner_id):
        async with services.storage.read() as session:
            current = await provider_logins.find(session, row.owner_id, row.id)
        if current is None or current.refresh_token is None:  # connected again, or revoked by another process
            return
        token, has_failed = _consent(services, current).token, False
        if token:
            try:
                await services.provider.consent.revoke(token)
            except ProviderError as error:
                log.warning("the consent of a disconnected login could not be withdrawn: %s", error.reason)
                has_failed = True
        async with services.storage.write() as session:
            tries = await table.tries(session, row.owner_id, row.id)
            values: dict[str, object] = {"refresh_token": None, "revoke_at": None, "revoke_tries": tries + 1}
            if has_failed and tries < len(_REVOKE_PAUSES):
                values = {"revoke_at": services.clock.now() + _REVOKE_PAUSES[tries], "revoke_tries": tries + 1}
            await provider_logins.change(session, row.owner_id, row.id, **values)
