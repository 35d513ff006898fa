"""The page where a user edits the profile of a site: only the fields that the plan lets a sync send."""

import json
import re

from quart import Blueprint, Response, request

from profilesvc.api.parsing import idempotency_key
from profilesvc.contract.json import JsonObject
from profilesvc.dashboard import hours, pages, problems, values
from profilesvc.dashboard.problems import Problem, Problems
from profilesvc.dashboard.profile_form import ProfileForm, input_of, known_categories
from profilesvc.dashboard.visits import Visit, view
from profilesvc.domain import profiles
from profilesvc.domain.errors import ServiceError
from profilesvc.services import locations, sync
from profilesvc.services.context import AllowedLocation
from profilesvc.tokens.signer import random_id

blueprint = Blueprint("profile", __name__)
_PATH = "/sites/<location:locationId>/profile"
_SNAKE = re.compile(r"_([a-z])")


@view(blueprint, _PATH)
async def edit(visit: Visit, locationId: str) -> Response:
    location = await visit.location(locationId)
    return await _page(visit, location, await _form(visit, location))


@view(blueprint, _PATH, "POST")
async def save(visit: Visit, locationId: str) -> Response:
    """Send the fields that were changed on the page to the provider."""
    location, sent = await visit.location(locationId), await request.form
    form = await _form(visit, location)
    form.fill(sent)
    try:
        body = form.changed()
        if body:
            once = idempotency_key([[sent.get("once", "")]], ["dashboard", location.name, body])
            await sync.run(visit.services, visit.caller, location, body, once)
    except ServiceError as error:
        return await _page(visit, location, form, error)
    return pages.redirect(f"{pages.PATH}/sites/{location.id}#comparison", "synced" if body else "unchanged")


async def _form(visit: Visit, location: AllowedLocation) -> ProfileForm:
    """Return the form of the desired profile: the source of syncs, and the provider's values of all other fields."""
    row = await locations.load(visit.services, location)
    stored = profiles.merge(json.loads(row.profile or "{}"), json.loads(row.source or "{}"))
    return ProfileForm(stored, location.plan.syncable)


async def _page(
    visit: Visit, location: AllowedLocation, form: ProfileForm, error: ServiceError | None = None
) -> Response:
    row = await locations.load(visit.services, location)
    return pages.page(
        "profile.html",
        visit=visit,
        problems=_problems(error, form),
        location=location,
        title=await visit.title(location),
        row=row,
        form=form,
        days=hours.DAYS,
        categories=_categories(json.loads(row.profile or "{}"), form.stored),
        once=random_id(visit.services.entropy),
    )


def _categories(provider: JsonObject, stored: JsonObject) -> dict[str, str]:
    """Return the categories by name, with the names that people know, the main one first."""
    shown = known_categories(provider.get("categories"))
    return {
        name: values.category(shown.get(name, {"name": name})) for name in known_categories(stored.get("categories"))
    }


def _problems(error: ServiceError | None, form: ProfileForm) -> Problems:
    """Return the problems with the inputs that they belong to, also those that the provider has found."""
    if error is None:
        return problems.NONE
    found = [(one["field"], one["problem"]) for one in error.details.get("errors", ())]
    for name in error.details.get("fields", ()):
        path = _SNAKE.sub(lambda match: match[1].upper(), name)
        found.append((path, error.details.get("provider_message") or error.message))
    if not found:
        return problems.of(error)
    entries = []
    for path, text in found:
        name = path if path in form.inputs else input_of(path)
        day = path.partition("-")[2].capitalize()
        label = f"Opening hours, {day}" if day else values.field(path)
        entries.append(Problem(name if name in form.inputs else "", f"{label}: {text}"))
    return Problems(entries, error.kind.status)
