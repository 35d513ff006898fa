"""The list of keys, and the search for the location of a new key."""

import hashlib
from collections.abc import Callable, Mapping

from profilesvc.contract.json import JsonObject
from profilesvc.contract.keys import KeyEntry
from profilesvc.dashboard import pages
from profilesvc.dashboard.listing import Choices, Listing, matches, page_of
from profilesvc.dashboard.visits import Visit
from profilesvc.language import texts
from profilesvc.language.texts import N_, Words
from profilesvc.services.insight import overview
from profilesvc.services.insight.overview import Choice

PATH = f"{pages.PATH}/keys"
FEW = 10  # with more keys or locations than this, there is a search
STATES = Words(
    active=N_("Active"),
    deactivated=N_("Deactivated"),
    unused=N_("Never used"),
    revoked=N_("Revoked or expired"),
    all=N_("All, also revoked"),
)
SORTS = Words(created=N_("Newest"), name=N_("Name"), location=N_("Location"), used=N_("Longest without use"))
CHOICES: Choices = {"q": None, "state": tuple(STATES), "sort": tuple(SORTS), "page": None}
_MOST_MATCHES = 10  # locations that a search shows


def listing_of(given: Mapping[str, str]) -> Listing:
    """Return the list that a URL describes."""
    return Listing.of(PATH, given, CHOICES)


async def search(visit: Visit, listing: Listing, choices: list[Choice]) -> list[KeyEntry]:
    titles = {choice.name: choice.title for choice in choices}
    state = listing.get("state")
    entries = await overview.all_keys(visit.services, visit.caller, ended=state in ("revoked", "all"))
    matching = [key for key in entries if _has_state(key, state) and _matches(key, listing.get("q"), titles)]
    if listing.get("sort") in _ORDERS:
        matching.sort(key=_ORDERS[listing.get("sort")](titles))
    return matching


async def page_values(visit: Visit, listing: Listing, choices: list[Choice]) -> JsonObject:
    """Return what the template of the list needs."""
    page = page_of(await search(visit, listing, choices), listing)
    titles = {choice.name: choice.title for choice in choices}
    rows = [(key, titles.get(key.assigned_location_id)) for key in page.rows]
    return {
        "seen": hashlib.sha256(repr((page.total, page.page, texts.language(), rows)).encode()).hexdigest()[:16],
        "listing": listing,
        "page": page,
        "titles": titles,
        "key_states": STATES,
        "sorts": SORTS,
        "has_search": page.total > FEW or listing.values.keys() - {"state"} or listing.get("state") not in ("", "all"),
    }


HEADER = (
    *("Name", "Client id", "Location", "Location id", "State", "Reason", "Domain"),
    *("Created", "Last used", "Valid until"),
)


def row(key: KeyEntry, titles: dict[str, str]) -> tuple[object, ...]:
    where = key.assigned_location_id
    state = STATES[key.status], key.deactivation_reason
    times = key.created_at, key.last_used_at, key.expires_at
    return key.name, key.client_id, titles.get(where), where, *state, key.primary_domain, *times


def _has_state(key: KeyEntry, state: str) -> bool:
    if state == "unused":
        return key.last_used_at is None
    return state in ("", "all", key.status)


def _matches(key: KeyEntry, text: str, titles: dict[str, str]) -> bool:
    ids = (key.client_id, key.assigned_location_id)
    return matches(text, key.name, key.primary_domain, titles.get(key.assigned_location_id), ids=ids)


_Order = Callable[[KeyEntry], str]
_ORDERS: dict[str, Callable[[dict[str, str]], _Order]] = {
    "name": lambda _: lambda key: key.name.casefold(),
    "location": lambda titles: lambda key: titles.get(key.assigned_location_id, "").casefold(),
    "used": lambda _: lambda key: key.last_used_at or "",
}


def unavailable(choices: list[Choice], form: Mapping[str, str]) -> Choice | None:
    """Return the wanted location and the reason why it cannot have a key, so that the form does not offer another."""
    wanted = form.get("location", "")
    choice_of_name = next((choice for choice in choices if choice.name == wanted), None)
    if not wanted or (choice_of_name is not None and choice_of_name.obstacle is None):
        return None
    return choice_of_name or Choice(wanted, wanted, None, "is not one of your locations")


def locations(choices: list[Choice], form: Mapping[str, str]) -> JsonObject:
    """Return the locations that the form offers: all of a few, else the selected one and those that a search found."""
    if len(choices) <= FEW:
        return {"choices": choices, "is_search": False, "more": 0}
    selected = [choice for choice in choices if choice.name == form.get("location") and choice.obstacle is None]
    words = form.get("find", "").strip()
    matching = [
        choice for choice in choices if matches(words, choice.title, ids=(choice.name,)) and choice not in selected
    ]
    if not words:
        matching = [] if selected else [choice for choice in matching if choice.obstacle is None]
    more = max(len(matching) - _MOST_MATCHES, 0)
    return {"choices": selected + matching[:_MOST_MATCHES], "is_search": True, "more": more}
