"""The list of sites: which of them are shown, in which order, and with which history."""

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from profilesvc.contract.json import JsonObject
from profilesvc.dashboard import pages
from profilesvc.dashboard.listing import Choices, Listing, matches, page_of
from profilesvc.dashboard.visits import Visit
from profilesvc.dashboard.words import words
from profilesvc.domain import heartbeats
from profilesvc.domain.heartbeats import HISTORY, Period
from profilesvc.domain.plans import Plan
from profilesvc.domain.time import HOUR
from profilesvc.language.texts import N_, Words, _, language, ngettext, plural
from profilesvc.services.insight import overview
from profilesvc.services.insight.overview import SiteView

PATH = pages.PATH
LIVE = f"{pages.PATH}/sites/live"
FEW = 10  # with more sites than this, each is a row
STATES = ("online", "idle", "offline", "deactivated", "none")
SORTS = Words(
    attention=N_("Problems first"),
    name=N_("Name"),
    business=N_("Business"),
    heartbeat=N_("Oldest heartbeat"),
    checked=N_("Oldest check"),
)
NEEDS = Words(
    any=N_("Any problem"),
    drift=N_("Fields that differ"),
    rejected=N_("Rejected posts"),
    no_key=N_("No key"),
    unverified=N_("Not verified"),
)
CHOICES: Choices = {
    "q": None,
    "state": STATES,
    "business": None,
    "sync": ("on", "off"),
    "needs": tuple(NEEDS),
    "sort": tuple(SORTS),
    "page": None,
    "select": ("all",),
}
_MOST_BUSINESSES = 50  # suggested ones
_TAGS = Words(
    deactivated=N_("Deactivated"),
    secret_changed=N_("New secret not used yet"),
    token_revoked=N_("Token revoked"),
    secret_rejected=N_("Wrong secret"),
    was_online=N_("No heartbeat"),
    origin_not_allowed=N_("Domain not allowed"),
    never_connected=N_("Never connected"),
    site_mismatch=N_("Heartbeats of another site"),
    unverified=N_("Not verified"),
)
_WIDTH = 120  # units of the bar of 30 days: six hours each


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of the first page. They are of all sites, not only of the matches."""

    sites: int
    attention: int
    drifted: int
    rejected: int
    states: dict[str, int]
    steps: dict[str, bool]  # the first steps of an account, and whether each is done; empty if they are not shown

    @classmethod
    def of(cls, sites: list[SiteView], plan: Plan) -> "Numbers":
        states = Counter(map(state_of, sites))
        return cls(
            len(sites),
            sum(bool(site.problems) for site in sites),
            sum("drift" in site.problems for site in sites),
            sum(bool(site.rejected) for site in sites),
            {name: states[name] for name in STATES},
            first_steps(sites, plan),
        )

    @property
    def tiles(self) -> list[tuple[int, str, str]]:
        """The numbers on the first page: a count, the query of the list that has these sites, and a text."""
        return [
            (self.sites, "", plural("site", "sites", self.sites)),
            (self.attention, "?needs=any", plural("needs attention", "need attention", self.attention)),
            (self.states["online"], "?state=online", _("online")),
            (self.states["offline"], "?state=offline", _("offline")),
            (self.states["none"], "?needs=no_key", _("without a key")),
            (self.drifted, "?needs=drift", plural("differs at the provider", "differ at the provider", self.drifted)),
            *([(self.rejected, "?needs=rejected", _("with rejected posts"))] if self.rejected else []),
        ]

    @property
    def parts(self) -> list[tuple[str, float, float]]:
        """The parts of the chart: state, start and width, of 100."""
        parts, start = [], 0.0
        for name, count in self.states.items():
            if count:
                parts.append((name, round(start, 2), round(count * 100 / self.sites, 2)))
                start += count * 100 / self.sites
        return parts


def first_steps(sites: list[SiteView], plan: Plan) -> dict[str, bool]:
    """Return the first steps of an account and whether each is done, or nothing if the user has taken them.

    An account with many connected sites has no use for them, even if it never syncs.
    """
    is_connected = any(_heartbeat(site) for site in sites)
    steps = {"connect": bool(sites), "key": any(site.keys for site in sites), "plugin": is_connected}
    if plan.sync:
        steps["sync"] = any(site.row.sync_enabled for site in sites)
    return {} if all(steps.values()) or (is_connected and len(sites) > FEW) else steps


@dataclass(frozen=True, slots=True)
class Bar:
    """The 30 days of a site: the online part in percent, and a path in the picture for each state."""

    percent: float | None
    paths: dict[str, str]


def listing_of(given: JsonObject) -> Listing:
    """Return the list that a URL describes."""
    return Listing.of(PATH, given, CHOICES)


def state_of(site: SiteView) -> str:
    """Return the state of a site: that of its best key, or `none` without a key."""
    states = {words.shown_state(key) for key in site.keys}
    return next((name for name in STATES if name in states), "none")


def search(sites: list[SiteView], listing: Listing) -> list[SiteView]:
    matching = [site for site in sites if _is_found(site, listing)]
    order = _ORDERS.get(listing.get("sort"))
    return matching if order is None else sorted(matching, key=order)


def _is_found(site: SiteView, listing: Listing) -> bool:
    state, needs = listing.get("state"), listing.get("needs")
    sync = listing.get("sync")
    if state and state_of(site) != state:
        return False
    if sync and site.row.sync_enabled != (sync == "on"):
        return False
    if needs and not _has_need(site, needs):
        return False
    if not matches(listing.get("business"), site.row.business_name):
        return False
    keys = [part for key in site.keys for part in (key.row.name, key.row.site_host)]
    return matches(listing.get("q"), site.title, site.row.business_name, *keys, ids=(site.row.name,))


def _has_need(site: SiteView, needs: str) -> bool:
    if needs == "no_key":
        return not site.keys
    return bool(site.problems) if needs == "any" else needs in site.problems


def _heartbeat(site: SiteView) -> int:
    return max((key.row.last_heartbeat_at or 0 for key in site.keys), default=0)


# Sites come in the order of attention; `sorted` keeps it among equals.
_ORDERS: dict[str, Callable[[SiteView], tuple[int | str, ...]]] = {
    "name": lambda site: (site.title.casefold(),),
    "business": lambda site: ((site.row.business_name or "").casefold(), site.title.casefold()),
    "heartbeat": lambda site: (not site.keys, _heartbeat(site)),
    "checked": lambda site: (site.checked_at,),
}


def businesses(sites: list[SiteView]) -> list[str]:
    """Return the names of businesses to suggest: few enough for a list."""
    return sorted({site.row.business_name for site in sites if site.row.business_name})[:_MOST_BUSINESSES]


def bar(periods: list[Period], now: int) -> Bar:
    """Draw the periods as a path for each state, in units of six hours."""
    paths: dict[str, str] = {}
    for one in periods:
        start, end = ((at - (now - HISTORY)) * _WIDTH // HISTORY for at in (one.from_, one.to))
        paths[one.state] = paths.get(one.state, "") + f"M{start} 0h{max(end - start, 1)}v9H{start}z"
    return Bar(percent(periods), paths)


def percent(periods: list[Period]) -> float | None:
    """Return the online part, rounded down, so that 100 % is never shown for a site that was away."""
    share = heartbeats.online_share(periods)
    return None if share is None else int(share * 1000) / 10


def tags(site: SiteView) -> list[str]:
    """Return the problems of a site in a few words each, the most urgent first."""
    differ = ngettext("%(num)s field differs", "%(num)s fields differ", len(site.drift))
    counted = {
        "drift": differ if site.drift else _("Changed by the provider"),
        "rejected": ngettext("%(num)s post rejected", "%(num)s posts rejected", site.rejected),
    }
    return [counted.get(name) or _TAGS[name] for name in site.problems]


def _digest(*values: object) -> str:
    return hashlib.sha256(repr(values).encode()).hexdigest()[:8]


def row_digest(site: SiteView, form: str, now: int) -> str:
    """Return a fingerprint of what a row shows in a form, so that an unchanged row is not sent again.

    The bar grows with time, so that each row changes once an hour.
    """
    row = site.row._replace(profile="", source="")
    keys = [(key.state, key.hint, tuple(key.row)) for key in site.keys]
    counts = site.drift, site.is_overridden, site.rejected, site.processing
    return _digest(language(), form, row, site.title, site.problems, counts, keys, now // HOUR)


async def page_values(visit: Visit, listing: Listing, sites: list[SiteView], seen: str = "") -> JsonObject:
    """Return what the templates need for a page of the list of these sites.

    `seen` has the digests of the rows that the reader has; these rows are not sent again.
    """
    page, is_dense = page_of(search(sites, listing), listing), len(sites) > FEW
    numbers = Numbers.of(sites, visit.caller.plan)
    form = f"{is_dense} {listing.get('select')}"
    digests = {site.id: row_digest(site, form, visit.now) for site in page.rows}
    now_seen = ".".join((_digest(numbers, page.total, page.page, list(digests)), *digests.values()))
    old = set(seen.split("."))
    unchanged = {ident for ident, value in digests.items() if value in old}
    fresh = [site for site in page.rows if site.id not in unchanged]
    histories = await overview.histories(visit.services, visit.caller, fresh)
    return {
        "listing": listing,
        "numbers": numbers,
        "page": page,
        "kept": unchanged,
        "seen": now_seen,
        "is_same": now_seen == seen,
        "is_dense": is_dense,
        "bars": {ident: bar(periods, visit.now) for ident, periods in histories.items()},
        "businesses": businesses(sites),
        "query": listing.link().removeprefix(PATH),
        "tags": tags,
        "state_of": state_of,
        "needs": NEEDS,
        "sorts": SORTS,
    }
