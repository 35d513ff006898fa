"""Locations (Business Information v1): list, get, patch, and the view of consumers."""

import json

from quart import Blueprint
from sqlmodel import select
from sqlmodel.ext.asyncio.session import AsyncSession

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.location import Location
from profilesvc.emulator.errors import bad_request, not_found
from profilesvc.emulator.filters import location_filter, location_order
from profilesvc.emulator.masks import Path, applied, read_mask, trimmed, update_mask
from profilesvc.emulator.rewriting import rewritten
from profilesvc.emulator.rules import check_blocked, check_location, check_service_area, settled
from profilesvc.emulator.state import count_edit, count_update, emulator, login, now, switches
from profilesvc.emulator.store import dump, find
from profilesvc.emulator.tables import EmulatorAccountRow, EmulatorLocationRow
from profilesvc.emulator.wire import page, pruned, read_message, read_query

locations = Blueprint("locations", __name__)
EVERY_ACCOUNT = "-"
_WHOLE: list[Path] = [(name,) for name in Location.model_fields]


async def find_location(session: AsyncSession, location: str) -> EmulatorLocationRow:
    """Return the location by its id without prefix.

    Raises:
        ApiError: 404.
    """
    row = await find(session, EmulatorLocationRow, f"locations/{location}")
    if not login().sees(row.account):
        raise not_found()
    return row


async def find_in_account(session: AsyncSession, account: str, location: str) -> EmulatorLocationRow:
    """Return a location of an account; both ids are without prefix.

    Raises:
        ApiError: 404.
    """
    row = await find_location(session, location)
    if row.account != f"accounts/{account}":
        raise not_found()
    return row


async def find_account(session: AsyncSession, account: str) -> EmulatorAccountRow:
    """Return the account by its id without prefix.

    Raises:
        ApiError: 404.
    """
    row = await find(session, EmulatorAccountRow, f"accounts/{account}")
    if not login().sees(row.name):
        raise not_found()
    return row


def _pending(row: EmulatorLocationRow) -> dict[str, JsonObject]:
    """Return the edits in review, by field."""
    return {name: edit for name, edit in json.loads(row.pending).items() if now() < edit["ends"]}


def _visible(row: EmulatorLocationRow, mask: list[Path]) -> JsonObject:
    document = json.loads(row.document)
    flags = {"hasGoogleUpdated": row.google_updated != "{}", "hasPendingEdits": bool(_pending(row))}
    document["metadata"] = {**document.get("metadata", {}), **{flag: True for flag, set_ in flags.items() if set_}}
    chosen = trimmed(document, mask)
    result: JsonObject = pruned(chosen)
    if chosen.get("metadata", {}).get("canOperateLocalPost") is False:  # its absence says nothing
        result.setdefault("metadata", {})["canOperateLocalPost"] = False
    return result


@locations.get("/v1/accounts/<name:account>/locations")
async def list_locations(account: str) -> JsonObject:
    """Return the locations of an account, or of all accounts for `-`. `totalSize` is present only with a filter."""
    query = read_query("readMask", "pageSize", "pageToken", "filter", "orderBy")
    mask = read_mask(query.get("readMask"), Location)
    statement = select(EmulatorLocationRow)
    async with emulator().store.read() as session:
        if account != EVERY_ACCOUNT:
            known = await find_account(session, account)
            statement = statement.where(EmulatorLocationRow.account == known.name)
        rows = [row for row in (await session.exec(statement)).all() if login().sees(row.account)]
        matching = [(json.loads(row.document), row) for row in rows]
    order = location_order(query.get("orderBy", ""))
    if query.get("filter"):
        test = location_filter(query["filter"])
        matching = [(document, row) for document, row in matching if test(document)]
    matching.sort(key=lambda pair: order(pair[0]))
    chunk, more = page(matching, lambda pair: order(pair[0]), query, (10, 100))
    total = {"totalSize": len(matching)} if query.get("filter") and matching else {}
    return {**({"locations": [_visible(row, mask) for _, row in chunk]} if chunk else {}), **more, **total}


@locations.get("/v1/locations/<name:location>")
async def get_location(location: str) -> JsonObject:
    """Return the location as the merchant last set it, only the masked fields."""
    mask = read_mask(read_query("readMask").get("readMask"), Location)
    async with emulator().store.read() as session:
        return _visible(await find_location(session, location), mask)


@locations.get("/v1/locations/<name:location>:getGoogleUpdated")
async def get_google_updated(location: str) -> JsonObject:
    """Return the location as consumers see it, the fields that differ, and the fields whose edits are in review.

    A client that has read it can again edit fields that were rejected as STALE_DATA.
    """
    mask = read_mask(read_query("readMask").get("readMask"), Location)
    async with emulator().store.write() as session:
        row = await find_location(session, location)
        row.blocked = dump({name: reason for name, reason in json.loads(row.blocked).items() if reason != "STALE_DATA"})
    pending, updated = _pending(row), json.loads(row.google_updated)
    earlier = {name: edit["shown"] for name, edit in pending.items()}
    seen = pruned(trimmed({**json.loads(row.document), **earlier, **updated}, mask))
    masks = {"diffMask": ",".join(sorted({*earlier, *updated})), "pendingMask": ",".join(sorted(pending))}
    response: JsonObject = pruned({"location": seen, **masks})
    return response


@locations.patch("/v1/locations/<name:location>")
async def patch_location(location: str) -> JsonObject:
    """Set the masked fields to the body's values, and clear those that the body lacks."""
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
        check_location(before, after, mask, strict=strict)
        if query.get("validateOnly") == "true":
            return {}
        await count_edit(row.name)
        await count_update()
        after = settled(after, mask) if strict else after
        _store(row, before, rewritten(after, mask) if switches().rewrites else after, mask)
        response = _visible(row, _WHOLE)
        stored = json.loads(row.document)
        changed = any(before.get(name) != stored.get(name) for name in ("title", "storefrontAddress"))
        if changed and switches().reverify:  # the response does not show it
            set_voice_of_merchant(row, {"hasBusinessAuthority": True, "verify": {}})
    return response


def _store(row: EmulatorLocationRow, before: JsonObject, after: JsonObject, mask: list[Path]) -> None:
    """Store the merchant's values, which accept or reject the provider's own changes of the same fields.

    Consumers see them after a review, except where they already see the same value.
    """
    row.document = dump(after)
    updated, pending = json.loads(row.google_updated), _pending(row)
    period = round(switches().edit_review_seconds * 1000)
    for name in sorted({path[0] for path in mask}):
        is_overridden = name in updated
        if before.get(name) == after.get(name) and not is_overridden:
            continue
        seen = pending[name]["shown"] if name in pending else before.get(name)
        if is_overridden:
            seen = updated.pop(name)
            rest = applied({name: seen}, after, [path for path in mask if path[0] == name]).get(name)
            if rest != after.get(name):  # only a part of the message was accepted or rejected
                updated[name] = rest
        if period and seen != after.get(name):
            pending[name] = {"ends": now() + period, "shown": seen}
        else:
            pending.pop(name, None)
    row.google_updated, row.pending = dump(updated), dump(pending)


def set_voice_of_merchant(row: EmulatorLocationRow, state: JsonObject) -> None:
    """Store the state and set metadata.hasVoiceOfMerchant to match, as the provider does."""
    row.voice_of_merchant = dump(state)
    document = json.loads(row.document)
    has_voice = {"hasVoiceOfMerchant": bool(state.get("hasVoiceOfMerchant"))}
    row.document = dump({**document, "metadata": {**document.get("metadata", {}), **has_voice}})
