"""Convert the settings of an address to the fields of their form, and the form to the API's body."""

from collections.abc import Mapping
from typing import Any

from werkzeug.datastructures import MultiDict

from profilesvc.api.parsing import checked
from profilesvc.contract.alerts import AlertChange, AlertEntry
from profilesvc.contract.events import EVENT_TYPES
from profilesvc.contract.json import JsonObject
from profilesvc.contract.zones import UTC_NAME, zone_names
from profilesvc.dashboard.edits import Edit
from profilesvc.dashboard.words.channels import WHEN
from profilesvc.domain.errors import invalid
from profilesvc.language.texts import _

_REGIONS = (
    *("Africa/", "America/", "Antarctica/", "Arctic/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/"),
    "Pacific/",
)


def edit_of(entry: AlertEntry) -> Edit:
    """Return the form of an address. Each type of event has a field: `immediate`, `daily` or `never`."""
    when = {name: "immediate" if name in entry.immediate else "daily" for name in (*entry.daily, *entry.immediate)}
    quiet = entry.quiet_time
    return Edit(
        {
            **{name: when.get(name, "never") for name in EVENT_TYPES},
            "muted_locations": entry.muted_locations,
            "reminders": "on" if entry.reminders else "",
            "quiet_time": {"quiet_from": quiet.from_ if quiet else "", "quiet_to": quiet.to if quiet else ""},
            "digest_at": entry.digest_at,
            "time_zone": entry.time_zone,
        }
    )


def filled(edit: Edit, form: "MultiDict[str, str]") -> Edit:
    """Return the form with what the user entered."""
    return edit.fill(
        form,
        {
            "muted_locations": form.getlist("muted"),
            "reminders": "on" if "reminders" in form else "",
            "quiet_time": {name: form.get(name, text) for name, text in edit.current["quiet_time"].items()},
        },
    )


def change_of(edit: Edit, titles: Mapping[str, str]) -> AlertChange | None:
    """Return what the user has changed, or None. `titles` are those of the locations.

    Raises:
        ServiceError: VALIDATION_ERROR; CONFLICT for what somebody else has changed too.
    """
    edit.require_no_conflict(lambda name: _in_words(name, edit.current[name], titles))
    changed = edit.changed()
    values: JsonObject = {
        name: value for name, value in changed.items() if name in ("muted_locations", "digest_at", "time_zone")
    }
    for name in changed.keys() & set(EVENT_TYPES):
        if edit.inputs[name] not in WHEN:
            raise invalid("body", name, f"must be one of {', '.join(WHEN)}")
    if changed.keys() & set(EVENT_TYPES):
        values |= {when: [name for name in EVENT_TYPES if edit.inputs[name] == when] for when in ("immediate", "daily")}
    if "reminders" in changed:
        values["reminders"] = changed["reminders"] == "on"
    if "quiet_time" in changed:
        start, end = changed["quiet_time"].values()
        values["quiet_time"] = {"from": start, "to": end} if start or end else None
    return checked(AlertChange, values, "body") if values else None


def _in_words(name: str, value: Any, titles: Mapping[str, str]) -> str:
    """Return a value of an address as its page shows it."""
    if name in EVENT_TYPES:
        return WHEN[value]
    if name == "reminders":
        return _("on") if value else _("off")
    if name == "muted_locations":
        return ", ".join(titles.get(location, location) for location in value)
    return "-".join(filter(None, value.values())) if name == "quiet_time" else str(value)


def zones(current: str) -> list[str]:
    """Return the time zones of the form: UTC, those with the name of a region, and the current one."""
    regional = {name for name in zone_names() if name.startswith(_REGIONS)}
    return [UTC_NAME, *sorted((regional | {current}) - {"", UTC_NAME})]


def zone_or_utc(name: str) -> str:
    """Return the time zone that a browser reports, or UTC if it is not known."""
    return name if name in zone_names() else UTC_NAME
