"""Heartbeats, the connection status of a key, and the credential check."""

import json

from profilesvc.contract.connection import (
    Capabilities,
    CheckedBusiness,
    CheckedLocation,
    CheckedUser,
    ConnectionStatus,
    ConnectionStatusWithHistory,
    CredentialCheck,
    CredentialsInvalid,
    CredentialsValid,
    Heartbeat,
    HeartbeatReceived,
)
from profilesvc.contract.json import JsonObject
from profilesvc.domain import heartbeats as rules
from profilesvc.domain.domains import domain_allowed, same_sites, site_host
from profilesvc.domain.heartbeats import Known, Reason, Span, reason, rejection_of
from profilesvc.domain.request import current_request
from profilesvc.domain.time import iso_or_none
from profilesvc.services import origins
from profilesvc.services.access import missing
from profilesvc.services.context import Caller, Prefetch, Services, deactivated
from profilesvc.services.tokens import verify_secret
from profilesvc.storage import heartbeats, keys, locations, users
from profilesvc.storage.heartbeats import Beat, KeyRow, KeyStatus
from profilesvc.storage.keys import KeyState, has_ended

_ADDRESS_ORDER = ("locality", "administrativeArea", "postalCode")


async def heartbeat(services: Services, caller: Caller, body: Heartbeat, user_agent: str = "") -> HeartbeatReceived:
    """Record a heartbeat of the caller's key, with the time of receipt (D-55).

    The site in the User-Agent is never rejected: if it does not match, the owner sees a warning.
    """
    assert caller.key is not None, "the route accepts service tokens only"
    reported = body.model_dump(exclude_none=True)
    if "detected_plugins" in reported:
        reported["detected_plugins"] = json.dumps(reported["detected_plugins"])
    now, site = services.clock.now(), site_host(user_agent)
    beat = Beat(caller.owner_id, caller.key.id, now, **reported)
    if site is not None:
        same = same_sites(site, keys.domains_of(caller.key.allowed_domains))
        beat = beat._replace(site_host=site, site_host_at=now, same_sites=json.dumps(same))
    await services.beats.add(beat)
    return HeartbeatReceived(next_heartbeat_in=rules.NEXT_HEARTBEAT_SECONDS)


def prefetch(client_id: str) -> Prefetch:
    """Return the prefetch of a status."""
    return heartbeats.prefetch(client_id)


async def status(
    services: Services, caller: Caller, client_id: str, history: bool
) -> ConnectionStatus | ConnectionStatusWithHistory:
    """Return whether a key's site is connected.

    Raises:
        ServiceError: NOT_FOUND, also for a key that is revoked or has expired, and for another user's key.
    """
    now, spans = services.clock.now(), list[Span]()
    if caller.prefetched:
        key = heartbeats.from_row(caller.prefetched)
    else:
        async with services.storage.read() as session:
            key = await heartbeats.status(session, client_id, caller.owner_id)
    if key is None or has_ended(key.revoked_at, key.expires_at, now):
        raise missing("API key")
    if history or not key.is_plainly_online(now):
        async with services.storage.read() as session:
            key = await heartbeats.explained(session, caller.owner_id, key, now)
            if history:
                spans = await heartbeats.spans(session, caller.owner_id, key.id, now - rules.HISTORY)
    fields = _fields(key, now)
    if not history:
        return ConnectionStatus.model_validate(fields)
    periods = rules.history(spans, now, key.created_at)
    return ConnectionStatusWithHistory.model_validate({**fields, "history": periods})


def status_of(key: KeyStatus, now: int) -> ConnectionStatus:
    """Return the status of an `explained` key that has not ended, as the API and the events show it."""
    return ConnectionStatus.model_validate(_fields(key, now))


def is_mismatch(key: KeyStatus, now: int) -> bool:
    """Return whether a second site seems to use the credentials."""
    if key.site_host is None:
        return False
    sites, allowed = (key.site_host, key.other_site_host), keys.domains_of(key.allowed_domains)
    return rules.site_mismatch(sites, key.other_site_host_at, allowed, now)


def reason_of(key: KeyStatus | KeyRow, *, is_held: bool, mismatch: bool, now: int) -> Reason:
    """Return why a key's site is not connected as expected, by all that is stored."""
    known = Known(
        created_at=key.created_at,
        is_held=is_held,
        last_heartbeat_at=key.last_heartbeat_at,
        last_used_at=key.last_used_at,
        mismatch=mismatch,
        secret_at=key.secret_at,
        retiring_until=key.retiring_until,
        rejection=rejection_of(key.rejection),
    )
    return reason(known, now)


def _fields(key: KeyStatus, now: int) -> JsonObject:
    mismatch, last_seen = is_mismatch(key, now), key.last_heartbeat_at
    reason = reason_of(key, is_held=key.is_held, mismatch=mismatch, now=now)
    return {
        "connection_status": rules.state(last_seen, now),
        "last_heartbeat_at": iso_or_none(last_seen),
        "plugin_version": key.plugin_version,
        "wp_version": key.wp_version,
        "php_version": key.php_version,
        "reason_hint": reason.hint,
        "reason_at": iso_or_none(reason.at),
        "warnings": ["site_mismatch"] if mismatch else [],
    }


async def validate(services: Services, body: CredentialCheck) -> CredentialsValid | CredentialsInvalid:
    """Return whether credentials are valid for a site. No token is issued and nothing changes (D-29).

    Raises:
        ServiceError: AUTH_INSUFFICIENT_PERMISSIONS for a deactivated key, with the three details.
    """
    key = await verify_secret(services, body.client_id, body.client_secret)
    if key is None:
        return CredentialsInvalid(reason="invalid_credentials")
    origins.decide(services, current_request(), key)
    development, allowed = not services.settings.production, keys.domains_of(key.allowed_domains)
    if body.site_domain is not None and not domain_allowed(body.site_domain, allowed, development=development):
        return CredentialsInvalid(reason="domain_not_allowed")
    if key.hold is not None:
        raise deactivated(services, key.hold)
    return await _valid(services, key)


async def _valid(services: Services, key: KeyState) -> CredentialsValid:
    async with services.storage.read() as session:
        user = await users.user(session, key.owner_id)
        business = await users.business_name(session, key.business_id, key.owner_id)
        location = await locations.state(session, key.owner_id, key.location_name)
    assert user is not None and business is not None and location is not None, "foreign keys guarantee it"  # noqa: PT018
    profile, plan = json.loads(location.profile), services.plans[key.plan]
    address = profile.get("storefrontAddress") or {}
    parts = [*(address.get("addressLines") or []), *(address.get(name) for name in _ADDRESS_ORDER)]
    return CredentialsValid(
        user=CheckedUser(id=user.id, email=user.email, name=user.name),
        business=CheckedBusiness(id=key.business_id, name=business),
        location=CheckedLocation(
            id=location.name,
            name=profile.get("title", ""),
            address=", ".join(part for part in parts if part),
            is_verified=location.is_verified,
        ),
        plan=plan.name,
        plan_display_name=plan.display_name,
        capabilities=Capabilities(sync=plan.sync, posts=plan.posts, reviews=plan.reviews),
    )
