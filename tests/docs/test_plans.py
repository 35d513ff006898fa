"""The numbers in the table of plans in docs/reference.md: the service rejects one more than each of them."""

from typing import Any

import httpx
import pytest
from sqlalchemy import delete, insert

from conftest import AsUser
from profilesvc.domain.time import month_start
from profilesvc.operations import operator
from profilesvc.services.context import Services
from profilesvc.storage.tables import LocationRow
from profilesvc.storage.tables.writing import PostUsageRow
from support.api import ALICE, assert_error, assert_ok
from support.pages.tables import rows
from support.repository import DOCS


def number(cell: str) -> int:
    return int(cell.replace(",", ""))


# Name, posts a month, locations, live keys of a location.
PLANS = [
    (plan.split("(")[1].rstrip(")"), number(monthly), number(locations), number(keys))
    for plan, _, _, monthly, _, locations, keys, _ in rows((DOCS / "reference.md").read_text("utf-8"), "plans")
]
CREDENTIALS = "/api/v1/developer/credentials"


async def count_posts(services: Services, used: int) -> None:
    """Set the number of posts that Alice has created this month."""
    usage: Any = PostUsageRow.__table__  # type: ignore[attr-defined]
    async with services.storage.write() as session:
        await session.execute(delete(usage))
        month = month_start(services.clock.now())
        await session.execute(insert(usage).values(owner_id=1, month=month, used=used))


async def add_locations(services: Services, owner: int, business: int, assigned: int, free: int) -> None:
    """Add locations of a user; the last ones are not assigned to a business."""
    table: Any = LocationRow.__table__  # type: ignore[attr-defined]
    now = services.clock.now()
    values = [
        {
            "owner_id": owner,
            "name": f"locations/9{number:04}",
            "business_id": business if number < assigned else None,
            "assigned_at": now if number < assigned else None,
            "account": "accounts/9",
            "title": f"Branch {number}",
            "profile": "{}",
            "profile_read_at": now,
            "is_verified": False,
            "sync_enabled": False,
            "verification_state": "UNVERIFIED",
        }
        for number in range(assigned + free)
    ]
    async with services.storage.write() as session:
        await session.execute(insert(table), values)


async def test_the_posts_a_month_are_those_of_the_table(services: Services, alice: httpx.AsyncClient) -> None:
    for name, monthly, _, _ in PLANS:
        await operator.assign_plan(services, ALICE, name)
        if not monthly:
            continue  # the plan has no posts: test_a_plan_allows_what_its_row_says
        await count_posts(services, monthly - 1)
        request: dict[str, Any] = {"params": {"locationId": "locations/111"}, "json": {"summary": "Open late tonight."}}
        assert_ok(await alice.post("/api/v1/posts", **request), 201)
        details = assert_error(await alice.post("/api/v1/posts", **request), 429, "QUOTA_EXCEEDED")
        assert (details["limit"], details["used"]) == (monthly, monthly)


@pytest.mark.parametrize(("name", "locations", "keys"), [(name, locations, keys) for name, _, locations, keys in PLANS])
@pytest.mark.slow
async def test_the_locations_and_keys_are_those_of_the_table(
    services: Services, as_user: AsUser, name: str, locations: int, keys: int
) -> None:
    user = await operator.add_user(services, "owner@example.com", plan=name)
    business = await operator.add_business(services, "owner@example.com", "Branches")
    await add_locations(services, user.id, business, locations - 1, 2)
    owner = await as_user("owner@example.com")

    async def create(number: int) -> httpx.Response:
        place = f"locations/9{number:04}"
        body = {"name": "Site", "business_id": business, "assigned_location_id": place}
        return await owner.post(CREDENTIALS, json=body)

    for _ in range(keys):
        assert_ok(await create(locations - 1), 201)
    assert assert_error(await create(locations - 1), 409, "CONFLICT") == {"limit": keys}
    assert assert_error(await create(locations), 403, "PLAN_RESTRICTION") == {"limit": locations}
