"""Read a user's locations, keys and quotas for a dashboard, in a fixed number of statements."""

from collections import Counter
from dataclasses import dataclass, field

import orjson

from profilesvc.contract.connection import ConnectionState, ReasonHint
from profilesvc.contract.keys import KeyEntry
from profilesvc.domain import heartbeats, profiles
from profilesvc.domain.heartbeats import Period
from profilesvc.domain.plans import Plan
from profilesvc.domain.posts import can_have_posts
from profilesvc.domain.time import DAY, month_start
from profilesvc.domain.verification import has_flag
from profilesvc.services.context import Caller, Services
from profilesvc.services.heartbeats import reason_of
from profilesvc.services.key_events import entry
from profilesvc.storage import heartbeats as contacts
from profilesvc.storage import keys, locations, post_usage, users
from profilesvc.storage.heartbeats import KeyRow
from profilesvc.storage.insight import overview
from profilesvc.storage.insight.overview import SiteRow
from profilesvc.storage.keys import domains_of

MOST_KEYS = 5_000
# The problems of a location, the most urgent first.
PROBLEMS = (
    "deactivated",
    "secret_changed",
    "token_revoked",
    "secret_rejected",
    "was_online",
    "origin_not_allowed",
    "never_connected",
    "site_mismatch",
    "unverified",
    "drift",
    "rejected",
    "no_key",
)


OF_CONNECTED: tuple[ReasonHint | None, ...] = (None, "site_mismatch")


@dataclass(frozen=True, slots=True)
class KeyView:
    """A live key with its connection; instants in milliseconds."""

    row: KeyRow
    state: ConnectionState
    hint: ReasonHint | None
    hint_at: int | None = None


@dataclass(frozen=True, slots=True)
class SiteView:
    """A location with its live keys; `drift` names the leaves that differ from the provider's as last read.

    `is_overridden`: the public sees values that the provider has set itself, until the owner accepts or rejects them.
    """

    row: SiteRow
    title: str
    keys: list[KeyView]
    drift: list[str]
    is_overridden: bool
    rejected: int
    processing: int
    can_have_posts: bool = True
    problems: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        """The name without `locations/`."""
        return self.row.name.removeprefix("locations/")

    @property
    def checked_at(self) -> int:
        """Return when the profile that `drift` compares was read from the provider, in milliseconds."""
        return self.row.profile_read_at


@dataclass(frozen=True, slots=True)
class Choice:
    """A location that a new key could be bound to, or why it cannot."""

    name: str
    title: str
    business_id: int | None
    obstacle: str | None


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of a plan. Instants in milliseconds."""

    plan: Plan
    plans: list[Plan]
    posts: int
    resets_at: int
    locations: int
    keys: int


async def keys_of(services: Services, caller: Caller) -> list[KeyView]:
    """Return the caller's live keys with their connections, oldest first."""
    now = services.clock.now()
    async with services.storage.read() as session:
        rows = await overview.key_rows(session, caller.owner_id, now)
    views: dict[int, KeyView] = {}
    for row in rows:
        views.setdefault(row.id, _key(row, now))  # the most severe hold comes first
    return list(views.values())


async def all_keys(services: Services, caller: Caller, *, ended: bool) -> list[KeyEntry]:
    """Return the caller's keys, newest first; with `ended` also those revoked or expired, `MOST_KEYS` in all."""
    now = services.clock.now()
    async with services.storage.read() as session:
        rows = await keys.listing(session, caller.owner_id, None if ended else now, limit=MOST_KEYS)
    return [entry(row, now) for row in rows]


async def sites(services: Services, caller: Caller) -> list[SiteView]:
    """Return the caller's locations, the most urgent first. The provider is not called."""
    live = await keys_of(services, caller)
    async with services.storage.read() as session:
        rows = await overview.location_rows(session, caller.owner_id)
        in_review = await overview.posts_by_state(session, caller.owner_id)
    bound: dict[str, list[KeyView]] = {}
    for key in live:
        bound.setdefault(key.row.location_name, []).append(key)
    views = [_site(row, caller.plan, bound.get(row.name, []), in_review) for row in rows]
    return sorted(views, key=_urgency)


async def histories(services: Services, caller: Caller, sites: list[SiteView]) -> dict[str, list[Period]]:
    """Return the states of the last 30 days of sites with keys, by id, in one statement.

    A site with several keys is online while one of them is.
    """
    now = services.clock.now()
    ids = [key.row.id for site in sites for key in site.keys]
    async with services.storage.read() as session:
        spans = await contacts.spans_of_keys(session, caller.owner_id, ids, now - heartbeats.HISTORY) if ids else {}
    periods = {}
    for site in sites:
        if site.keys:
            runs = heartbeats.joined([span for key in site.keys for span in spans.get(key.row.id, [])])
            periods[site.id] = heartbeats.periods(runs, now, min(key.row.created_at for key in site.keys))
    return periods


async def connected_days(services: Services, caller: Caller, sites: list[SiteView]) -> list[int]:
    """Return how many of the sites sent a heartbeat on each of the last 30 days (UTC), today last, in one statement."""
    now, days = services.clock.now(), heartbeats.HISTORY // DAY
    ids = {key.row.id: site.id for site in sites for key in site.keys}
    if not any(key.row.last_heartbeat_at for site in sites for key in site.keys):
        return []
    async with services.storage.read(may_be_old=True) as session:
        runs = await contacts.runs(session, caller.owner_id, (now // DAY - days + 1) * DAY)
    spans = ((ids[key_id], heartbeats.Span(*times)) for key_id, *times in runs if key_id in ids)
    return heartbeats.daily_contacts(spans, now, days)


def _urgency(site: SiteView) -> int:
    """Order locations by their worst problem, then those without one, then those never connected."""
    worst = min(map(PROBLEMS.index, site.problems), default=len(PROBLEMS))
    return worst + (not site.keys and not site.problems)


def _key(row: KeyRow, now: int) -> KeyView:
    last_seen, other_at = row.last_heartbeat_at, row.other_site_host_at
    hosts = row.site_host, row.other_site_host
    mismatch = heartbeats.site_mismatch(hosts, other_at, domains_of(row.allowed_domains), now)
    reason = reason_of(row, is_held=row.hold_reason is not None, mismatch=mismatch, now=now)
    return KeyView(row, heartbeats.state(last_seen, now), *reason)


def _site(row: SiteRow, plan: Plan, keys: list[KeyView], in_review: dict[tuple[str, str], int]) -> SiteView:
    source, profile = orjson.loads(row.source or "{}"), orjson.loads(row.profile)
    drift = profiles.drift(source, profile, plan.syncable)
    is_overridden = has_flag(profile, "hasGoogleUpdated")
    rejected, processing = (in_review.get((row.name, state), 0) for state in ("REJECTED", "PROCESSING"))
    hints = {key.hint for key in keys if key.hint}
    if any(key.state == "online" and key.hint in OF_CONNECTED for key in keys):  # even if its older keys are not
        hints &= {"deactivated", *OF_CONNECTED}
    if all(key.state != "offline" for key in keys):  # idle is not a problem yet
        hints -= {"was_online"}
    present: dict[str, bool] = {
        **{str(hint): True for hint in hints},
        "unverified": not row.is_verified and bool(keys),
        "drift": bool(drift) or is_overridden,
        "rejected": rejected > 0,
    }
    problems = [name for name in PROBLEMS if present.get(name)]
    return SiteView(
        row, row.title or row.name, keys, drift, is_overridden, rejected, processing, can_have_posts(profile), problems
    )


async def choices(services: Services, caller: Caller) -> list[Choice]:
    """Return the caller's locations by title, and whether a new key may be bound to each (D-23)."""
    now, plan = services.clock.now(), caller.plan
    async with services.storage.read() as session:
        rows = await overview.location_rows(session, caller.owner_id)
        assigned = await locations.assigned(session, caller.owner_id)
        live = {row.id: row.location_name for row in await overview.key_rows(session, caller.owner_id, now)}
    bound, positions = Counter(live.values()), {name: position for position, name in enumerate(assigned)}
    choices_by_title = []
    for row in rows:
        obstacle = None
        if positions.get(row.name, len(assigned)) >= plan.locations:
            obstacle = f"beyond the locations of the plan {plan.display_name}"
        elif bound[row.name] >= plan.live_keys_per_location:
            obstacle = f"already has {plan.live_keys_per_location} keys; revoke one first"
        choices_by_title.append(Choice(row.name, row.title or row.name, row.business_id, obstacle))
    return choices_by_title


async def usage(services: Services, caller: Caller) -> Usage:
    """Return how much of the caller's plan is used, and all plans, the cheapest first."""
    now = services.clock.now()
    async with services.storage.read() as session:
        used = (await post_usage.find(session, caller.owner_id, month_start(now))).used
        assigned = await locations.assigned(session, caller.owner_id)
        live = {row.id for row in await overview.key_rows(session, caller.owner_id, now)}
    plans = list(services.plans.values())
    return Usage(caller.plan, plans, used, month_start(now, 1), len(assigned), len(live))


async def person(services: Services, caller: Caller) -> tuple[str, str]:
    """Return the name and e-mail address of the user who is calling."""
    async with services.storage.read() as session:
        user = await users.user(session, caller.owner_id)
    assert user is not None, "an authenticated user exists"
    return user.name, user.email
