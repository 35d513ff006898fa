"""The audit trail, for the owner."""

from profilesvc.api.endpoint import Routes
from profilesvc.contract.audit import AuditQuery, AuditTrail
from profilesvc.services import audit
from profilesvc.services.access import USER
from profilesvc.services.context import Caller, Services

routes = Routes("audit", addition=True, no_store=True)


@routes.endpoint("GET /developer/credentials/<client_id>/audit", access=USER, query=AuditQuery, data=AuditTrail)
async def list_key_audit(services: Services, caller: Caller, client_id: str, query: AuditQuery) -> AuditTrail:
    """List a key's audit trail.

    The newest entry is first. The key may be revoked.
    """
    return await audit.key_trail(services, caller, client_id, query)


@routes.endpoint("GET /audit", access=USER, query=AuditQuery, data=AuditTrail)
async def list_audit(services: Services, caller: Caller, query: AuditQuery) -> AuditTrail:
    """List your audit trail.

    Your logins and the audit entries of all your API keys, newest first.
    """
    return await audit.user_trail(services, caller.owner_id, query)
