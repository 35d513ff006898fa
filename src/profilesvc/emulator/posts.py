"""Local posts (My Business v4): create, list, get, patch, delete, and their review."""

import json

from quart import Blueprint
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.format import Message
from profilesvc.contract.provider.post import LocalPost, MediaItem
from profilesvc.domain.messages import access_of
from profilesvc.domain.time import iso, parse_iso
from profilesvc.emulator.errors import bad_request
from profilesvc.emulator.locations import find_in_account
from profilesvc.emulator.masks import applied, update_mask
from profilesvc.emulator.rules import check_accepts_posts, check_post
from profilesvc.emulator.state import count_edit, emulator, now, switches
from profilesvc.emulator.store import dump, find
from profilesvc.emulator.tables import EmulatorPostRow
from profilesvc.emulator.wire import page, read_message, read_query

posts = Blueprint("posts", __name__, url_prefix="/v4/accounts/<name:account>/locations/<name:location>/localPosts")
_ID_RANGE = 10**18


def state_of(row: EmulatorPostRow, at: int) -> str:
    """Return PROCESSING during the review, then SCHEDULED until the publication time, then the verdict."""
    if at < row.review_ends:
        return "PROCESSING"
    return "SCHEDULED" if row.verdict != "REJECTED" and at < row.publish_at else row.verdict


def rendered(row: EmulatorPostRow, at: int) -> JsonObject:
    """Return the post as the provider returns it."""
    return {**json.loads(row.document), "state": state_of(row, at)}


def _writable(message: type[Message], document: JsonObject) -> JsonObject:
    return {name: value for name, value in document.items() if access_of(message.model_fields[name]) is None}


def _submit(row: EmulatorPostRow, document: JsonObject) -> None:
    """Store a document and start its review. The current switches determine the verdict."""
    row.document = dump({**document, "updateTime": iso(now())})
    row.review_ends = now() + round(switches().review_seconds * 1000)
    row.publish_at = parse_iso(document["scheduledTime"]) if "scheduledTime" in document else 0
    row.verdict = "RECURRING" if "recurrenceInfo" in document.get("event", {}) else "LIVE"
    if switches().reject_phrase and switches().reject_phrase in document.get("summary", ""):
        row.verdict = "REJECTED"


async def _require_parent(session: AsyncSession, account: str, location: str, *, writes: bool = False) -> str:
    row = await find_in_account(session, account, location)
    if writes:
        check_accepts_posts(json.loads(row.document))
    return f"{row.account}/{row.name}"


async def _find_post(session: AsyncSession, account: str, location: str, post: str) -> EmulatorPostRow:
    parent = await _require_parent(session, account, location)
    return await find(session, EmulatorPostRow, f"{parent}/localPosts/{post}")


async def _free_name(session: AsyncSession, parent: str) -> str:
    """Return an unused name. After a restart, seeded entropy repeats its numbers."""
    while True:
        number = int.from_bytes(emulator().entropy.token_bytes(8)) % _ID_RANGE
        name = f"{parent}/localPosts/{number}"
        if await session.get(EmulatorPostRow, name) is None:
            return name


def _hosted(name: str, document: JsonObject) -> JsonObject:
    """Return the photos as the provider stores them: with its own name and address next to the source."""
    parent, _, post = name.partition("/localPosts/")
    media = []
    for number, item in enumerate(document.get("media", [])):
        hosted = {
            "name": f"{parent}/media/localPosts/{post}-{number}",
            "googleUrl": f"https://photos.example/{post}-{number}",
            "createTime": iso(now()),
        }
        media.append({**_writable(MediaItem, item), **hosted})
    return {"media": media} if media else {}


@posts.post("")
async def create_post(account: str, location: str) -> JsonObject:
    read_query()
    body = await read_message(LocalPost, "local_post")
    document = _writable(LocalPost, body)
    async with emulator().store.write() as session:
        parent = await _require_parent(session, account, location, writes=True)
        check_post(document, strict=switches().strict)
        await count_edit(f"locations/{location}")
        name = await _free_name(session, parent)
        document |= _hosted(name, document)
        url = f"https://search.example/p/{name.rpartition('/')[2]}"
        row = EmulatorPostRow(name=name, parent=parent, document="", created=now())
        _submit(row, {"name": name, **document, "createTime": iso(now()), "searchUrl": url})
        session.add(row)
    return rendered(row, now())


@posts.get("")
async def list_posts(account: str, location: str) -> JsonObject:
    """Return the posts of a location, newest first (our choice: the provider's order is not documented)."""
    query = read_query("pageSize", "pageToken")
    async with emulator().store.read() as session:
        parent = await _require_parent(session, account, location)
        statement = select(EmulatorPostRow).where(EmulatorPostRow.parent == parent)
        order = col(EmulatorPostRow.created).desc(), col(EmulatorPostRow.name)
        rows = list((await session.exec(statement.order_by(*order))).all())
    chunk, more = page(rows, lambda row: [-row.created, row.name], query, (20, 100))
    return {**({"localPosts": [rendered(row, now()) for row in chunk]} if chunk else {}), **more}


@posts.get("/<name:post>")
async def get_post(account: str, location: str, post: str) -> JsonObject:
    read_query()
    async with emulator().store.read() as session:
        return rendered(await _find_post(session, account, location, post), now())


@posts.patch("/<name:post>")
async def patch_post(account: str, location: str, post: str) -> JsonObject:
    """Change the masked fields and start a new review. Media cannot be replaced."""
    mask = update_mask(read_query("updateMask").get("updateMask"), LocalPost, strict=switches().strict)
    if any(path[0] == "media" for path in mask):
        raise bad_request("update_mask", "Invalid field mask provided")
    body = await read_message(LocalPost, "local_post")
    async with emulator().store.write() as session:
        row = await _find_post(session, account, location, post)
        document = applied(json.loads(row.document), body, mask)
        check_post(document, strict=switches().strict)
        await count_edit(f"locations/{location}")
        _submit(row, document)
    return rendered(row, now())


@posts.delete("/<name:post>")
async def delete_post(account: str, location: str, post: str) -> JsonObject:
    read_query()
    async with emulator().store.write() as session:
        await session.delete(await _find_post(session, account, location, post))
    return {}
