"""The operations on e-mail alerts."""

from collections.abc import Sequence
from typing import TypedDict, Unpack

from profilesvc.client.operation import PREFIX, Operation, segment
from profilesvc.contract.alerts import AlertDeleted, AlertEntry, AlertList, AlertTested, KeyAlerts
from profilesvc.contract.envelope import Success
from profilesvc.contract.events import EventType

_ALERTS = f"{PREFIX}/alerts"


class AlertFields(TypedDict, total=False):
    """The events that an address receives, and their time (docs/api-contract.md#create_alert)."""

    immediate: Sequence[EventType]
    daily: Sequence[EventType]
    muted_locations: Sequence[str]
    reminders: bool
    quiet_time: dict[str, str] | None
    digest_at: str
    time_zone: str


class KeyAlertFields(TypedDict, total=False):
    """The alert settings of a key's site (docs/api-contract.md#change_key_alerts)."""

    grace_seconds: int
    snoozed_until: str | None


def create_alert(address: str | None = None, **fields: Unpack[AlertFields]) -> Operation[AlertEntry]:
    """Add an address for alerts; None is that of your login. Another one has to confirm itself.

    Raises:
        ValidationFailed: A field is invalid, or the address is used.
        Conflict: You have too many addresses, or the service sends no e-mail.
    """
    return Operation("POST", _ALERTS, Success[AlertEntry], body={"address": address, **fields})


def list_alerts() -> Operation[AlertList]:
    """List your addresses for alerts, oldest first."""
    return Operation("GET", _ALERTS, Success[AlertList], repeatable=True)


def alert(alert_id: int) -> Operation[AlertEntry]:
    """Return an address for alerts."""
    return Operation("GET", f"{_ALERTS}/{alert_id}", Success[AlertEntry], repeatable=True)


def change_alert(alert_id: int, enabled: bool | None = None, **fields: Unpack[AlertFields]) -> Operation[AlertEntry]:
    """Change what an address receives; other fields keep their values.

    Raises:
        ValidationFailed: A field is invalid.
    """
    body = {**fields} if enabled is None else {**fields, "enabled": enabled}
    return Operation("PATCH", f"{_ALERTS}/{alert_id}", Success[AlertEntry], body=body, repeatable=True)


def delete_alert(alert_id: int) -> Operation[AlertDeleted]:
    """Delete an address for alerts."""
    path, deleted = f"{_ALERTS}/{alert_id}", AlertDeleted(id=alert_id)
    return Operation("DELETE", path, Success[AlertDeleted], repeatable=True, result_if_missing=deleted)


def test_alert(alert_id: int) -> Operation[AlertTested]:
    """Send a test message.

    Raises:
        Conflict: The address is disabled.
    """
    return Operation("POST", f"{_ALERTS}/{alert_id}/test", Success[AlertTested])


def key_alerts(client_id: str) -> Operation[KeyAlerts]:
    """Return how the site of a key is watched."""
    return Operation("GET", _alerts_path(client_id), Success[KeyAlerts], repeatable=True)


def change_key_alerts(client_id: str, **fields: Unpack[KeyAlertFields]) -> Operation[KeyAlerts]:
    """Change the grace of a key, or snooze its alerts until a time; None ends the snooze.

    Raises:
        ValidationFailed: A field is invalid.
    """
    return Operation("PATCH", _alerts_path(client_id), Success[KeyAlerts], body=fields, repeatable=True)


def _alerts_path(client_id: str) -> str:
    return f"{PREFIX}/developer/credentials/{segment(client_id)}/alerts"
