"""An owner's consent at the provider: authorization code with PKCE (D-110).

The state is sealed and names the owner. It returns once, within ten minutes, to the browser that it was started in: a
response in another browser ends it, so that its code cannot be redeemed later. The browser that may finish it has a
cookie that only this service can make, or, for a URL that the API returned, the session of the same owner. The verifier
of PKCE is derived from the state, so that nothing is stored until the login is connected.
"""

import hashlib
import json
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import AUTH_INVALID_TOKEN, SERVICE_UNAVAILABLE, VALIDATION_ERROR
from profilesvc.contract.events import ProviderConnectionChanged, ProviderConnectionStatus
from profilesvc.contract.provider_connections import ProviderConnectionLink, ProviderConnectionStart
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import DAY, MINUTE, iso
from profilesvc.provider.port import Granted, ProviderError
from profilesvc.services import audit, events
from profilesvc.services.context import Caller, Services
from profilesvc.services.logins import logins
from profilesvc.services.provider_errors import provider_failure
from profilesvc.services.provider_logins import consents, page_of, purpose
from profilesvc.storage import identities, users
from profilesvc.storage import logins as table
from profilesvc.tokens.seals import Seal
from profilesvc.tokens.signer import random_id

STATE_MS, LINK_MS = 10 * MINUTE, DAY
NO_CLIENT = (
    "Logins cannot be connected here yet, because the OAuth client at the provider is not configured. "
    "Ask the operator of this service."
)
_PURPOSE = "provider consent:"
_AGAIN = "Start again on the page Connections."
_NOT_STARTED = f"This connection was not started in this browser, or it has expired. {_AGAIN}"
_ENDED = (
    "Your login was not connected, because the account that it was for is no longer active. This service does not keep "
    "the access that you have just allowed."
)
_NO_ACCESS = (
    "Your login did not grant access to its business profiles. Start again, and keep the box of the business profiles "
    "ticked on the provider's page."
)


class PendingConsent(NamedTuple):
    """A consent that is not finished: its owner, until when, and what it is bound to.

    `in_browser` means that the browser needs the cookie. `link` is the digest of the connect link, if there is one;
    then the browser needs no session.
    """

    owner_id: int
    nonce: str
    until: int
    in_browser: bool
    link: str


class Begun(NamedTuple):
    """The URL of the consent page, and the cookie for the browser that is sent there."""

    url: str
    cookie: str
    until: int


def _seal(services: Services, what: str) -> Seal:
    return Seal(services.signer.keyring, f"{_PURPOSE} {what}", services.clock.now())


def redirect_uri(services: Services) -> str:
    """Return the address that must be registered at the provider's OAuth client."""
    return f"{page_of(services)}/callback"


def require_client(services: Services) -> None:
    """Require an OAuth client of this installation; without it, the provider's page shows only an error.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE.
    """
    if not services.provider.consent.is_configured:
        raise ServiceError(SERVICE_UNAVAILABLE, NO_CLIENT)


def begin(services: Services, owner_id: int, *, in_browser: bool, link: str = "") -> Begun:
    """Start a consent for an owner.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE.
    """
    require_client(services)
    nonce, until = random_id(services.entropy), services.clock.now() + STATE_MS
    pending = PendingConsent(owner_id, nonce, until, in_browser, link)
    state = _seal(services, "state").seal(json.dumps(pending))
    url = services.provider.consent.url(state, _verifier(services, pending), redirect_uri(services))
    return Begun(url, _seal(services, "cookie").seal(nonce), until)


def start(services: Services, caller: Caller) -> ProviderConnectionStart:
    """Return the URL of the consent page for a browser in which the caller is signed in.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE.
    """
    begun = begin(services, caller.owner_id, in_browser=False)
    return ProviderConnectionStart(authorization_url=begun.url, expires_at=iso(begun.until))


def _verifier(services: Services, pending: PendingConsent) -> str:
    """Return the verifier of PKCE, by the key of when the pending started: another one may sign by now."""
    return Seal(services.signer.keyring, f"{_PURPOSE} verifier", pending.until - STATE_MS).seal(pending.nonce)


async def finish(
    services: Services, response: dict[str, str], cookie: str | None, signed_in: int | None
) -> PendingConsent:
    """Connect the login that has consented, and return the pending. `signed_in` is the user of the browser's session.

    Raises:
        ServiceError: AUTH_INVALID_TOKEN if the response is not for this browser, VALIDATION_ERROR if the login did not
            consent, PROVIDER_API_ERROR.
    """
    pending = _opened(services, response)
    async with services.storage.write() as session:  # of any browser: the first one ends the pending
        is_first = await identities.mark_used(session, _digest(response["state"]), pending.until)
    nonce = _seal(services, "cookie").unseal(cookie or "")
    is_owner = pending.owner_id == signed_in or bool(pending.link)
    if not is_owner or (pending.in_browser and nonce != pending.nonce):
        raise ServiceError(AUTH_INVALID_TOKEN, _NOT_STARTED)
    if not is_first:
        raise ServiceError(AUTH_INVALID_TOKEN, f"This response was used before. {_AGAIN}")
    if "code" not in response:
        raise ServiceError(VALIDATION_ERROR, f"The login was not connected, because access was not granted. {_AGAIN}")
    async with consents(services, pending.owner_id):
        await _redeem(services, pending, response["code"])
    return pending


async def _redeem(services: Services, pending: PendingConsent, code: str) -> None:
    try:
        verifier = _verifier(services, pending)
        granted = await services.provider.consent.redeem(code, verifier, redirect_uri(services))
    except ProviderError as error:
        if error.reason == "rejected":
            raise ServiceError(AUTH_INVALID_TOKEN, f"The provider rejected the code. {_AGAIN}") from None
        raise provider_failure(error) from error
    if not granted.has_access or not granted.refresh_token:
        raise ServiceError(VALIDATION_ERROR, _NO_ACCESS)
    await store(services, pending, granted)


def _opened(services: Services, response: dict[str, str]) -> PendingConsent:
    """Return the pending of a response, which this service has sealed."""
    content = _seal(services, "state").unseal(response.get("state", ""))
    pending = None if content is None else PendingConsent(*json.loads(content))
    if pending is None or services.clock.now() >= pending.until:
        raise ServiceError(AUTH_INVALID_TOKEN, _NOT_STARTED)
    return pending


async def store(services: Services, pending: PendingConsent, granted: Granted) -> None:
    """Add the login, or make it active again, unless its owner's account has ended while the browser was away.

    Raises:
        ServiceError: AUTH_INVALID_TOKEN if the account is suspended or deleted, or if the link was used before.
    """
    encrypted = services.vault.encrypt(granted.refresh_token, purpose(pending.owner_id, granted.subject))
    async with services.storage.write() as session:
        owner = await users.lock_user(session, pending.owner_id)
        has_ended = owner.suspended_at is not None  # a deletion sets it too
        if has_ended:
            await logins.decline(services, session, owner.id, granted)
        else:
            await _connect(services, session, pending, granted, encrypted)
    if has_ended:
        raise ServiceError(AUTH_INVALID_TOKEN, _ENDED)


async def _connect(
    services: Services, session: AsyncSession, pending: PendingConsent, granted: Granted, encrypted: str
) -> None:
    """Store the login in one transaction with the use of the link. The owner is locked."""
    owner_id, now = pending.owner_id, services.clock.now()
    if pending.link and not await identities.mark_used(session, pending.link, now + LINK_MS):
        raise ServiceError(AUTH_INVALID_TOKEN, "This link was used before. Ask for a new one.")
    await logins.keep_consent(services, session, owner_id, granted.subject)
    number = await table.put(
        session,
        owner_id,
        granted.subject,
        email=granted.email or None,
        scopes=granted.scopes,
        refresh_token=encrypted,
        state="active",
        created_at=now,
        last_error=None,
        last_error_at=None,
    )
    by_link = {"by_link": True} if pending.link else {}
    await audit.record(services, session, "provider.connected", owner_id, connection_id=number, **by_link)
    status = ProviderConnectionStatus(id=number, state="active", url=page_of(services))
    event = events.new("provider_connection.connected", ProviderConnectionChanged(connection=status))
    events.publish(services, session, owner_id, event)


def new_link(services: Services, caller: Caller) -> ProviderConnectionLink:
    """Return a link with which another person connects their login for the caller, once and within a day.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE.
    """
    require_client(services)
    until = services.clock.now() + LINK_MS
    link = _seal(services, "link").seal(json.dumps([caller.owner_id, random_id(services.entropy), until]))
    return ProviderConnectionLink(url=f"{page_of(services)}/link/{link}", expires_at=iso(until))


class Asking(NamedTuple):
    """The owner who asks by a connect link."""

    owner_id: int
    name: str
    email: str
    until: int


async def link_owner(services: Services, link: str) -> Asking:
    """Return who asks by a link.

    Raises:
        ServiceError: AUTH_INVALID_TOKEN if the link is not valid, was used or has expired.
    """
    ended = ServiceError(AUTH_INVALID_TOKEN, "This link was used, or it has expired. Ask for a new one.")
    content = _seal(services, "link").unseal(link)
    if content is None:
        raise ended
    owner_id, _, until = json.loads(content)
    async with services.storage.read() as session:
        user = await users.user(session, owner_id)
        is_used = await identities.was_used(session, _digest(link))
    if user is None or user.suspended_at is not None or is_used or services.clock.now() >= until:
        raise ended
    return Asking(user.id, user.name, user.email, until)


async def begin_by_link(services: Services, link: str) -> Begun:
    """Start a consent for the owner who made a link.

    Raises:
        ServiceError: AUTH_INVALID_TOKEN, SERVICE_UNAVAILABLE.
    """
    asking = await link_owner(services, link)
    return begin(services, asking.owner_id, in_browser=True, link=_digest(link))


def _digest(sealed: str) -> str:
    return hashlib.sha256(sealed.encode()).hexdigest()
