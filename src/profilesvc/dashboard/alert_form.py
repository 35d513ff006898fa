"""Convert the settings of an address to the fields of their form, and the form to the API's body."""

from dataclasses import dataclass
from functools import cache
from zoneinfo import available_timezones

from werkzeug.datastructures import MultiDict

from profilesvc.api.parsing import checked
from profilesvc.contract.alerts import AlertChange, AlertEntry
from profilesvc.contract.events import EVENT_TYPES
from profilesvc.contract.json import JsonObject

_REGIONS = (
    *("Africa/", "America/", "Antarctica/", "Arctic/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/"),
    "Pacific/",
)


@dataclass(frozen=True, slots=True)
class Fields:
    """The form. `when` is `immediate`, `daily` or `never` for each type of event; `muted` has locations."""

    when: dict[str, str]
    muted: list[str]
    reminders: bool
    quiet_from: str
    quiet_to: str
    digest_at: str
    time_zone: str

    def body(self) -> AlertChange:
        """Return the change that the form describes.

        Raises:
            ServiceError: VALIDATION_ERROR.
        """
        quiet = {"from": self.quiet_from, "to": self.quiet_to} if self.quiet_from or self.quiet_to else None
        values: JsonObject = {
            "immediate": [name for name, when in self.when.items() if when == "immediate"],
            "daily": [name for name, when in self.when.items() if when == "daily"],
            "muted_locations": self.muted,
            "reminders": self.reminders,
            "quiet_time": quiet,
            "digest_at": self.digest_at,
            "time_zone": self.time_zone,
        }
        return checked(AlertChange, values, "body")


def of_entry(entry: AlertEntry) -> Fields:
    """Return the settings of an address as the form shows them."""
    when = {name: "immediate" if name in entry.immediate else "daily" for name in (*entry.daily, *entry.immediate)}
    quiet = entry.quiet_time
    return Fields(
        when={name: when.get(name, "never") for name in EVENT_TYPES},
        muted=list(entry.muted_locations),
        reminders=entry.reminders,
        quiet_from="" if quiet is None else quiet.from_,
        quiet_to="" if quiet is None else quiet.to,
        digest_at=entry.digest_at,
        time_zone=entry.time_zone,
    )


def of_form(form: "MultiDict[str, str]") -> Fields:
    """Return what the user entered."""
    return Fields(
        when={name: form.get(name, "never") for name in EVENT_TYPES},
        muted=form.getlist("muted"),
        reminders="reminders" in form,
        quiet_from=form.get("quiet_from", ""),
        quiet_to=form.get("quiet_to", ""),
        digest_at=form.get("digest_at", ""),
        time_zone=form.get("time_zone", ""),
    )


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def zones(current: str) -> list[str]:
    """Return the time zones of the form: UTC, those with the name of a region, and the current one."""
    regional = {name for name in _zones() if name.startswith(_REGIONS)}
    return ["UTC", *sorted((regional | {current}) - {"", "UTC"})]


def zone_or_utc(name: str) -> str:
    """Return the time zone that a browser reports, or UTC if it is not known."""
    return name if name in _zones() else "UTC"
