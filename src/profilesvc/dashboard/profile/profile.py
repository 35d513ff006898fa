"""The page where a user edits the profile of a site: only the fields that the plan lets a sync send."""

import json
import re

from quart import Blueprint, Response, current_app, request

from profilesvc.api.html_forms import TEXTS
from profilesvc.api.request import KB
from profilesvc.contract.json import JsonObject
from profilesvc.dashboard import pages, problems
from profilesvc.dashboard.problems import Problem, Problems
from profilesvc.dashboard.profile import lists as profile_lists
from profilesvc.dashboard.profile.form import ProfileForm, input_of, part_of
from profilesvc.dashboard.profile.lists import HOURS, PREFIXES, categories_of
from profilesvc.dashboard.visits import Visit, form_key, view
from profilesvc.dashboard.words import hours, values
from profilesvc.dashboard.words.problems import in_words
from profilesvc.domain import profiles
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.hours import DAYS
from profilesvc.domain.time import DAY, day_of
from profilesvc.language import formats
from profilesvc.language.texts import _
from profilesvc.services import locations, sync
from profilesvc.services.context import AllowedLocation
from profilesvc.services.feed import categories
from profilesvc.services.feed.categories import Offered
from profilesvc.tokens.signer import random_id

blueprint = Blueprint("profile", __name__)
_PATH = "/sites/<location:locationId>/profile"
_FORM = TEXTS._replace(largest=128 * KB, fields=2_000)  # hours of each day and kind, and a list of services
_OFFERED, _MOST_OFFERED = "profilesvc.offered", 500  # of categories, for all owners
_ITEM = re.compile(r"\.[0-9]+\Z")  # of an array, whose items have one input
_SNAKE = re.compile(r"_([a-z])")


@view(blueprint, _PATH)
async def edit(visit: Visit, locationId: str) -> Response:
    location = await visit.location(locationId)
    return await _page(visit, location, await _form(visit, location))


@view(blueprint, _PATH, "POST", _FORM)
async def save(visit: Visit, locationId: str) -> Response:
    """Send the fields that were changed on the page to the provider, or show more inputs."""
    location, values = await visit.location(locationId), await request.form
    form = await _form(visit, location)
    form.fill(values)
    try:
        if intent := values.get("intent"):
            return await _page(visit, location, form, matches=await _more(visit, location, form, intent))
        body = form.changed(day_of(visit.now))
        if body:
            once = form_key(values, ["dashboard", location.name, body])
            await sync.run(visit.services, visit.caller, location, body, once)
    except ServiceError as error:
        return await _page(visit, location, form, error)
    return pages.redirect(f"{pages.PATH}/sites/{location.id}#comparison", "synced" if body else "unchanged")


async def _more(visit: Visit, location: AllowedLocation, form: ProfileForm, intent: str) -> dict[str, str]:
    """Do what a button within the form says. Return the categories that a search has found, by name."""
    values = await request.form
    if intent == "hours" and (kind := values.get("hours_kind", "").strip()):
        offered = await _offered(visit, location, form.stored, categories_of(form.inputs, form.stored))
        if kind not in offered.hours:
            raise invalid("body", "moreHours", "is not offered for these categories")
        form.inputs.setdefault(f"{HOURS}{kind}-{DAYS[0]}", "")
    if intent != "category":
        return {}
    matches = await categories.search(visit.services, location, form.stored, values.get("find", ""))
    if not matches:
        raise invalid("body", "find", "no category of the provider starts with this")
    return matches


async def _form(visit: Visit, location: AllowedLocation) -> ProfileForm:
    """Return the form of the desired profile: the source of syncs, and the provider's values of all other fields."""
    row = await locations.load(visit.services, location)
    stored = profiles.merge(json.loads(row.profile or "{}"), json.loads(row.source or "{}"))
    return ProfileForm(stored, location.plan.syncable)


async def _page(
    visit: Visit,
    location: AllowedLocation,
    form: ProfileForm,
    error: ServiceError | None = None,
    matches: dict[str, str] | None = None,
) -> Response:
    typed = await request.form
    row = await locations.load(visit.services, location)
    names = categories_of(form.inputs, form.stored)
    is_edited = location.plan.sync and row.sync_enabled
    offered = await _offered(visit, location, form.stored, names) if is_edited else Offered()
    at_provider = profile_lists.known_categories(json.loads(row.profile or "{}").get("categories"))
    own = profile_lists.known_categories(form.stored.get("categories"))
    known = offered.categories | {name: values.category(at_provider.get(name, {"name": name})) for name in own}
    return pages.page(
        "profile.html",
        visit=visit,
        problems=_problems(error, form),
        location=location,
        title=await visit.title(location),
        row=row,
        form=form,
        days=DAYS,
        closing=_closing,
        categories={name: known.get(name) or values.category({"name": name}) for name in names},
        matches={name: label for name, label in (matches or {}).items() if name not in names},
        find=typed.get("find", ""),
        offered=offered,
        lists=profile_lists,
        once=random_id(visit.services.entropy),
    )


def _closing(day: str, text: str) -> str:
    """Return which hours of a day close on the next one, in words."""
    times = ", ".join(hours.overnight(day, text))
    following = formats.weekday(hours.day_after(day))
    return _("%(times)s closes on %(day)s.", times=times, day=following) if times else ""


async def _offered(visit: Visit, location: AllowedLocation, stored: JsonObject, names: list[str]) -> Offered:
    """Return what the categories offer, read once a day; nothing while the provider is not available."""
    cache: dict[tuple[str, ...], tuple[int, Offered]] = current_app.extensions.setdefault(_OFFERED, {})
    key = (categories.region_of(stored), *sorted(names))
    if key in cache and visit.now - cache[key][0] < DAY:
        return cache[key][1]
    try:
        offer = await categories.offered(visit.services, location, stored, names)
    except ServiceError:
        return Offered()
    if len(cache) >= _MOST_OFFERED:
        cache.clear()
    cache[key] = visit.now, offer
    return offer


def _problems(error: ServiceError | None, form: ProfileForm) -> Problems:
    """Return the problems with the inputs that they belong to, also those that the provider has found."""
    if error is None:
        return problems.NONE
    entries = [(one["field"], one["problem"]) for one in error.details.get("errors", ())]
    for name in error.details.get("fields", ()):
        path = _SNAKE.sub(lambda match: match[1].upper(), name)
        entries.append((path, error.details.get("provider_message") or error.message))
    if not entries:
        return problems.from_error(error)
    return Problems([_problem(path, text, form) for path, text in entries], error.kind.status)


def _problem(path: str, text: str, form: ProfileForm) -> Problem:
    """Return a problem with the id of its input, or of the group of inputs."""
    if path == "find":
        return Problem(path, in_words(text))
    name = path if _is_input(path, form) else input_of(path)
    part = part_of(path) if "-" in path else _ITEM.sub("", path)
    day = path.rpartition("-")[2]
    label = f"{values.field(part)}, {formats.weekday(day)}" if day in DAYS else values.field(part)
    return Problem(name if _is_input(name, form) or name in form.parts else "", f"{label}: {in_words(text)}")


def _is_input(name: str, form: ProfileForm) -> bool:
    return name in form.inputs or name.startswith(PREFIXES)
