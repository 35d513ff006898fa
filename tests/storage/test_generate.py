"""Generated data is such as the service itself would have written it, and as much as was asked for."""

import pytest
from benchmarks import generate
from benchmarks.generate import Amounts
from quart import Quart
from sqlalchemy import func, insert, select

from conftest import AsUser
from profilesvc.contract.errors import CONFLICT
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.heartbeats import online_share
from profilesvc.domain.permissions import ALL
from profilesvc.fixtures import load_world
from profilesvc.operations.demo_data import GENERATED
from profilesvc.services import access, tokens
from profilesvc.services.context import Caller, Services
from profilesvc.services.feed import profiles
from profilesvc.services.insight import overview
from profilesvc.storage.tables import metadata, secrets, users
from support.api import ALICE, assert_ok

DEMO = [user["email"] for user in load_world()["users"]]
AMOUNTS = Amounts(keys=25, posts=300, history=203)


async def counts(services: Services) -> dict[str, int]:
    async with services.storage.read() as session:
        return {
            table.name: (await session.execute(select(func.count()).select_from(table))).scalar_one()
            for table in metadata.sorted_tables
        }


async def test_adds_the_requested_rows_to_existing_ones_repeatedly(services: Services) -> None:
    before = await counts(services)
    for round_number in (1, 2):
        loaded = await generate.load(services, AMOUNTS, seed=1)
        assert loaded == {
            "users": 3,
            "emails": 3,
            "businesses": 3,
            **dict.fromkeys(("location_owners", "locations", "keys", "secrets", "connections"), 25),
            "contacts": 50,
            "key_domains": 50,
            "posts": 300,
            "syncs": 203,
            "audit": 125,
        }
        after = await counts(services)
        assert after == {name: before[name] + round_number * loaded.get(name, 0) for name in before}


async def test_generated_data_is_served(app: Quart, services: Services, as_user: AsUser) -> None:
    await generate.load(services, AMOUNTS, seed=1)
    async with services.storage.read() as session:
        generated = select(users.c.email).where(users.c.email.like(f"%@{GENERATED}")).order_by(users.c.id)
        email = (await session.execute(generated)).scalars().all()[0]
    owner = await as_user(email)
    keys = assert_ok(await owner.get("/api/v1/developer/credentials"))["credentials"]
    assert len(keys) == 10
    located = assert_ok(await owner.get("/api/v1/external-business/locations"))
    assert located["pagination"]["totalCount"] == 10
    largest = keys[-1]["assigned_location_id"]
    listed = assert_ok(await owner.get("/api/v1/posts", params={"locationId": largest, "pageSize": 100}))
    assert len(listed["localPosts"]) == 30 + 12 - 1  # a tenth of all, and its share of the rest
    bare = largest.removeprefix("locations/")
    history = assert_ok(await owner.get(f"/api/v1/sync/history/{bare}", params={"limit": 100}))["history"]
    assert len(history) == 20 + 8
    status = assert_ok(await owner.get(f"/api/v1/api-keys/{keys[0]['client_id']}/status"))
    assert status["connection_status"] == "online"
    business = assert_ok(await owner.get("/api/v1/businesses"))["businesses"][0]["id"]
    made = {"name": "After", "business_id": business, "assigned_location_id": largest}
    key = assert_ok(await owner.post("/api/v1/developer/credentials", json=made), 201)
    assert key["service_client_id"] > 25
    assert await tokens.user_token(services, ALICE)


async def test_an_owner_has_as_many_sites_as_requested(services: Services) -> None:
    loaded = await generate.load(services, Amounts(keys=450, posts=0, history=0, sites_per_user=300), seed=1)
    assert (loaded["users"], loaded["locations"]) == (2, 450)
    async with services.storage.read() as session:
        email = select(users).where(users.c.email.like(f"%@{GENERATED}")).order_by(users.c.id)
        owner = (await session.execute(email)).first()
    assert owner is not None
    caller = Caller(owner.id, services.plans["agency"], frozenset(ALL))
    sites = await overview.sites(services, caller)
    assert (len(sites), sum(bool(site.drift) for site in sites)) == (300, 3)
    assert {key.state for site in sites for key in site.keys} == {"online", "idle", "offline"}
    histories = await overview.histories(services, caller, sites)
    assert all(online_share(histories[site.id]) for site in sites)


async def test_generated_sites_sync_and_post_at_the_emulator(app: Quart, services: Services, as_user: AsUser) -> None:
    await generate.load(services, Amounts(102, 5, 0, sites_per_user=102), seed=1, emulated=True)
    async with services.storage.read() as session:
        owner = (await session.execute(select(users).where(users.c.email.like(f"%@{GENERATED}")))).one()
    caller = Caller(owner.id, services.plans["agency"], frozenset(ALL))
    drifted = [site for site in await overview.sites(services, caller) if site.drift]
    for site in drifted:  # the provider has the same differences as the rows
        place = await access.require_location(services, caller, f"locations/{site.id}")
        await profiles.refresh(services, place)
    again = [site for site in await overview.sites(services, caller) if site.drift]
    assert [(site.id, site.drift) for site in again] == [(site.id, site.drift) for site in drifted] != []
    user = await as_user(owner.email)
    assert_ok(await user.post(f"/api/v1/sync/{drifted[0].id}", json={"title": "Shop"}))
    compared = assert_ok(await user.get(f"/api/v1/sync/comparison/{drifted[0].id}", params={"refresh": "true"}))
    assert compared["provider"]["title"] == "Shop"
    largest = min(site.id for site in await overview.sites(services, caller))
    listed = assert_ok(await user.get("/api/v1/posts", params={"locationId": largest, "refresh": "true"}))
    assert len(listed["localPosts"]) == 1
    made, where = {"summary": "Fresh bread", "topicType": "STANDARD"}, {"locationId": largest}
    assert assert_ok(await user.post("/api/v1/posts", json=made, params=where), 201)["state"] in ("PROCESSING", "LIVE")


async def test_rejects_a_database_with_other_users(services: Services) -> None:
    async with services.storage.write() as session:
        await session.execute(insert(users).values(email="zoe@example.org", name="Zoe", plan="pro", created_at=0))
    before = await counts(services)
    with pytest.raises(ServiceError) as refused:
        await generate.load(services, AMOUNTS, seed=1)
    assert refused.value.kind is CONFLICT
    assert await counts(services) == before
    await generate.load(services, AMOUNTS, seed=1, sure=True)


async def test_another_seed_makes_other_secrets(services: Services) -> None:
    async def digests() -> list[str]:
        async with services.storage.read() as session:
            return list((await session.execute(select(secrets.c.digest).order_by(secrets.c.key_id))).scalars())

    few = Amounts(keys=2, posts=0, history=0)
    for seed in (1, 2):
        await generate.load(services, few, seed)
    assert len(set(await digests())) == 4
