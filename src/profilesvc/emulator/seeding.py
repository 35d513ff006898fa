"""Load the demo data into the emulator's file."""

from collections.abc import Iterable, Iterator
from itertools import islice

from sqlalchemy import insert
from sqlmodel import delete
from sqlmodel.ext.asyncio.session import AsyncSession

from profilesvc.contract.json import JsonObject
from profilesvc.domain.time import parse_iso
from profilesvc.emulator.store import dump
from profilesvc.emulator.tables import (
    EmulatorAccountRow,
    EmulatorLocationRow,
    EmulatorLoginRow,
    EmulatorPostRow,
    EmulatorReviewRow,
    EmulatorStateRow,
    EmulatorTable,
)

_CHUNK = 1000


async def clear(session: AsyncSession) -> None:
    """Delete everything except the tokens and the notification settings, which clients set once and still use."""
    documents = (EmulatorAccountRow, EmulatorLocationRow, EmulatorPostRow, EmulatorReviewRow)
    for row in (EmulatorStateRow, EmulatorLoginRow, *documents):
        await session.exec(delete(row))


def fill(session: AsyncSession, world: JsonObject, now: int) -> None:
    """Add the logins, accounts, locations, posts and reviews of the demo data as the provider has them.

    `switches` of the demo data are those from the start and after a reset; without them, all have their defaults. The
    review of a PROCESSING post ends `seed_review_seconds` from now.
    """
    session.add(EmulatorStateRow(document=dump(world.get("switches", {}))))
    for position, account in enumerate(world["accounts"]):
        document = {key: value for key, value in account.items() if key != "user_id"}
        session.add(EmulatorAccountRow(name=account["name"], position=position, document=dump(document)))
    for user in world.get("users", []):
        own = [account["name"] for account in world["accounts"] if account.get("user_id") == user["id"]]
        session.add(EmulatorLoginRow(subject=f"10000{user['id']}", email=user["email"], accounts=dump(own)))
    for person in world.get("newcomers", []):
        _add_newcomer(session, person)
    review_ends = now + round(world.get("seed_review_seconds", 0) * 1000)
    for location in world["locations"]:
        name = location["profile"]["name"]
        session.add(_location_row(location, world.get("attributes", {}).get(name, [])))
        parent = f"{location['account']}/{name}"
        session.add_all(post_row(parent, post, review_ends) for post in location["posts"])
        session.add_all(review_row(review) for review in world.get("reviews", {}).get(name, []))


def _add_newcomer(session: AsyncSession, person: JsonObject) -> None:
    """Add a login with an account of its own, which the installation's login does not see."""
    account, number = person["account"]["name"], person["id"]
    session.add(EmulatorAccountRow(name=account, position=number, document=dump(person["account"])))
    session.add(EmulatorLoginRow(subject=f"10000{number}", email=person["email"], accounts=dump([account])))
    for own in person["locations"]:
        verified = {"hasVoiceOfMerchant": True, "hasBusinessAuthority": True}
        document = dump({**person["shared"], **own})
        session.add(
            EmulatorLocationRow(name=own["name"], account=account, document=document, voice_of_merchant=dump(verified))
        )


async def add(session: AsyncSession, accounts: list[JsonObject], locations: Iterable[JsonObject]) -> None:
    """Add accounts, and locations with their posts, of any number."""
    rows = (EmulatorAccountRow(name=one["name"], position=1000, document=dump(one)) for one in accounts)
    await _insert(session, EmulatorAccountRow, rows)
    remaining = iter(locations)
    while chunk := list(islice(remaining, _CHUNK)):
        await _insert(session, EmulatorLocationRow, (_location_row(one, []) for one in chunk))
        posts = (post_row(f"{one['account']}/{one['profile']['name']}", post) for one in chunk for post in one["posts"])
        await _insert(session, EmulatorPostRow, posts)


async def _insert(session: AsyncSession, table: type[EmulatorTable], rows: Iterator[EmulatorTable]) -> None:
    connection = await session.connection()
    while chunk := [row.model_dump() for row in islice(rows, _CHUNK)]:
        await connection.execute(insert(table), chunk)


def _location_row(location: JsonObject, attributes: list[JsonObject]) -> EmulatorLocationRow:
    return EmulatorLocationRow(
        name=location["profile"]["name"],
        account=location["account"],
        document=dump({**location["profile"], **location["provider_profile"]}),
        voice_of_merchant=dump(location["voice_of_merchant"]),
        verifications=dump(location["verifications"]),
        attributes=dump(attributes),
    )


def post_row(parent: str, post: JsonObject, review_ends: int = 0) -> EmulatorPostRow:
    """Return the row of a post with its name, createTime and state."""
    in_review = post["state"] == "PROCESSING"
    return EmulatorPostRow(
        name=post["name"],
        parent=parent,
        document=dump({key: value for key, value in post.items() if key != "state"}),
        created=parse_iso(post["createTime"]),
        review_ends=review_ends if in_review else 0,
        verdict="LIVE" if in_review else post["state"],
    )


def review_row(review: JsonObject) -> EmulatorReviewRow:
    """Return the row of a review. The state of a reply is stored in columns."""
    reply = {key: value for key, value in review.get("reviewReply", {}).items() if key != "reviewReplyState"}
    return EmulatorReviewRow(
        name=review["name"],
        parent=review["name"].partition("/reviews/")[0],
        document=dump({**review, **({"reviewReply": reply} if reply else {})}),
        updated=parse_iso(review["updateTime"]),
        reply_verdict=review.get("reviewReply", {}).get("reviewReplyState", "APPROVED"),
    )
