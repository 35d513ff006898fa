"""Locations (Business Information v1): list, get, patch, and what consumers see."""

import json

from quart import Blueprint
from sqlmodel import select
from sqlmodel.ext.asyncio.session import AsyncSession

from profilesvc.contract.provider.location import Location
from profilesvc.emulator.errors import bad_request, not_found
from profilesvc.emulator.filters import location_filter, location_order
from profilesvc.emulator.masks import Path, applied, read_mask, trimmed, update_mask
from profilesvc.emulator.rules import check_blocked, check_location, check_service_area, settled
from profilesvc.emulator.state import count_edit, emulator, now, switches
from profilesvc.emulator.store import dump
from profilesvc.emulator.tables import EmulatorAccountRow, EmulatorLocationRow
from profilesvc.emulator.wire import Document, page, pruned, read_message, read_query

locations = Blueprint("locations", __name__)
EVERY_ACCOUNT = "-"
_WHOLE: list[Path] = [(name,) for name in Location.model_fields]


async def find_location(session: AsyncSession, location: str) -> EmulatorLocationRow:
    """The location by its bare id, or 404."""
    row = await session.get(EmulatorLocationRow, f"locations/{location}")
    if row is None:
        raise not_found()
    return row


def _pending(row: EmulatorLocationRow) -> dict[str, Document]:
    """Return the edits that are still in review, by field."""
    return {member: edit for member, edit in json.loads(row.pending).items() if now() < edit["ends"]}


def _visible(row: EmulatorLocationRow, mask: list[Path]) -> Document:
    document = json.loads(row.document)
    flags = {"hasGoogleUpdated": row.google_updated != "{}", "hasPendingEdits": bool(_pending(row))}
    document["metadata"] = {**document.get("metadata", {}), **{flag: True for flag, set_ in flags.items() if set_}}
    result: Document = pruned(trimmed(document, mask))
    return result


@locations.get("/v1/accounts/<name:account>/locations")
async def list_locations(account: str) -> Document:
    """The locations of an account, or of all by `-`; `totalSize` comes with a filter only."""
    query = read_query("readMask", "pageSize", "pageToken", "filter", "orderBy")
    mask = read_mask(query.get("readMask"), Location)
    wanted = select(EmulatorLocationRow)
    async with emulator().store.read() as session:
        if account != EVERY_ACCOUNT:
            if await session.get(EmulatorAccountRow, f"accounts/{account}") is None:
                raise not_found()
            wanted = wanted.where(EmulatorLocationRow.account == f"accounts/{account}")
        found = [(json.loads(row.document), row) for row in (await session.exec(wanted)).all()]
    order = location_order(query.get("orderBy", ""))
    if query.get("filter"):
        test = location_filter(query["filter"])
        found = [(document, row) for document, row in found if test(document)]
    found.sort(key=lambda pair: order(pair[0]))
    chunk, more = page(found, lambda pair: order(pair[0]), query, (10, 100))
    total = {"totalSize": len(found)} if query.get("filter") and found else {}
    return {**({"locations": [_visible(row, mask) for _, row in chunk]} if chunk else {}), **more, **total}


@locations.get("/v1/locations/<name:location>")
async def get_location(location: str) -> Document:
    """Return the location as the merchant last set it, only the masked fields."""
    mask = read_mask(read_query("readMask").get("readMask"), Location)
    async with emulator().store.read() as session:
        return _visible(await find_location(session, location), mask)


@locations.get("/v1/locations/<name:location>:getGoogleUpdated")
async def get_google_updated(location: str) -> Document:
    """The location as consumers see it, where that differs from the merchant's, and which edits are in review.

    After reading it, a client can edit a field again that was rejected as STALE_DATA.
    """
    mask = read_mask(read_query("readMask").get("readMask"), Location)
    async with emulator().store.write() as session:
        row = await find_location(session, location)
        row.blocked = dump({member: why for member, why in json.loads(row.blocked).items() if why != "STALE_DATA"})
        session.add(row)
    pending, updated = _pending(row), json.loads(row.google_updated)
    shown = {member: edit["shown"] for member, edit in pending.items()}
    seen = pruned(trimmed({**json.loads(row.document), **shown, **updated}, mask))
    masks = {"diffMask": ",".join(sorted({*shown, *updated})), "pendingMask": ",".join(sorted(pending))}
    answer: Document = pruned({"location": seen, **masks})
    return answer


@locations.patch("/v1/locations/<name:location>")
async def patch_location(location: str) -> Document:
    """Set the masked fields to the body's values; clear those that the body lacks."""
    query = read_query("updateMask", "validateOnly")
    strict = switches().strict
    mask = update_mask(query.get("updateMask"), Location, strict=strict)
    if query.get("validateOnly", "false") not in ("true", "false"):
        raise bad_request("validate_only", "Must be true or false")
    body = await read_message(Location, "location")
    async with emulator().store.write() as session:
        row = await find_location(session, location)
        check_blocked(json.loads(row.blocked), mask)
        before = json.loads(row.document)
        check_service_area(before, mask, strict=strict)
        after = applied(before, body, mask)
        check_location(before, after, strict=strict)
        if query.get("validateOnly") == "true":
            return {}
        await count_edit(row.name)
        _store(row, before, settled(after, mask) if strict else after, mask)
        session.add(row)
        answer = _visible(row, _WHOLE)
        _reverify(row, before)
    return answer


def _store(row: EmulatorLocationRow, before: Document, after: Document, mask: list[Path]) -> None:
    """The merchant's value counts at once, and decides what the provider changed; consumers see it after its review."""
    row.document = dump(after)
    decided = {path[0] for path in mask}
    updated = json.loads(row.google_updated)
    row.google_updated = dump({member: value for member, value in updated.items() if member not in decided})
    pending, period = _pending(row), round(switches().edit_review_seconds * 1000)
    for member in sorted(decided):
        if period and before.get(member) != after.get(member):
            shown = pending.get(member, {"shown": before.get(member)})["shown"]
            pending[member] = {"ends": now() + period, "shown": shown}
    row.pending = dump(pending)


def _reverify(row: EmulatorLocationRow, before: Document) -> None:
    """Remove the voice of merchant after some changes of name or address. The patch's response does not show it."""
    after = json.loads(row.document)
    changed = any(before.get(member) != after.get(member) for member in ("title", "storefrontAddress"))
    if changed and switches().reverify:
        set_voice_of_merchant(row, {"hasBusinessAuthority": True, "verify": {}})


def set_voice_of_merchant(row: EmulatorLocationRow, state: Document) -> None:
    """Keep metadata.hasVoiceOfMerchant in step, as the provider does."""
    row.voice_of_merchant = dump(state)
    document = json.loads(row.document)
    has_voice = {"hasVoiceOfMerchant": bool(state.get("hasVoiceOfMerchant"))}
    row.document = dump({**document, "metadata": {**document.get("metadata", {}), **has_voice}})
