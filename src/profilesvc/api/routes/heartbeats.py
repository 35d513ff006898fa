"""Heartbeats, connection status and the credential check."""

from profilesvc.api.endpoint import Routes
from profilesvc.api.request import KB
from profilesvc.contract.connection import (
    ConnectionStatus,
    ConnectionStatusWithHistory,
    CredentialCheck,
    CredentialsInvalid,
    CredentialsValid,
    Heartbeat,
    HeartbeatReceived,
    StatusQuery,
)
from profilesvc.contract.errors import AUTH_INSUFFICIENT_PERMISSIONS
from profilesvc.services import heartbeats
from profilesvc.services.access import HEARTBEAT, PUBLIC, USER
from profilesvc.services.context import Caller, Services

routes = Routes("connection")


@routes.endpoint(
    "GET /api-keys/<client_id>/status",
    access=USER,
    query=StatusQuery,
    data=ConnectionStatus | ConnectionStatusWithHistory,
    prefetch=lambda _query, path: heartbeats.prefetch(path["client_id"]),
)
async def get_connection_status(
    services: Services, caller: Caller, client_id: str, query: StatusQuery
) -> ConnectionStatus | ConnectionStatusWithHistory:
    """Get the connection status.

    A site is `online` up to 2 hours after its last heartbeat, `idle` up to 24 hours, then `offline`.
    This is for the key's owner. A service token gets 403 with `details.reason` `user_token_required`; a site knows that
    it is connected when its heartbeat succeeds.
    """
    return await heartbeats.status(services, caller, client_id, query.history == "true")


@routes.endpoint(
    "POST /api-keys/heartbeat",
    access=HEARTBEAT,
    body=Heartbeat,
    data=HeartbeatReceived,
    counted_as="heartbeats",
    handed_over=True,
)
async def send_heartbeat(services: Services, caller: Caller, body: Heartbeat, user_agent: str) -> HeartbeatReceived:
    """Send a heartbeat.

    Plugins report once an hour that the site is alive. A missing field keeps its last value.
    """
    return await heartbeats.heartbeat(services, caller, body, user_agent)


@routes.endpoint(
    "POST /auth/validate-service-credentials",
    access=PUBLIC,
    body=CredentialCheck,
    data=CredentialsValid | CredentialsInvalid,
    data_name="CredentialsChecked",
    max_body=64 * KB,
    no_store=True,
    errors=(AUTH_INSUFFICIENT_PERMISSIONS,),
)
async def validate_credentials(services: Services, body: CredentialCheck) -> CredentialsValid | CredentialsInvalid:
    """Validate credentials.

    Check a client id and secret, and the site they are used on, before you store them. No token is issued. Wrong
    credentials are a success with `valid: false`.
    """
    return await heartbeats.validate(services, body)
