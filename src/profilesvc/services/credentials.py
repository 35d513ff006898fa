"""Operations that show a secret once: create a key, and give a key a new secret."""

import json

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import CONFLICT, NOT_FOUND
from profilesvc.contract.json import JsonObject
from profilesvc.contract.keys import SECRET_WARNING, KeyCreate, KeyCreated, KeyRoll, KeyRolled
from profilesvc.domain.domains import allowed_domains
from profilesvc.domain.errors import Problem, ServiceError, invalid, invalid_many, problems_of
from profilesvc.domain.keys import clean_name, new_client_id, new_secret, secret_digest
from profilesvc.domain.permissions import ALL, grant
from profilesvc.domain.time import SECOND, instant_of, iso, iso_or_none
from profilesvc.services import audit
from profilesvc.services.access import missing, own_key, require_location
from profilesvc.services.context import Caller, Rendered, Services
from profilesvc.services.holds import hold
from profilesvc.services.idempotency import Claim, IdempotencyKey, run_once
from profilesvc.services.key_events import publish
from profilesvc.services.locations import assign_within_plan
from profilesvc.storage import holds, keys, locations, users
from profilesvc.storage.keys import KeyState, NewKey
from profilesvc.storage.users import UserState

_END_OF_TIME = 253_402_300_800_000  # the first millisecond of the year 10000, which RFC 3339 cannot write


async def create(services: Services, caller: Caller, body: KeyCreate, claim: Claim | None = None) -> KeyCreated:
    """Create a key for one of the caller's locations and return its secret, which cannot be read again.

    Raises:
        ServiceError: VALIDATION_ERROR; NOT_FOUND for a business or location that is not the caller's; CONFLICT for a
            location of another business or too many live keys; PLAN_RESTRICTION if the location is beyond the plan.
    """
    fields = body.model_dump()
    if invalid_values := problems(services, fields):
        raise invalid_many(invalid_values)
    new, secret = _new_key(services, caller, body, _allowed(services, fields)), new_secret(services.entropy)
    await services.limiter.count("creations-per-user", caller.owner_id)
    async with services.storage.write() as session:
        business = await users.business_name(session, body.business_id, caller.owner_id)
        if business is None:
            raise missing("business or location")
        owner = await _assign_location(services, session, caller, body)
        client_id = await _free_client_id(session, new, claim)
        new = new._replace(client_id=client_id, billing_version=owner.billing_version)
        key_id = await keys.add(session, new, secret_digest(secret, services.pepper))
        await audit.record(services, session, "key.created", caller.owner_id, key_id, location=new.location_name)
        await publish(services, session, "key.created", caller.owner_id, [key_id])
        if owner.unpaid_since is not None:  # while an invoice is unpaid, new keys are held too
            await hold(services, session, caller.owner_id, holds.one_key(key_id), "billing_issue")
    return KeyCreated(
        client_id=new.client_id,
        client_secret=secret,
        service_client_id=key_id,
        name=new.name,
        plan=caller.plan.name,
        business_id=new.business_id,
        business_name=business,
        assigned_location_id=new.location_name,
        primary_domain=new.primary_domain,
        allowed_domains=keys.domains_of(new.allowed_domains),
        created_at=iso(new.created_at),
        warning=SECRET_WARNING,
        permissions=grant(ALL, body.permissions),
        expires_at=iso_or_none(new.expires_at),
    )


async def create_once(services: Services, caller: Caller, body: KeyCreate, form: str) -> KeyCreated | str:
    """Create the key of a form, or return the client id of the key that this form has created before.

    The secret is not stored, so a form that is sent again cannot show it again.

    Raises:
        ServiceError: Those of `create`; IDEMPOTENCY_IN_PROGRESS while the form is handled already.
    """
    try:
        location = await require_location(services, caller, body.assigned_location_id)
    except ServiceError as error:
        raise (missing("business or location") if error.kind is NOT_FOUND else error) from None
    made: list[KeyCreated] = []

    async def run(claim: Claim | None) -> Rendered:
        made.append(await create(services, caller, body, claim))
        return Rendered(made[0].client_id.encode())

    done = await run_once(services, caller, ("keys", location), IdempotencyKey(form, "form"), run)
    return made[0] if made else done.data.decode()


def _new_key(services: Services, caller: Caller, body: KeyCreate, allowed: list[str]) -> NewKey:
    """Return the row of a key before its client id and its owner's billing version are known."""
    now = services.clock.now()
    return NewKey(
        owner_id=caller.owner_id,
        business_id=body.business_id,
        location_name=body.assigned_location_id,
        name=clean_name(body.name),
        permissions=" ".join(grant(ALL, body.permissions)),
        primary_domain=allowed[0] if body.primary_domain is not None else None,
        allowed_domains=json.dumps(allowed),
        created_at=now,
        expires_at=_expiry(body.expires_at, now),
    )


def problems(services: Services, body: JsonObject) -> list[Problem]:
    """Return every problem with the values of a KeyCreate, also if some of them have a wrong type."""
    name, expires_at = body.get("name"), body.get("expires_at")
    now = services.clock.now()
    return problems_of(
        lambda: isinstance(name, str) and clean_name(name),
        lambda: _allowed(services, body),
        lambda: isinstance(expires_at, str) and _expiry(expires_at, now),
    )


def _allowed(services: Services, body: JsonObject) -> list[str]:
    primary, extras = body.get("primary_domain"), body.get("allowed_domains")
    return allowed_domains(
        primary if isinstance(primary, str) else None,
        extras if isinstance(extras, list) else [],
        development=not services.settings.production,
    )


def _expiry(text: str | None, now: int) -> int | None:
    if text is None:
        return None
    expires_at = instant_of("expires_at", text, "2027-01-02T03:04:05Z")
    if expires_at >= _END_OF_TIME:
        raise invalid("body", "expires_at", "must be before the year 10000")
    if expires_at <= now:
        raise invalid("body", "expires_at", "must be in the future")
    return expires_at


async def _assign_location(services: Services, session: AsyncSession, caller: Caller, body: KeyCreate) -> UserState:
    """Check that the location is the caller's, assign it if it is unassigned, and return its owner."""
    name = body.assigned_location_id
    location = await locations.state(session, caller.owner_id, name)
    if location is None:
        raise missing("business or location")
    owner = await assign_within_plan(services, session, location, body.business_id)
    if not await locations.hold_kept(session, caller.owner_id, name):
        raise missing("business or location")
    if (
        await keys.count_live(session, caller.owner_id, name, services.clock.now())
        >= caller.plan.live_keys_per_location
    ):
        raise ServiceError(
            CONFLICT,
            f"The location already has {caller.plan.live_keys_per_location} live keys. Revoke one first.",
            limit=caller.plan.live_keys_per_location,
        )
    return owner


async def _free_client_id(session: AsyncSession, new: NewKey, claim: Claim | None) -> str:
    """Return a free id, because two keys of the same name may be created in the same millisecond.

    It is the response of the claim, because the secret is not stored. A crash leaves both, the key and the response, or
    neither.
    """
    now = new.created_at
    while await keys.client_id_taken(session, candidate := new_client_id(new.owner_id, now, new.name)):
        now += 1
    if claim is not None:
        await claim.finish(session, 201, candidate.encode())
    return candidate


async def roll(services: Services, caller: Caller | None, client_id: str, body: KeyRoll) -> KeyRolled:
    """Give a key a new secret. The previous one stays valid for the overlap, to the millisecond.

    The id, location, tokens and statistics do not change. An overlap of 0, for a secret that leaked, ends the tokens
    too. The operator (None) may roll every key.

    Raises:
        ServiceError: NOT_FOUND; CONFLICT for a third live secret, and for a deactivated key of an owner.
    """
    async with services.storage.write() as session:
        key = await own_key(services, session, caller, client_id)
        if caller is not None and key.hold is not None:
            raise ServiceError(
                CONFLICT, "A deactivated key cannot be given a new secret.", deactivation_reason=key.hold.reason
            )
        return await renew(services, session, key, body.overlap_seconds)


async def renew(services: Services, session: AsyncSession, key: KeyState, overlap_seconds: int) -> KeyRolled:
    """Replace the secret of a key that this transaction has locked."""
    now, secret = services.clock.now(), new_secret(services.entropy)
    retiring = await keys.retiring_until(session, key.owner_id, key.id, now)
    if overlap_seconds and retiring is not None:  # without an overlap all previous secrets end now
        raise ServiceError(
            CONFLICT,
            "The previous secret is still valid. Wait until it expires, or roll without an overlap.",
            previous_secret_expires_at=iso(retiring),
        )
    until = now + overlap_seconds * SECOND
    await keys.replace_secret(session, key.owner_id, key.id, secret_digest(secret, services.pepper), now, until)
    if not overlap_seconds:
        await keys.raise_epoch(session, key.owner_id, key.id)
    await audit.record(services, session, "key.rolled", key.owner_id, key.id, overlap_seconds=overlap_seconds)
    await publish(services, session, "key.rolled", key.owner_id, [key.id])
    return KeyRolled(
        client_id=key.client_id,
        client_secret=secret,
        service_client_id=key.id,
        rolled_at=iso(now),
        previous_secret_expires_at=iso(until),
        warning=SECRET_WARNING,
    )
