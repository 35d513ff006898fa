"""The operations on owners' logins at the provider."""

from collections.abc import Sequence
from typing import TypedDict, Unpack

from profilesvc.client.operation import PREFIX, Operation
from profilesvc.contract.envelope import Success
from profilesvc.contract.provider_connections import (
    ProviderConnectionDetail,
    ProviderConnectionDisconnected,
    ProviderConnectionExport,
    ProviderConnectionImported,
    ProviderConnectionLink,
    ProviderConnectionList,
    ProviderConnectionStart,
)

_CONNECTIONS = f"{PREFIX}/provider-connections"


class ImportFields(TypedDict, total=False):
    """The locations to import, and their business (docs/api-contract.md#import_provider_locations)."""

    locations: Sequence[str]
    title_contains: str
    business_id: int
    business_name: str


def start_provider_connection() -> Operation[ProviderConnectionStart]:
    """Return the address of the provider's consent page, for a browser that is signed in to the dashboard."""
    return Operation("POST", _CONNECTIONS, Success[ProviderConnectionStart], repeatable=True)


def create_provider_connection_link() -> Operation[ProviderConnectionLink]:
    """Make a link with which someone else connects their login for you, once and within 24 hours."""
    return Operation("POST", f"{PREFIX}/provider-connection-links", Success[ProviderConnectionLink], repeatable=True)


def list_provider_connections() -> Operation[ProviderConnectionList]:
    """List your logins at the provider, oldest first."""
    return Operation("GET", _CONNECTIONS, Success[ProviderConnectionList], repeatable=True)


def provider_connection(connection_id: int) -> Operation[ProviderConnectionDetail]:
    """Return a login with the accounts and locations that it sees now.

    Raises:
        ProviderFailed: The provider does not respond, or has ended the login.
    """
    return Operation("GET", f"{_CONNECTIONS}/{connection_id}", Success[ProviderConnectionDetail], repeatable=True)


def import_provider_locations(
    connection_id: int, **fields: Unpack[ImportFields]
) -> Operation[ProviderConnectionImported]:
    """Import locations that a login sees. Repeat it to add new ones.

    Raises:
        ValidationFailed: Neither `locations` nor `title_contains` is given, or both are.
    """
    path = f"{_CONNECTIONS}/{connection_id}/import"
    return Operation("POST", path, Success[ProviderConnectionImported], body=fields, repeatable=True)


def export_provider_connection(connection_id: int) -> Operation[ProviderConnectionExport]:
    """Return a copy of what is stored of the locations of a login."""
    path = f"{_CONNECTIONS}/{connection_id}/export"
    return Operation("GET", path, Success[ProviderConnectionExport], repeatable=True)


def delete_provider_connection(connection_id: int) -> Operation[ProviderConnectionDisconnected]:
    """Disconnect a login: withdraw the consent, delete the data of its locations, deactivate their keys."""
    return Operation("DELETE", f"{_CONNECTIONS}/{connection_id}", Success[ProviderConnectionDisconnected])
