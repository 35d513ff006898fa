"""E-mail alerts: which address receives what, and when."""

from profilesvc.api.endpoint import Routes
from profilesvc.contract.alerts import (
    AlertChange,
    AlertCreate,
    AlertDeleted,
    AlertEntry,
    AlertList,
    AlertTested,
    KeyAlerts,
    KeyAlertsChange,
)
from profilesvc.contract.errors import CONFLICT
from profilesvc.services.access import USER
from profilesvc.services.context import Caller, Services
from profilesvc.services.notify import alerts, key_alerts

routes = Routes("alerts", addition=True, no_store=True)
ALERTS, ALERT = "/alerts", "/alerts/<alert_id>"
OF_KEY = "/developer/credentials/<client_id>/alerts"


@routes.endpoint(
    f"POST {ALERTS}",
    access=USER,
    body=AlertCreate,
    data=AlertEntry,
    status=201,
    created_at=lambda alert: f"{ALERTS}/{alert['id']}",
    errors=(CONFLICT,),
)
async def create_alert(services: Services, caller: Caller, body: AlertCreate) -> AlertEntry:
    """Add an address for alerts.

    The address of your login receives alerts at once. Another one gets a link first, and nothing else until it is used.
    """
    return await alerts.create(services, caller, body)


@routes.endpoint(f"GET {ALERTS}", access=USER, data=AlertList)
async def list_alerts(services: Services, caller: Caller) -> AlertList:
    """List your addresses for alerts."""
    return await alerts.list_all(services, caller)


@routes.endpoint(f"GET {ALERT}", access=USER, data=AlertEntry)
async def get_alert(services: Services, caller: Caller, alert_id: str) -> AlertEntry:
    """Read an address for alerts."""
    return await alerts.get(services, caller, alert_id)


@routes.endpoint(f"PATCH {ALERT}", access=USER, body=AlertChange, data=AlertEntry)
async def change_alert(services: Services, caller: Caller, alert_id: str, body: AlertChange) -> AlertEntry:
    """Change what an address receives.

    Fields that the body does not have keep their values. `enabled` stops or resumes all mail to the address.
    """
    return await alerts.change(services, caller, alert_id, body)


@routes.endpoint(f"DELETE {ALERT}", access=USER, data=AlertDeleted)
async def delete_alert(services: Services, caller: Caller, alert_id: str) -> AlertDeleted:
    """Delete an address for alerts."""
    return await alerts.delete(services, caller, alert_id)


@routes.endpoint(f"POST {ALERT}/test", access=USER, data=AlertTested, errors=(CONFLICT,))
async def test_alert(services: Services, caller: Caller, alert_id: str) -> AlertTested:
    """Send a test message.

    An address that is not confirmed gets its link again.
    """
    return await alerts.test(services, caller, alert_id)


@routes.endpoint(f"GET {OF_KEY}", access=USER, data=KeyAlerts)
async def get_key_alerts(services: Services, caller: Caller, client_id: str) -> KeyAlerts:
    """Read a site's alert settings."""
    return await key_alerts.get(services, caller, client_id)


@routes.endpoint(f"PATCH {OF_KEY}", access=USER, body=KeyAlertsChange, data=KeyAlerts)
async def change_key_alerts(services: Services, caller: Caller, client_id: str, body: KeyAlertsChange) -> KeyAlerts:
    """Change a site's alert settings.

    A site that reports less often than daily needs a grace. A snooze stops e-mail about a site that you know is
    offline.
    """
    return await key_alerts.change(services, caller, client_id, body)
