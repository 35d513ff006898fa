"""The login that reaches a location: the one that its owner has connected, or the installation's own (D-110)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.events import ProviderConnectionChanged, ProviderConnectionStatus
from profilesvc.domain.errors import ServiceError
from profilesvc.provider.port import Provider, ProviderError
from profilesvc.services import events
from profilesvc.services.access import missing
from profilesvc.services.context import AllowedLocation, Services
from profilesvc.storage import locations
from profilesvc.storage import provider_logins as table
from profilesvc.storage.provider_logins import ProviderLogin
from profilesvc.tokens.vault import DEVELOPMENT

_PATIENCE_SECONDS = 2.0  # while another process renews an access token
_PATH = "/dashboard/connections"
_MESSAGE = "The login at the provider has ended; its owner must connect it again"
Slot = tuple[int, int, str]  # owner, connection, encrypted refresh token


class Logins:
    """The providers of connected logins that this process has used most recently, each with its access token."""

    def __init__(self, size: int = 1_000) -> None:
        self._size = size
        self._providers: dict[Slot, Provider] = {}
        self._locks = WeakValueDictionary[int, asyncio.Lock]()

    def lock(self, owner_id: int) -> asyncio.Lock:
        """Return the lock of an owner's consents; it exists while it is used."""
        return self._locks.setdefault(owner_id, asyncio.Lock())

    def get(self, slot: Slot) -> Provider | None:
        provider = self._providers.pop(slot, None)
        if provider is not None:
            self._providers[slot] = provider
        return provider

    def put(self, slot: Slot, provider: Provider) -> None:
        while len(self._providers) >= self._size:
            del self._providers[next(iter(self._providers))]
        self._providers[slot] = provider


@asynccontextmanager
async def consents(services: Services, owner_id: int) -> AsyncIterator[None]:
    """Connect or withdraw consents of an owner one after the other: a late revocation would end a new one."""
    async with services.part(Logins).lock(owner_id), services.storage.leases.hold(f"consents of {owner_id}"):
        yield


def page_of(services: Services) -> str:
    """Return the address of the dashboard's page where owners connect logins."""
    return f"{services.settings.base_url}{_PATH}"


def purpose(owner_id: int, subject: str | None) -> str:
    """Return what a refresh token is encrypted for: a copy of the row cannot be used by another owner."""
    return f"refresh token of {owner_id} and {subject}"


async def provider_at(services: Services, location: AllowedLocation) -> Provider:
    """Return the provider as the login of a location sees it.

    Raises:
        ProviderError: As `provider_by`.
        ServiceError: NOT_FOUND, because the owner has disconnected the login meanwhile.
    """
    try:
        return await provider_by(services, location.owner_id, location.connection_id)
    except ProviderError:
        async with services.storage.read() as session:
            is_kept = await locations.place_of(session, location.owner_id, location.name) is not None
        if not is_kept:
            raise missing("location") from None
        raise


async def provider_by(services: Services, owner_id: int, connection_id: int | None) -> Provider:
    """Return the provider as a login of an owner sees it, or as the installation's own login (None).

    Raises:
        ProviderError: `reauth_required` if the login has ended. No call is made then.
    """
    if connection_id is None:
        return services.provider.for_owner(owner_id)
    async with services.storage.read() as session:
        row = await table.find(session, owner_id, connection_id)
    if row is None:
        raise ended(services)
    return provider_of(services, row)


async def require_kept(session: AsyncSession, location: AllowedLocation) -> None:
    """Require, before something of a location is stored, that its owner has not disconnected it meanwhile.

    Raises:
        ServiceError: NOT_FOUND.
    """
    if location.connection_id is None:  # the installation's login has no owner who disconnects it
        return
    if not await locations.hold_kept(session, location.owner_id, location.name):
        raise missing("location")


def provider_of(services: Services, row: ProviderLogin) -> Provider:
    """Return the provider as a connected login sees it; its access tokens are shared in this process.

    Raises:
        ProviderError: `reauth_required` if the login has ended.
    """
    if row.state != "active" or row.refresh_token is None:
        raise ended(services)
    slot = (row.owner_id, row.id, row.refresh_token)
    cached = services.part(Logins).get(slot)
    if cached is None:
        try:
            token = services.vault.decrypt(row.refresh_token, purpose(row.owner_id, row.subject))
        except ValueError:
            raise ended(services) from None
        cached = services.provider.signed_in(_Login(services, row, token))
        services.part(Logins).put(slot, cached)
    return cached


async def encrypt_again(services: Services) -> int:
    """Encrypt by the passphrase the logins that were stored before there was one, and return how many they are."""
    if not services.vault.has_passphrase:
        return 0
    async with services.storage.read() as session:
        rows = await table.with_token_like(session, DEVELOPMENT)
    for row in rows:
        use = purpose(row.owner_id, row.subject)
        with suppress(ValueError):  # of another purpose, so it is of no use in any encryption
            token = services.vault.encrypt(services.vault.decrypt(row.refresh_token or "", use), use)
            async with services.storage.write() as session:
                await table.replace_token(session, row, token)
    return len(rows)


def ended(services: Services) -> ProviderError:
    """Return the error of a login that its owner must connect again."""
    return ProviderError(
        "reauth_required", retryable=False, provider_message=_MESSAGE, reached=False, link=page_of(services)
    )


@dataclass(frozen=True)
class _Login:
    """A connected login, as the provider's client uses it."""

    services: Services = field(repr=False)
    row: ProviderLogin = field(repr=False)
    refresh_token: str = field(repr=False)

    @property
    def owner_id(self) -> int:
        """Whose login it is."""
        return self.row.owner_id

    @asynccontextmanager
    async def renewing(self) -> AsyncIterator[None]:
        """Hold a lease, so that of several processes only one sends a refresh token that the provider has ended."""
        services, row = self.services, self.row
        async with AsyncExitStack() as stack:
            with suppress(ServiceError):  # a database that is read-only has no leases
                name = f"login {row.id} of {row.owner_id}"
                await stack.enter_async_context(services.storage.leases.hold(name, _PATIENCE_SECONDS))
            current = await self._current()
            if current is None or current.state != "active":
                raise ended(services)
            if current.refresh_token != row.refresh_token:
                message = "the login was connected again in the meantime"
                raise ProviderError("unavailable", retryable=True, provider_message=message, reached=False)
            yield

    async def _current(self) -> ProviderLogin | None:
        try:
            async with self.services.storage.read() as session:
                return await table.find(session, self.row.owner_id, self.row.id)
        except ServiceError as error:
            message = "the login could not be read"
            raise ProviderError("unavailable", retryable=True, provider_message=message, reached=False) from error

    async def renewed(self) -> None:
        """Store when the login was last used, which is at most once an hour, and that it works again.

        If that cannot be stored, the call goes on with the token.
        """
        with suppress(ServiceError):
            async with self.services.storage.write() as session:
                now = self.services.clock.now()
                values = {"last_used_at": now, "last_error": None, "last_error_at": None}
                await table.change(session, self.row.owner_id, self.row.id, **values)

    async def ended(self, reason: str) -> ProviderError:
        """End the login on every process, and publish it to its owner; if that cannot be stored, the next call does."""
        services, row = self.services, self.row
        with suppress(ServiceError):
            async with services.storage.write() as session:
                if await table.end(session, row, reason, services.clock.now()):
                    status = ProviderConnectionStatus(id=row.id, state="reauth_required", url=page_of(services))
                    data = ProviderConnectionChanged(connection=status)
                    event = events.new("provider_connection.reauth_required", data)
                    events.publish(services, session, row.owner_id, event)
        return ended(services)
