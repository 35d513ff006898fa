"""Reviews (My Business v4): list, get, and the business's reply, which the provider reviews too."""

import json
from collections.abc import Callable

from quart import Blueprint
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.review import BatchGetReviewsRequest, ReviewReply
from profilesvc.domain.time import iso
from profilesvc.emulator.errors import MISSING_VALUE, bad_request, failed_precondition, not_found, post_error
from profilesvc.emulator.locations import find_in_account
from profilesvc.emulator.state import emulator, now, switches
from profilesvc.emulator.store import dump, find
from profilesvc.emulator.tables import EmulatorReviewRow
from profilesvc.emulator.wire import page, read_message, read_query

reviews = Blueprint("reviews", __name__, url_prefix="/v4/accounts/<name:account>")
_STARS = {"ONE": 1, "TWO": 2, "THREE": 3, "FOUR": 4, "FIVE": 5}
_PAGE_SIZES = (50, 50)
Key = Callable[[tuple[EmulatorReviewRow, JsonObject]], list[object]]
_ORDERS: dict[str, Key] = {
    "": lambda pair: [-pair[0].updated, pair[0].name],
    "updateTime desc": lambda pair: [-pair[0].updated, pair[0].name],
    "rating": lambda pair: [_stars(pair[1]), -pair[0].updated, pair[0].name],
    "rating desc": lambda pair: [-_stars(pair[1]), -pair[0].updated, pair[0].name],
}


def _stars(review: JsonObject) -> int:
    return _STARS.get(review.get("starRating", ""), 0)


def rendered(row: EmulatorReviewRow, at: int) -> JsonObject:
    """Return the review as the provider returns it. A reply is PENDING until its review ends."""
    document: JsonObject = json.loads(row.document)
    if "reviewReply" in document:
        verdict = "PENDING" if at < row.reply_ends else row.reply_verdict
        document["reviewReply"]["reviewReplyState"] = verdict
        if verdict == "REJECTED":
            document["reviewReply"]["policyViolation"] = "GENERIC_VIOLATION"
    return document


async def _require_parent(session: AsyncSession, account: str, location: str) -> str:
    """Return the name of the location, which must be verified."""
    row = await find_in_account(session, account, location)
    if not json.loads(row.voice_of_merchant).get("hasVoiceOfMerchant"):
        raise failed_precondition("The location is not verified.")
    return f"{row.account}/{row.name}"


async def _find(session: AsyncSession, account: str, location: str, review: str) -> EmulatorReviewRow:
    parent = await _require_parent(session, account, location)
    return await find(session, EmulatorReviewRow, f"{parent}/reviews/{review}")


async def _read(session: AsyncSession, parents: list[str], order: str) -> list[tuple[EmulatorReviewRow, JsonObject]]:
    if order not in _ORDERS:
        raise bad_request("order_by", "Invalid order by provided")
    statement = select(EmulatorReviewRow).where(col(EmulatorReviewRow.parent).in_(parents))
    pairs = [(row, rendered(row, now())) for row in (await session.exec(statement)).all()]
    return sorted(pairs, key=_ORDERS[order])


@reviews.get("/locations/<name:location>/reviews")
async def list_reviews(account: str, location: str) -> JsonObject:
    """Return one page. The average and the count include all reviews of the location."""
    query = read_query("pageSize", "pageToken", "orderBy")
    async with emulator().store.read() as session:
        parent = await _require_parent(session, account, location)
        pairs = await _read(session, [parent], query.get("orderBy", ""))
    if not pairs:
        return {}
    chunk, more = page(pairs, _ORDERS[query.get("orderBy", "")], query, _PAGE_SIZES)
    average = round(sum(_stars(review) for _, review in pairs) / len(pairs), 1)
    totals = {"averageRating": average, "totalReviewCount": len(pairs)}
    return {**({"reviews": [review for _, review in chunk]} if chunk else {}), **totals, **more}


@reviews.get("/locations/<name:location>/reviews/<name:review>")
async def get_review(account: str, location: str, review: str) -> JsonObject:
    read_query()
    async with emulator().store.read() as session:
        return rendered(await _find(session, account, location, review), now())


@reviews.put("/locations/<name:location>/reviews/<name:review>/reply")
async def update_reply(account: str, location: str, review: str) -> JsonObject:
    """Set or replace the reply and start its review."""
    read_query()
    comment = (await read_message(ReviewReply, "review_reply")).get("comment")
    if not comment:
        raise post_error(MISSING_VALUE, "comment", "Comment is required.")
    async with emulator().store.write() as session:
        row = await _find(session, account, location, review)
        reply = {"comment": comment, "updateTime": iso(now())}
        row.document = dump({**json.loads(row.document), "reviewReply": reply})
        row.reply_ends = now() + round(switches().review_seconds * 1000)
        flagged = switches().reject_phrase and switches().reject_phrase in comment
        row.reply_verdict = "REJECTED" if flagged else "APPROVED"
    updated: JsonObject = rendered(row, now())["reviewReply"]
    return updated


@reviews.delete("/locations/<name:location>/reviews/<name:review>/reply")
async def delete_reply(account: str, location: str, review: str) -> JsonObject:
    """Remove the reply.

    Raises:
        ApiError: 404 if there is none.
    """
    read_query()
    async with emulator().store.write() as session:
        row = await _find(session, account, location, review)
        document = json.loads(row.document)
        if document.pop("reviewReply", None) is None:
            raise not_found()
        row.document = dump(document)
    return {}


@reviews.post("/locations:batchGetReviews")
async def batch_get_reviews(account: str) -> JsonObject:
    read_query()
    body = await read_message(BatchGetReviewsRequest, "request")
    prefix, order = f"accounts/{account}/locations/", body.get("orderBy", "")
    names = body.get("locationNames", [])
    if not names or not all(name.startswith(prefix) for name in names):
        raise bad_request("location_names", "Must name locations of the account")
    async with emulator().store.read() as session:
        parents = [await _require_parent(session, account, name.removeprefix(prefix)) for name in names]
        pairs = await _read(session, parents, order)
    if body.get("ignoreRatingOnlyReviews"):
        pairs = [(row, review) for row, review in pairs if "comment" in review]
    query = {"pageSize": str(body.get("pageSize", _PAGE_SIZES[0])), "pageToken": body.get("pageToken", "")}
    chunk, more = page(pairs, _ORDERS[order], {**query, "orderBy": order}, _PAGE_SIZES)
    listed = [{"name": row.parent, "review": review} for row, review in chunk]
    return {**({"locationReviews": listed} if listed else {}), **more}
