"""Convert the key form to the API's body, and report all its problems at once."""

import contextlib

from werkzeug.datastructures import MultiDict

from profilesvc.api.parsing import checked
from profilesvc.contract.alerts import KeyAlerts
from profilesvc.contract.json import JsonObject
from profilesvc.contract.keys import BusinessEntry, KeyChange, KeyCreate, KeyDetails
from profilesvc.dashboard.edits import Edit
from profilesvc.domain.domains import allowed_domains
from profilesvc.domain.errors import Problem, invalid, invalid_many, problems_of
from profilesvc.domain.keys import clean_name
from profilesvc.domain.time import parse_iso
from profilesvc.services.context import Services
from profilesvc.services.insight.overview import Choice
from profilesvc.services.key_changes import others

_ANY = 1
_ORDER = tuple(KeyCreate.model_fields)


def body_of(
    services: Services, form: "MultiDict[str, str]", choices: list[Choice], businesses: list[BusinessEntry]
) -> KeyCreate:
    """Return the key that the form describes. If the location has a business, the key gets that business.

    Another business is selected by its number, or by its name if there are many.

    Raises:
        ServiceError: VALIDATION_ERROR with the first problem of each field, in the order of the form, including those
            that `credentials.create` would find.
    """
    values = _values(form, choices, businesses)
    development = not services.settings.production
    domains = values["primary_domain"], values["allowed_domains"] or []
    first: dict[str, Problem] = {}
    for problem in problems_of(
        lambda: _require_permission(values),
        lambda: checked(KeyCreate, values, "body"),
        lambda: clean_name(values["name"]),
        lambda: allowed_domains(*domains, development=development),
        lambda: _require_future(values, services.clock.now()),
    ):
        first.setdefault(problem[1], problem)
    if first:
        raise invalid_many(sorted(first.values(), key=lambda problem: _ORDER.index(problem[1].partition(".")[0])))
    return checked(KeyCreate, values, "body")


def edit_of(key: KeyDetails) -> Edit:
    """Return the form of an existing key."""
    extras = others(key.primary_domain, key.allowed_domains)
    return Edit({"name": key.name, "primary_domain": key.primary_domain or "", "allowed_domains": " ".join(extras)})


def change_of(edit: Edit) -> KeyChange | None:
    """Return what the user has changed, or None.

    Raises:
        ServiceError: VALIDATION_ERROR; CONFLICT for what somebody else has changed too.
    """
    edit.require_no_conflict()
    values = edit.changed()
    if "primary_domain" in values:
        values["primary_domain"] = values["primary_domain"].strip() or None
    if "allowed_domains" in values:
        values["allowed_domains"] = _split(values["allowed_domains"])
    return checked(KeyChange, values, "body") if values else None


def grace_of(alerts: KeyAlerts) -> Edit:
    """Return the form of the grace of a key, in hours."""
    return Edit({"grace": f"{alerts.grace_seconds / 3600:g}"})


def _split(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _values(form: "MultiDict[str, str]", choices: list[Choice], businesses: list[BusinessEntry]) -> JsonObject:
    named = form.get("business_name", "").strip().casefold()
    selected = next((one.id for one in businesses if one.name.casefold() == named), form.get("business_id", type=int))
    location = form.get("location", "")
    business = next((choice.business_id for choice in choices if choice.name == location), None)
    values: JsonObject = {
        "name": form.get("name", ""),
        "business_id": business or selected,
        "assigned_location_id": location,
        "primary_domain": form.get("primary_domain", "").strip() or None,
        "allowed_domains": _split(form.get("allowed_domains", "")) or None,
        "permissions": form.getlist("permissions"),
    }
    if day := form.get("expires_on", ""):
        values["expires_at"] = f"{day}T23:59:59Z"
    if location not in {choice.name for choice in choices}:
        values["business_id"] = values["business_id"] or _ANY  # the location is rejected anyway
    return values


def _require_permission(values: JsonObject) -> None:
    if not values["permissions"]:
        raise invalid("body", "permissions", "select at least one")


def _require_future(values: JsonObject, now: int) -> None:
    if "expires_at" not in values:
        return
    expires_at = None
    with contextlib.suppress(ValueError):
        expires_at = parse_iso(values["expires_at"])
    if expires_at is None:
        raise invalid("body", "expires_at", "must be a date such as 2027-01-02")
    if expires_at <= now:
        raise invalid("body", "expires_at", "must be in the future")
