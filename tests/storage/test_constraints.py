"""The constraints that carry the invariants, on both databases."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import Table, insert, update
from sqlalchemy.exc import IntegrityError

from conftest import START
from profilesvc.database.engine import Storage
from profilesvc.settings import Settings
from profilesvc.storage.tables import (
    businesses,
    connections,
    contacts,
    emails,
    holds,
    idempotency,
    keys,
    location_owners,
    locations,
    post_usage,
    posts,
    secrets,
    syncs,
)
from support.api import BOB


@pytest.fixture
async def storage(settings: Settings) -> AsyncIterator[Storage]:
    made = Storage(settings.effective_database_url, 10)
    yield made
    await made.close()


KEY = {
    "id": 1,
    "client_id": "svcid_1_1_a",
    "owner_id": 1,
    "business_id": 10,
    "location_name": "locations/111",
    "name": "a",
    "permissions": "business.read",
    "allowed_domains": "[]",
    "created_at": START,
}


LOCATION = {
    "name": "locations/1",
    "owner_id": 1,
    "account": "accounts/1",
    "title": "x",
    "profile": "{}",
    "profile_read_at": START,
    "is_verified": False,
    "verification_state": "UNVERIFIED",
    "sync_enabled": False,
}


POST = {
    "owner_id": 1,
    "location_name": "locations/111",
    "post_id": "p",
    "created_at": 0,
    "state": "LIVE",
    "read_at": 0,
    "document": "",
}


SYNC = {
    "owner_id": 1,
    "sync_id": "sync_1",
    "location_name": "locations/111",
    "created_at": 0,
    "status": "success",
    "direction": "push",
    "fields_updated": 0,
}


BEAT = {"owner_id": 1, "key_id": 1, "last_heartbeat_at": 0}


# (what must not be, the table, a row that may be, what makes it wrong)
INVARIANTS: list[tuple[str, Table, dict[str, Any], dict[str, Any]]] = [
    ("sync without verification", locations, LOCATION, {"sync_enabled": True}),
    ("an assignment without its time", locations, LOCATION, {"business_id": 10}),
    ("a time without its assignment", locations, LOCATION, {"assigned_at": START}),
    ("a location without a user", locations, LOCATION, {"owner_id": 999}),
    ("a location of no business", locations, LOCATION, {"business_id": 999, "assigned_at": START}),
    ("a second location of the name", locations, LOCATION, {"name": "locations/111"}),
    ("a key without a user", keys, KEY, {"owner_id": 999}),
    ("a key of no business", keys, KEY, {"business_id": 999}),
    ("a key of no location", keys, KEY, {"location_name": "locations/999"}),
    ("a key without a location", keys, KEY, {"location_name": None}),
    ("a key without an id", keys, KEY, {"client_id": None}),
    ("a business without a user", businesses, {"owner_id": 1, "name": "x", "created_at": 0}, {"owner_id": 999}),
    ("a second user of the address", emails, {"email": "new@example.com", "owner_id": 4}, {"email": BOB}),
    (
        "a second owner of a location",
        location_owners,
        {"name": "locations/1", "owner_id": 1},
        {"name": "locations/211"},
    ),
    ("a key at another owner's location", keys, KEY, {"location_name": "locations/211"}),
    ("a key of another owner's business", keys, KEY, {"business_id": 20}),
    ("a location of another owner's business", locations, LOCATION, {"business_id": 20, "assigned_at": START}),
    ("a post at another owner's location", posts, POST, {"location_name": "locations/211"}),
    ("a heartbeat of another owner's key", connections, BEAT, {"owner_id": 2}),
    ("a secret of no key", secrets, {"owner_id": 1, "key_id": 1, "digest": "d", "created_at": 0}, {"key_id": 999}),
    (
        "a hold of no key",
        holds,
        {"owner_id": 1, "key_id": 1, "reason": "billing_issue", "severity": 3, "set_at": 0},
        {"key_id": 999},
    ),
    (
        "a fifth reason",
        holds,
        {"owner_id": 1, "key_id": 1, "reason": "plan_downgrade", "severity": 2, "set_at": 0},
        {"reason": "x"},
    ),
    ("a heartbeat of no key", connections, BEAT, {"key_id": 999}),
    ("a contact of no key", contacts, {"owner_id": 1, "key_id": 1, "started_at": 0, "ended_at": 0}, {"key_id": 999}),
    ("a post of no location", posts, POST, {"location_name": "locations/999"}),
    ("a negative count of posts", post_usage, {"owner_id": 1, "month": 0, "used": 0}, {"used": -1}),
    ("posts used without a user", post_usage, {"owner_id": 2, "month": 0, "used": 0}, {"owner_id": 999}),
    ("a sync of no location", syncs, SYNC, {"location_name": "locations/999"}),
    ("another sync status", syncs, SYNC | {"sync_id": "sync_2"}, {"status": "done"}),
    ("another direction", syncs, SYNC | {"sync_id": "sync_3"}, {"direction": "sideways"}),
]


async def test_constraints_reject_invalid_rows(storage: Storage) -> None:
    async def add(table: Table, values: dict[str, Any]) -> None:
        async with storage.write() as session:
            await session.execute(insert(table).values(values))

    await add(keys, KEY)
    for name, table, row, wrong in INVARIANTS:
        with pytest.raises(IntegrityError):  # noqa: PT012
            await add(table, {**row, **wrong})
            pytest.fail(f"the database takes {name}")
    rows = {id(row): (table, row) for _, table, row, _ in INVARIANTS if table is not keys}
    for table, row in rows.values():  # and it is the wrong value that was refused, not the row
        await add(table, row)


async def test_unique_constraints_reject_duplicates(storage: Storage) -> None:
    """Unique: client id, post per location, hold per reason, idempotency scope, usage per month."""
    once = {"owner_id": 1, "scope": "s", "fingerprint": "f", "fence": 1, "lease_until": 0, "created_at": 0}
    rows: list[tuple[Table, dict[str, Any], dict[str, Any]]] = [
        (keys, KEY, {"id": 2}),
        (posts, POST, {}),
        (holds, {"owner_id": 1, "key_id": 1, "reason": "user_requested", "severity": 1, "set_at": 0}, {"set_at": 5}),
        (idempotency, once, {"fingerprint": "g"}),
        (post_usage, {"owner_id": 1, "month": 0, "used": 0}, {"used": 1}),
        (connections, {"owner_id": 1, "key_id": 1, "last_heartbeat_at": 0}, {"last_heartbeat_at": 1}),
        (syncs, SYNC, {"status": "failed"}),
    ]
    for table, row, other in rows:
        async with storage.write() as session:
            await session.execute(insert(table).values(row))
        with pytest.raises(IntegrityError):
            async with storage.write() as session:
                await session.execute(insert(table).values({**row, **other}))


async def test_verification_cannot_be_lost_while_sync_is_on(storage: Storage) -> None:
    lost = update(locations).where(locations.c.name == "locations/111").values(is_verified=False)
    with pytest.raises(IntegrityError):
        async with storage.write() as session:
            await session.execute(lost)
