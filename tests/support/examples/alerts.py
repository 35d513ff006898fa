"""The recorded examples of e-mail alerts."""

import httpx

from profilesvc.contract.json import JsonObject
from support.examples.recorder import Examples


def record(examples: Examples, owner: httpx.Client) -> None:
    """Record the operations on e-mail alerts; nothing is sent in development."""
    quiet = {"quiet_time": {"from": "22:00", "to": "07:00"}, "time_zone": "Europe/Berlin"}
    made = examples.ok("create_alert", "Your own address", owner, quiet)
    examples.ok("create_alert", "A team", owner, {"address": "team@harbour.example.com", "daily": []})
    examples.fails("create_alert", "An address that is used", owner, {})
    examples.fails("create_alert", "An unknown time zone", owner, {"time_zone": "Mars/Olympus"})
    for number in range(18):
        owner.post("/api/v1/alerts", json={"address": f"team{number}@harbour.example.com"})
    examples.fails("create_alert", "Too many addresses", owner, {"address": "one.more@harbour.example.com"})
    for entry in owner.get("/api/v1/alerts").json()["data"]["alerts"][2:]:
        owner.delete(f"/api/v1/alerts/{entry['id']}")
    of_alert: JsonObject = {"alert_id": made["id"]}
    examples.ok("list_alerts", "Two addresses", owner)
    examples.ok("get_alert", "An address", owner, **of_alert)
    examples.ok("change_alert", "Daily reminders", owner, {"reminders": True}, **of_alert)
    examples.ok("test_alert", "A test", owner, **of_alert)
    examples.ok("change_alert", "No more mail", owner, {"enabled": False}, **of_alert)
    examples.fails("test_alert", "A disabled address", owner, **of_alert)
    newest = owner.get("/api/v1/developer/credentials").json()["data"]["credentials"][0]
    of_key: JsonObject = {"client_id": newest["client_id"]}
    two_hours = {"grace_seconds": 7200, "snoozed_until": None}  # a date would be valid for 400 days only
    examples.ok("change_key_alerts", "Two hours more, and no snooze", owner, two_hours, **of_key)
    past = {"snoozed_until": "2020-01-01T00:00:00Z"}
    examples.fails("change_key_alerts", "A snooze in the past", owner, past, **of_key)
    examples.ok("get_key_alerts", "A grace of two hours", owner, **of_key)
    examples.fails("get_key_alerts", "Another user's key", owner, client_id="svcid_2_1_unknown")
    examples.ok("delete_alert", "A deleted address", owner, **of_alert)
    examples.fails("get_alert", "A deleted address", owner, **of_alert)
