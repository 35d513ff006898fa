"""Locations: list, get, patch, what consumers see (Business Information), and the reads of Verifications."""

import json

from quart import Blueprint
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from profilesvc.contract.provider_location import Location
from profilesvc.provider.emulator.errors import bad_request, not_found
from profilesvc.provider.emulator.masks import Path, applied, read_mask, trimmed, update_mask
from profilesvc.provider.emulator.rules import check_location
from profilesvc.provider.emulator.state import count_edit, emulator, switches
from profilesvc.provider.emulator.store import dump
from profilesvc.provider.emulator.tables import EmulatorAccountRow, EmulatorLocationRow
from profilesvc.provider.emulator.wire import Document, page, pruned, read_message, read_query

locations = Blueprint("locations", __name__)
EVERY_ACCOUNT = "-"


async def find_location(session: AsyncSession, location: str) -> EmulatorLocationRow:
    """The location by its bare id, or 404."""
    row = await session.get(EmulatorLocationRow, f"locations/{location}")
    if row is None:
        raise not_found()
    return row


def _visible(row: EmulatorLocationRow, mask: list[Path]) -> Document:
    document = json.loads(row.document)
    if row.google_updated != "{}":
        document["metadata"] = {**document.get("metadata", {}), "hasGoogleUpdated": True}
    result: Document = pruned(trimmed(document, mask))
    return result


@locations.get("/v1/accounts/<name:account>/locations")
async def list_locations(account: str) -> Document:
    """The locations of an account, or of all by `-`; `filter` and `orderBy` are not offered here."""
    query = read_query("readMask", "pageSize", "pageToken")
    mask = read_mask(query.get("readMask"), Location)
    wanted = select(EmulatorLocationRow).order_by(col(EmulatorLocationRow.name))
    async with emulator().store.read() as session:
        if account != EVERY_ACCOUNT:
            if await session.get(EmulatorAccountRow, f"accounts/{account}") is None:
                raise not_found()
            wanted = wanted.where(EmulatorLocationRow.account == f"accounts/{account}")
        rows = list((await session.exec(wanted)).all())
    chunk, more = page(rows, lambda row: [row.name], query, (10, 100))
    return {**({"locations": [_visible(row, mask) for row in chunk]} if chunk else {}), **more}


@locations.get("/v1/locations/<name:location>")
async def get_location(location: str) -> Document:
    """The location as the merchant last set it, only the masked members."""
    mask = read_mask(read_query("readMask").get("readMask"), Location)
    async with emulator().store.read() as session:
        return _visible(await find_location(session, location), mask)


@locations.get("/v1/locations/<name:location>:getGoogleUpdated")
async def get_google_updated(location: str) -> Document:
    """The location as consumers see it, and where that differs from the merchant's."""
    mask = read_mask(read_query("readMask").get("readMask"), Location)
    async with emulator().store.read() as session:
        row = await find_location(session, location)
    updated = json.loads(row.google_updated)
    seen = pruned(trimmed({**json.loads(row.document), **updated}, mask))
    answer: Document = pruned({"location": seen, "diffMask": ",".join(sorted(updated))})
    return answer


@locations.patch("/v1/locations/<name:location>")
async def patch_location(location: str) -> Document:
    """Set the masked members to the body's values; clears those that the body lacks."""
    query = read_query("updateMask", "validateOnly")
    mask = update_mask(query.get("updateMask"), Location, strict=switches().strict)
    if query.get("validateOnly", "false") not in ("true", "false"):
        raise bad_request("validate_only", "Must be true or false")
    body = await read_message(Location, "location")
    async with emulator().store.write() as session:
        row = await find_location(session, location)
        before = json.loads(row.document)
        after = applied(before, body, mask)
        check_location(before, after, strict=switches().strict)
        if query.get("validateOnly") == "true":
            return {}
        count_edit(row.name)
        row.document = dump(after)
        decided = {path[0] for path in mask}
        undecided = {key: value for key, value in json.loads(row.google_updated).items() if key not in decided}
        row.google_updated = dump(undecided)
        session.add(row)
    return _visible(row, [(name,) for name in Location.model_fields])


@locations.get("/v1/locations/<name:location>/VoiceOfMerchantState")
async def get_voice_of_merchant(location: str) -> Document:
    """Whether the merchant controls the listing, and if not what to do."""
    read_query()
    async with emulator().store.read() as session:
        row = await find_location(session, location)
    state: Document = pruned(json.loads(row.voice_of_merchant))
    return state


@locations.get("/v1/locations/<name:location>/verifications")
async def list_verifications(location: str) -> Document:
    """The verifications, by createTime."""
    query = read_query("pageSize", "pageToken")
    async with emulator().store.read() as session:
        row = await find_location(session, location)
    items = sorted(json.loads(row.verifications), key=_verification_key)
    chunk, more = page(items, _verification_key, query, (100, 100))
    return {**({"verifications": chunk} if chunk else {}), **more}


def _verification_key(verification: Document) -> list[str]:
    return [verification.get("createTime", ""), verification.get("name", "")]
