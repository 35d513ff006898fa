"""Change a key: its name, its domains, and the end of its previous secret."""

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.json import JsonObject
from profilesvc.contract.keys import KeyChange, KeyDetails
from profilesvc.domain.domains import allowed_domains
from profilesvc.domain.errors import Problem, invalid_many
from profilesvc.domain.keys import clean_name
from profilesvc.services import audit, credentials
from profilesvc.services.access import missing, own_key
from profilesvc.services.context import Caller, Services
from profilesvc.services.key_events import details
from profilesvc.storage import keys
from profilesvc.storage.keys import KeyState, ListedKey, domains_of

_DOMAINS = {"primary_domain", "allowed_domains"}


def problems(services: Services, body: JsonObject) -> list[Problem]:
    """Return every problem with the values of a KeyChange, also if some of them have a wrong type."""
    if body.get("name") is None and not _DOMAINS & body.keys():
        return [("body", "", f"must have at least one of {', '.join(KeyChange.model_fields)}")]
    return credentials.problems(services, {name: body[name] for name in KeyChange.model_fields if name in body})


async def change(services: Services, caller: Caller, client_id: str, body: KeyChange) -> KeyDetails:
    """Change the fields of the body; the others keep their values. Requests use the new domains from then on.

    A key that is deactivated can be changed. What has the requested value already is not recorded.

    Raises:
        ServiceError: VALIDATION_ERROR; NOT_FOUND.
    """
    fields = body.model_dump(include=body.model_fields_set)
    if invalid_values := problems(services, fields):
        raise invalid_many(invalid_values)
    async with services.storage.write() as session:
        key = await own_key(services, session, caller, client_id)
        row = await _listed(session, key)
        changed = []
        if body.name is not None and (name := clean_name(body.name)) != row.name:
            await keys.change(session, key.owner_id, key.id, name=name)
            changed.append("name")
        if _DOMAINS & fields.keys():
            changed += await _set_domains(session, key, row, fields)
        if changed:
            await audit.record(services, session, "key.changed", key.owner_id, key.id, fields=changed)
        return await _details(services, session, key)


async def end_previous_secret(services: Services, caller: Caller, client_id: str) -> KeyDetails:
    """End the secret before the last roll now. Repeating it has no effect, and tokens stay valid.

    Raises:
        ServiceError: NOT_FOUND.
    """
    async with services.storage.write() as session:
        key = await own_key(services, session, caller, client_id)
        if await keys.end_retiring(session, key.owner_id, key.id, services.clock.now()):
            await audit.record(services, session, "key.secret_ended", key.owner_id, key.id)
        return await _details(services, session, key)


def others(primary: str | None, allowed: list[str]) -> list[str]:
    """Return the domains of a key besides its primary domain and the www twin of that.

    They were accepted when they were stored, perhaps before the service went to production.
    """
    derived = allowed_domains(primary, [], development=True)
    return [domain for domain in allowed if domain not in derived]


async def _set_domains(session: AsyncSession, key: KeyState, row: ListedKey, fields: JsonObject) -> list[str]:
    """Store the domains that follow from the sent ones and the stored ones; return the fields that changed."""
    before = others(row.primary_domain, domains_of(row.allowed_domains))
    primary = fields.get("primary_domain", row.primary_domain)
    extras = fields["allowed_domains"] or [] if "allowed_domains" in fields else before
    allowed = allowed_domains(primary, extras, development=True)  # `problems` has checked the sent ones
    new = allowed[0] if primary is not None else None
    after = others(new, allowed)
    names = ("primary_domain", new != row.primary_domain), ("allowed_domains", set(after) != set(before))
    changed = [name for name, differs in names if differs]
    if changed:
        await keys.set_domains(session, key, new, allowed)
    return changed


async def _listed(session: AsyncSession, key: KeyState) -> ListedKey:
    row = await keys.listed(session, key.owner_id, key.client_id)
    if row is None:  # the key is locked, so it exists
        raise missing("API key")
    return row


async def _details(services: Services, session: AsyncSession, key: KeyState) -> KeyDetails:
    now = services.clock.now()
    row = await _listed(session, key)
    return details(row, await keys.retiring_until(session, key.owner_id, key.id, now), now)
