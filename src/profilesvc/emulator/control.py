"""The control API under /__emulator/: switches, drift, faults, the clock and the recorded calls.

On a socket it accepts only JSON and only the token that `access.py` checks. It does not check the provider's tokens.

`GET state` returns `{switches, now, locations, posts, faults}`. `PUT state` accepts any of these fields, changes only
the ones it names, and returns the same as GET:

    {"switches": {"strict": true, "rewrites": true, "review_seconds": 5, "reject_phrase": "casino",
                  "refuse_refresh": false, "edits_per_minute": 10, "requests_per_minute": 300, ...},
     "locations": {"locations/114": {"phoneNumbers": {"primaryPhone": "+81 45-555-0177"}, "labels": null}},
     "google_updated": {"locations/114": {"title": "Harbour Bookshop"}},
     "voice_of_merchant": {"locations/113": {"hasVoiceOfMerchant": true, "hasBusinessAuthority": true}},
     "verifications": {"locations/113": []}, "attributes": {"locations/111": []},
     "blocked": {"locations/111": {"title": "THROTTLED", "websiteUri": "STALE_DATA"}},
     "posts": {"accounts/1/locations/111/localPosts/11112": {"state": "REJECTED"}},
     "reviews": {"accounts/1/locations/111/reviews/9": {"starRating": "TWO", "comment": "Cold."}},
     "accounts": {"accounts/4": {"accountName": "Dana Roy", "type": "PERSONAL"}},
     "new_locations": {"locations/411": {"account": "accounts/4", "profile": {"title": "Roy Bakery"}}},
     "logins": {"100004": {"email": "dana@example.com", "accounts": ["accounts/4"], "revoked": true}}}

`google_updated` and `reviews` also publish notifications. `locations` and `posts` merge top-level fields (null removes
one); a post's `state` ends its review with that state. `reviews` adds or replaces whole reviews (null removes one), and
`accounts` and `new_locations` add them. `logins` are those that the consent page offers; `revoked` ends all their
tokens. The other maps are replaced. `POST faults` accepts one fault or a list (faults.py). `DELETE faults` empties the
queue and releases held calls. `POST clock {"advance_seconds": n}` advances the clock and `{"now":
"2026-01-02T03:04:05Z"}` sets it, also to the past. `GET requests` returns `{requests: [{time, method, path, query,
body, status}]}`, oldest first, and `DELETE requests` deletes them. `GET pushes` returns the notifications that were
published, `{pushes: [{authorization, body}]}`, oldest first, and `DELETE pushes` deletes them. `POST reset` restores
the demo data.
"""

import json
from typing import Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from quart import Blueprint, ResponseReturnValue, g, request
from sqlmodel import select
from sqlmodel.ext.asyncio.session import AsyncSession

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.attributes import Attribute
from profilesvc.contract.provider.location import Location
from profilesvc.contract.provider.notification import NotificationType
from profilesvc.contract.provider.post import LocalPost
from profilesvc.contract.provider.review import Review
from profilesvc.domain.time import iso, parse_iso
from profilesvc.emulator.access import check_write
from profilesvc.emulator.consent import end_grants
from profilesvc.emulator.errors import ApiError, not_found
from profilesvc.emulator.faults import Fault
from profilesvc.emulator.locations import set_voice_of_merchant
from profilesvc.emulator.notifications import Change, published, push
from profilesvc.emulator.posts import rendered
from profilesvc.emulator.reviews import rendered as rendered_review
from profilesvc.emulator.seeding import clear, fill, post_row, review_row
from profilesvc.emulator.state import Emulator, Switches, emulator, load_switches
from profilesvc.emulator.store import dump, find
from profilesvc.emulator.tables import (
    EmulatorAccountRow,
    EmulatorLocationRow,
    EmulatorLoginRow,
    EmulatorPostRow,
    EmulatorReviewRow,
    EmulatorStateRow,
)

control = Blueprint("control", __name__, url_prefix="/__emulator")
_REPLACED = ("google_updated", "verifications", "attributes", "blocked")
_DOCUMENTS = ("document", "voice_of_merchant", "pending", *_REPLACED)


class LoginChange(BaseModel, extra="forbid"):
    """A login of the consent page."""

    email: str
    accounts: list[str] = []
    revoked: bool = False


class NewLocation(BaseModel, extra="forbid"):
    """A location to add, with its account."""

    account: str
    profile: JsonObject
    voice_of_merchant: JsonObject = {"hasVoiceOfMerchant": True, "hasBusinessAuthority": True}


class StateChange(BaseModel, extra="forbid"):
    """The body of PUT state; see the module."""

    switches: JsonObject = {}
    locations: dict[str, JsonObject] = {}
    google_updated: dict[str, JsonObject] = {}
    voice_of_merchant: dict[str, JsonObject] = {}
    verifications: dict[str, list[JsonObject]] = {}
    attributes: dict[str, list[Attribute]] = {}
    blocked: dict[str, dict[str, Literal["THROTTLED", "STALE_DATA"]]] = {}
    posts: dict[str, JsonObject] = {}
    reviews: dict[str, JsonObject | None] = {}
    accounts: dict[str, JsonObject] = {}
    new_locations: dict[str, NewLocation] = {}
    logins: dict[str, LoginChange] = {}


_CENTURY = 100 * 366 * 86_400  # seconds
_LATEST = 253_370_764_800_000  # the year 9999, in milliseconds


class ClockChange(BaseModel, extra="forbid"):
    """The body of POST clock: one of the two fields."""

    advance_seconds: float | None = Field(None, allow_inf_nan=False, ge=-_CENTURY, le=_CENTURY)
    now: str | None = None


@control.before_request
async def check_access() -> None:
    """Reject callers without the token, and writes that are not JSON."""
    access = emulator().access
    if access is None:
        return
    access.check_caller(request.headers.get("Host", ""), request.headers.get("Authorization", ""))
    if request.method != "GET":
        check_write(request.mimetype, has_body=bool(await request.get_data()))


@control.errorhandler(ValidationError)
async def validation_error(error: ValidationError) -> ResponseReturnValue:
    """Return 400 and name the first invalid field."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    return ApiError(400, f"{where}: {problem['msg']}").body(), 400


@control.get("/state")
async def get_state() -> JsonObject:
    shared = emulator()
    async with shared.store.read() as session:
        return await _state(session, shared)


async def _state(session: AsyncSession, shared: Emulator) -> JsonObject:
    switches = await load_switches(session)
    now = shared.clock.now() + switches.clock_offset_ms
    locations = (await session.exec(select(EmulatorLocationRow))).all()
    posts = (await session.exec(select(EmulatorPostRow))).all()
    reviews = (await session.exec(select(EmulatorReviewRow))).all()
    return {
        "switches": switches.model_dump(),
        "now": iso(now),
        "locations": {
            row.name: {"account": row.account} | {column: json.loads(getattr(row, column)) for column in _DOCUMENTS}
            for row in locations
        },
        "posts": {row.name: rendered(row, now) for row in posts},
        "reviews": {row.name: rendered_review(row, now) for row in reviews},
        "faults": shared.faults.listing(),
    }


@control.put("/state")
async def put_state() -> JsonObject:
    """Change the named fields, all or none."""
    change = StateChange.model_validate_json(await request.get_data())
    shared = emulator()
    async with shared.store.write() as session:
        switches = {**(await load_switches(session)).model_dump(), **change.switches}
        await _set_switches(session, switches)
        for name, fields in change.locations.items():
            row = await find(session, EmulatorLocationRow, name)
            row.document = dump(_merged(Location, json.loads(row.document), fields))
        await _add(session, change)
        for name, state in change.voice_of_merchant.items():
            set_voice_of_merchant(await find(session, EmulatorLocationRow, name), state)
        for column in _REPLACED:
            for name, value in change.model_dump(exclude_unset=True).get(column, {}).items():
                setattr(await find(session, EmulatorLocationRow, name), column, dump(value))
        for name, fields in change.posts.items():
            await _put_post(session, name, fields)
        news = [
            Change("GOOGLE_UPDATE", (await find(session, EmulatorLocationRow, name)).account, name)
            for name, value in change.google_updated.items()
            if value
        ]
        for name, review in change.reviews.items():
            news += await _change_review(session, name, review)
        g.switches = await load_switches(session)
        pushes = await published(session, news)
        await session.flush()
        state = await _state(session, shared)
    push(pushes)
    return state


async def _add(session: AsyncSession, change: StateChange) -> None:
    """Add accounts, locations and logins."""
    for position, (name, document) in enumerate(change.accounts.items(), start=1000):
        await session.merge(EmulatorAccountRow(name=name, position=position, document=dump({**document, "name": name})))
    for name, new in change.new_locations.items():
        document = _merged(Location, {"name": name}, new.profile)
        row = EmulatorLocationRow(name=name, account=new.account, document=dump(document))
        set_voice_of_merchant(row, new.voice_of_merchant)
        await session.merge(row)
    for subject, login in change.logins.items():
        await session.merge(EmulatorLoginRow(subject=subject, email=login.email, accounts=dump(login.accounts)))
        if login.revoked:
            await end_grants(session, subject)


async def _set_switches(session: AsyncSession, values: JsonObject) -> None:
    row = (await session.exec(select(EmulatorStateRow))).one()
    row.document = Switches.model_validate(values).model_dump_json()


def _merged(model: type[BaseModel], document: JsonObject, fields: JsonObject) -> JsonObject:
    merged = {key: value for key, value in {**document, **fields}.items() if value is not None}
    model.model_validate(merged)
    return merged


async def _put_post(session: AsyncSession, name: str, fields: JsonObject) -> None:
    """Change a post, or create it if the fields are a whole post with its state."""
    row = await session.get(EmulatorPostRow, name)
    if row is not None:
        merged = _merged(LocalPost, json.loads(row.document), fields)
        if state := merged.pop("state", None):
            row.verdict, row.review_ends = state, 0
            row.publish_at = 0
        row.document = dump(merged)
        return
    parent = name.partition("/localPosts/")[0]
    location = await find(session, EmulatorLocationRow, f"locations/{parent.rpartition('/')[2]}")
    if "state" not in fields or name == parent or parent != f"{location.account}/{location.name}":
        raise not_found()
    at = iso(emulator().clock.now() + (await load_switches(session)).clock_offset_ms)
    document = {"createTime": at, "updateTime": at, **fields, "name": name}
    LocalPost.model_validate(document)
    session.add(post_row(parent, document))


async def _change_review(session: AsyncSession, name: str, review: JsonObject | None) -> list[Change]:
    """Add, replace or delete a review; return what is published of it."""
    parent, _, ident = name.partition("/reviews/")
    location = await find(session, EmulatorLocationRow, f"locations/{parent.rpartition('/')[2]}")
    if not ident or parent != f"{location.account}/{location.name}":
        raise not_found()
    if review is None:
        await session.delete(await find(session, EmulatorReviewRow, name))
        return []
    kind: NotificationType = "UPDATED_REVIEW" if await session.get(EmulatorReviewRow, name) else "NEW_REVIEW"
    at = iso(emulator().clock.now() + (await load_switches(session)).clock_offset_ms)
    document = {"createTime": at, "updateTime": at, **review, "name": name, "reviewId": ident}
    Review.model_validate(document)
    await session.merge(review_row(document))
    return [Change(kind, location.account, location.name, name)]


@control.post("/faults")
async def post_faults() -> JsonObject:
    """Queue a fault, or a list of them."""
    body: Fault | list[Fault] = TypeAdapter(Fault | list[Fault]).validate_json(await request.get_data())
    for fault in body if isinstance(body, list) else [body]:
        emulator().faults.add(fault)
    return {"faults": emulator().faults.listing()}


@control.delete("/faults")
async def delete_faults() -> JsonObject:
    """Empty the queue and release held calls."""
    emulator().faults.clear()
    return {}


@control.post("/clock")
async def post_clock() -> JsonObject:
    """Advance or set the emulator's clock."""
    change = ClockChange.model_validate_json(await request.get_data())
    shared = emulator()
    async with shared.store.write() as session:
        switches = await load_switches(session)
        if change.now is not None:
            try:
                offset = parse_iso(change.now) - shared.clock.now()
            except ValueError as error:
                raise ApiError(400, f"now: {error}") from None
        elif change.advance_seconds is not None:
            offset = switches.clock_offset_ms + round(change.advance_seconds * 1000)
        else:
            raise ApiError(400, "Field `advance_seconds` or `now` is required")
        if not 0 < shared.clock.now() + offset < _LATEST:
            raise ApiError(400, "The time must be in the years 1970 to 9998")
        await _set_switches(session, {**switches.model_dump(), "clock_offset_ms": offset})
        return {"now": iso(shared.clock.now() + offset)}


@control.get("/requests")
async def get_requests() -> JsonObject:
    """Return the last 1000 calls."""
    return {"requests": list(emulator().calls)}


@control.delete("/requests")
async def delete_requests() -> JsonObject:
    emulator().calls.clear()
    return {}


@control.get("/pushes")
async def get_pushes() -> JsonObject:
    """Return the last 20,000 notifications."""
    await emulator().settle()
    return {"pushes": list(emulator().pushes)}


@control.delete("/pushes")
async def delete_pushes() -> JsonObject:
    emulator().pushes.clear()
    return {}


@control.post("/reset")
async def reset() -> JsonObject:
    """Restore the demo data, the switches and the clock. Delete faults, recorded calls and counts of limits."""
    shared = emulator()
    shared.faults.clear()
    shared.calls.clear()
    shared.pushes.clear()
    await shared.limiter.storage.reset()
    async with shared.store.write() as session:
        await clear(session)
        fill(session, shared.world, shared.clock.now())
        await session.flush()
        return await _state(session, shared)
