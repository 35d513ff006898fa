"""Owners' logins at the provider: connect, look, import locations, disconnect."""

from profilesvc.api.endpoint import Routes
from profilesvc.contract.errors import PROVIDER_API_ERROR
from profilesvc.contract.provider_connections import (
    ProviderConnectionDetail,
    ProviderConnectionDisconnected,
    ProviderConnectionExport,
    ProviderConnectionImport,
    ProviderConnectionImported,
    ProviderConnectionLink,
    ProviderConnectionList,
    ProviderConnectionStart,
)
from profilesvc.services.access import USER
from profilesvc.services.context import Caller, Services
from profilesvc.services.logins import consent as provider_consent
from profilesvc.services.logins import export as provider_export
from profilesvc.services.logins import logins

routes = Routes("provider-connections", addition=True, no_store=True)
CONNECTIONS, CONNECTION = "/provider-connections", "/provider-connections/<connection_id>"


@routes.endpoint(f"POST {CONNECTIONS}", access=USER, data=ProviderConnectionStart)
async def start_provider_connection(services: Services, caller: Caller) -> ProviderConnectionStart:
    """Connect a provider login.

    Returns the address of the provider's consent page. Open it within ten minutes in a browser in which you have
    signed in to the dashboard. The same login again renews a connection that the provider has ended.
    """
    return provider_consent.start(services, caller)


@routes.endpoint("POST /provider-connection-links", access=USER, data=ProviderConnectionLink)
async def create_provider_connection_link(services: Services, caller: Caller) -> ProviderConnectionLink:
    """Make a connect link.

    Someone without a login here can connect theirs for you with it: once, within 24 hours. What they connect is yours.
    """
    return provider_consent.new_link(services, caller)


@routes.endpoint(f"GET {CONNECTIONS}", access=USER, data=ProviderConnectionList)
async def list_provider_connections(services: Services, caller: Caller) -> ProviderConnectionList:
    """List your provider logins.

    The oldest is first. Tokens are never returned, and the provider is not asked.
    """
    return await logins.list_all(services, caller)


@routes.endpoint(f"GET {CONNECTION}", access=USER, data=ProviderConnectionDetail, errors=(PROVIDER_API_ERROR,))
async def get_provider_connection(services: Services, caller: Caller, connection_id: str) -> ProviderConnectionDetail:
    """Read a provider login.

    Asks the provider which accounts and locations the login sees now.
    """
    return await logins.get(services, caller, connection_id)


@routes.endpoint(
    f"POST {CONNECTION}/import",
    access=USER,
    body=ProviderConnectionImport,
    data=ProviderConnectionImported,
    errors=(PROVIDER_API_ERROR,),
)
async def import_provider_locations(
    services: Services, caller: Caller, connection_id: str, body: ProviderConnectionImport
) -> ProviderConnectionImported:
    """Import locations.

    Send the names of locations, or `title_contains` for all that match. Repeat it to add new ones: what you have is
    updated and moved to this login. A location of another user is refused.
    """
    return await logins.import_locations(services, caller, connection_id, body)


@routes.endpoint(f"GET {CONNECTION}/export", access=USER, data=ProviderConnectionExport)
async def export_provider_connection(
    services: Services, caller: Caller, connection_id: str
) -> ProviderConnectionExport:
    """Export a provider login.

    Returns the profiles, posts and wanted values of its locations, as they are stored here: what disconnecting would
    delete. The provider is not asked.
    """
    return await provider_export.export(services, caller, connection_id)


@routes.endpoint(f"DELETE {CONNECTION}", access=USER, data=ProviderConnectionDisconnected)
async def delete_provider_connection(
    services: Services, caller: Caller, connection_id: str
) -> ProviderConnectionDisconnected:
    """Disconnect a provider login.

    Withdraws the consent at the provider, and deletes the tokens and the profiles, posts and sync history of its
    locations here. API keys are deactivated (`user_requested`), and the audit trail stays.
    """
    return await logins.disconnect(services, caller, connection_id)
