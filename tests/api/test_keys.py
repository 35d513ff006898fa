"""API keys over HTTP: create, list, revoke."""

import base64
from typing import Any

import httpx
import pytest
from sqlalchemy import insert, select, text

from conftest import ON_ONE_DATABASE, AsService, AsUser
from profilesvc.domain.time import FrozenClock
from profilesvc.services.context import Services
from profilesvc.storage.keys import listing_query
from profilesvc.storage.tables import keys
from support.api import ALICE, BOB, CAROL, Site, assert_error, assert_ok, fields
from support.database.citus import on_one_server
from support.tokens import grant

PATH = "/api/v1/developer/credentials"


def body(**members: Any) -> dict[str, Any]:
    return {"name": "My Site", "business_id": 10, "assigned_location_id": "locations/111", **members}


async def test_a_new_key_has_every_field_of_the_contract(alice: httpx.AsyncClient) -> None:
    request = body(primary_domain="https://Harbour.example:8443/x", allowed_domains=["shop.example"])
    response = await alice.post(PATH, json=request)
    data = assert_ok(response, 201)
    assert data["client_id"] == "svcid_1_1767323045678_my_site"
    assert len(base64.b64decode(data["client_secret"], validate=True)) == 48
    assert isinstance(data["service_client_id"], int)
    assert data | {"client_secret": "", "client_id": "", "service_client_id": 0, "warning": ""} == {
        "client_id": "",
        "client_secret": "",
        "service_client_id": 0,
        "name": "My Site",
        "plan": "pro",
        "business_id": 10,
        "business_name": "Harbour Coffee",
        "assigned_location_id": "locations/111",
        "primary_domain": "harbour.example:8443",
        "allowed_domains": ["harbour.example:8443", "www.harbour.example:8443", "shop.example"],
        "created_at": "2026-01-02T03:04:05.678Z",
        "warning": "",
        "permissions": ["business.read", "business.write"],
        "expires_at": None,
    }
    assert response.headers["cache-control"] == "no-store"
    assert data["warning"]


async def test_a_client_id_uses_the_next_millisecond_on_a_collision(alice: httpx.AsyncClient) -> None:
    first, second = [assert_ok(await alice.post(PATH, json=body()), 201) for _ in range(2)]
    assert first["client_id"] != second["client_id"]


@pytest.mark.parametrize("location", ["111", "locations/111"])
async def test_a_new_key_accepts_both_forms_of_the_location(alice: httpx.AsyncClient, location: str) -> None:
    data = assert_ok(await alice.post(PATH, json=body(assigned_location_id=location)), 201)
    assert data["assigned_location_id"] == "locations/111"


async def test_a_new_key_assigns_an_unassigned_location(alice: httpx.AsyncClient) -> None:
    assert_ok(await alice.post(PATH, json=body(assigned_location_id="119", business_id=11)), 201)
    assert_error(await alice.post(PATH, json=body(assigned_location_id="119")), 409, "CONFLICT")


@on_one_server
async def test_a_new_key_for_a_location_beyond_the_plan_is_rejected(services: Any, as_user: AsUser) -> None:
    from sqlalchemy import update

    from profilesvc.storage.tables import locations

    async with services.storage.write() as session:
        moved = update(locations).where(locations.c.name == "locations/219").values(owner_id=3)
        await session.execute(moved)
    carol = await as_user(CAROL)
    request = body(business_id=30, assigned_location_id="219")
    assert assert_error(await carol.post(PATH, json=request), 403, "PLAN_RESTRICTION") == {"limit": 1}


@pytest.mark.parametrize(
    "members",
    [
        {"business_id": 20},
        {"business_id": 999},
        {"assigned_location_id": "locations/211"},
        {"assigned_location_id": "locations/999"},
    ],
)
async def test_foreign_and_missing_resources_have_the_same_response(
    alice: httpx.AsyncClient, members: dict[str, Any]
) -> None:
    response = await alice.post(PATH, json=body(**members))
    assert_error(response, 404, "NOT_FOUND")
    other = await alice.post(PATH, json=body(business_id=12345))
    assert response.json() == other.json()


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"name": None}, "name"),
        ({"name": "  "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"business_id": "10"}, "business_id"),
        ({"business_id": True}, "business_id"),
        ({"business_id": 1.5}, "business_id"),
        ({"business_id": 0}, "business_id"),
        ({"business_id": -1}, "business_id"),
        ({"business_id": 2**63}, "business_id"),
        ({"assigned_location_id": "accounts/1/locations/111"}, "assigned_location_id"),
        ({"assigned_location_id": "x" * 65}, "assigned_location_id"),
        ({"primary_domain": "*.example.com"}, "primary_domain"),
        ({"primary_domain": "co.uk"}, "primary_domain"),
        ({"primary_domain": "127.0.0.1"}, "primary_domain"),
        ({"primary_domain": "http://"}, "primary_domain"),
        ({"allowed_domains": ["ok.example", "user@x.com"]}, "allowed_domains.1"),
        ({"allowed_domains": [f"d{n}.example" for n in range(51)]}, "allowed_domains"),
        ({"permissions": []}, "permissions"),
        ({"permissions": ["business.admin"]}, "permissions.0"),
        ({"expires_at": "tomorrow"}, "expires_at"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"name": "a\x00b"}, "name"),
    ],
)
@ON_ONE_DATABASE
async def test_the_response_names_the_invalid_field_of_a_new_key(
    alice: httpx.AsyncClient, members: dict[str, Any], field: str
) -> None:
    details = assert_error(await alice.post(PATH, json=body(**members)), 400, "VALIDATION_ERROR")
    assert fields(details) == [field]


async def test_a_new_key_accepts_whole_numbers_as_php_writes_them(alice: httpx.AsyncClient) -> None:
    raw = b'{"name":"a","business_id":10.0,"assigned_location_id":"111"}'
    response = await alice.post(PATH, content=raw, headers={"Content-Type": "application/json"})
    assert assert_ok(response, 201)["business_id"] == 10


async def test_a_new_key_ignores_read_only_fields(alice: httpx.AsyncClient) -> None:
    request = body(plan="agency", user_id=2, client_id="mine", __proto__={"x": 1})
    data = assert_ok(await alice.post(PATH, json=request), 201)
    assert (data["plan"], data["client_id"]) == ("pro", "svcid_1_1767323045678_my_site")


@pytest.mark.parametrize(("name", "slug"), [("🙂", "key"), ("Ünï / .. %2F ?#", "n___2f_"), ("A  b", "a__b")])
async def test_the_client_id_of_a_key_with_any_name_works_in_a_url(
    alice: httpx.AsyncClient, name: str, slug: str
) -> None:
    data = assert_ok(await alice.post(PATH, json=body(name=name)), 201)
    assert data["client_id"].split("_", 3)[3] == slug
    assert_ok(await alice.delete(f"{PATH}/{data['client_id']}"))


async def test_A114_a_location_has_at_most_twenty_live_keys(alice: httpx.AsyncClient) -> None:
    keys = [assert_ok(await alice.post(PATH, json=body()), 201) for _ in range(20)]
    assert_error(await alice.post(PATH, json=body()), 409, "CONFLICT")
    assert_ok(await alice.delete(f"{PATH}/{keys[0]['client_id']}"))
    assert_ok(await alice.post(PATH, json=body()), 201)


async def test_the_list_of_keys_shows_everything_but_the_secret(
    alice: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    await services.background.drain()
    response = await alice.get(PATH)
    (entry,) = assert_ok(response)["credentials"]
    assert entry.pop("id") == plugin.key["service_client_id"]
    assert entry.pop("last_used_at") == "2026-01-02T03:04:05.678Z"
    assert entry == {
        "client_id": plugin.key["client_id"],
        "name": "Site",
        "assigned_location_id": "locations/111",
        "primary_domain": None,
        "created_at": "2026-01-02T03:04:05.678Z",
        "status": "active",
        "deactivation_reason": None,
        "expires_at": None,
    }
    assert plugin.key["client_secret"] not in response.text
    assert "secret" not in response.text


async def test_the_list_shows_only_the_keys_of_the_caller(
    alice: httpx.AsyncClient, as_user: AsUser, plugin: Site
) -> None:
    assert assert_ok(await (await as_user(BOB)).get(PATH)) == {"credentials": []}


async def test_the_list_hides_revoked_keys_by_default(alice: httpx.AsyncClient, plugin: Site) -> None:
    assert_ok(await alice.delete(f"{PATH}/{plugin.key['client_id']}"))
    assert assert_ok(await alice.get(PATH)) == {"credentials": []}
    (entry,) = assert_ok(await alice.get(PATH, params={"include_revoked": "true"}))["credentials"]
    assert entry["status"] == "revoked"


async def test_pages_contain_every_key_once(
    alice: httpx.AsyncClient, as_service: AsService, clock: FrozenClock
) -> None:
    made = []
    for _ in range(7):
        clock.advance(milliseconds=1)
        made.append((await as_service()).key["client_id"])
    for client_id in made[1::2]:
        assert_ok(await alice.delete(f"{PATH}/{client_id}"))
    assert [key["client_id"] for key in assert_ok(await alice.get(PATH))["credentials"]] == made[::-2]
    later: list[str] = []
    for revoked, wanted in (("false", made[::-2]), ("true", made[::-1])):
        wanted, seen, query = [*later, *wanted], [], {"include_revoked": revoked, "limit": "2"}
        while True:
            page = assert_ok(await alice.get(PATH, params=query))
            assert 1 <= len(page["credentials"]) <= 2
            seen += [key["client_id"] for key in page["credentials"]]
            if not later:  # a key that is made meanwhile moves nothing
                later = [(await as_service()).key["client_id"]]
            if "next_before" not in page:
                break
            query["before"] = page["next_before"]
        assert seen == wanted


async def test_revoked_keys_are_listed_a_hundred_at_a_time(
    alice: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    async with services.storage.write() as session:
        row = (await session.execute(select(keys))).one()._asdict() | {"revoked_at": 1}
        more = [{**row, "id": number, "client_id": f"svcid_1_{number}_x"} for number in range(1_000, 1_150)]
        await session.execute(insert(keys), more)
    for limit in ({}, {"limit": "100"}, {"limit": "1000"}):
        first = assert_ok(await alice.get(PATH, params={"include_revoked": "true", **limit}))
        assert [key["id"] for key in first["credentials"]] == list(range(1_149, 1_049, -1))
        rest = await alice.get(PATH, params={"include_revoked": "true", "before": first["next_before"]})
        assert len(assert_ok(rest)["credentials"]) == 51
    assert set(assert_ok(await alice.get(PATH))) == {"credentials"}


async def test_live_keys_are_found_without_reading_revoked_ones(
    plugin: Site, services: Services, database: str
) -> None:
    async with services.storage.write() as session:
        row = (await session.execute(select(keys))).one()._asdict() | {"revoked_at": 1}
        more = [{**row, "id": number, "client_id": f"svcid_1_{number}_x"} for number in range(1_000, 4_000)]
        await session.execute(insert(keys), more)
    async with services.storage.write() as session:
        await session.execute(text("ANALYZE keys"))
        for before, limit in ((None, None), (3_900, 10)):
            query = listing_query(1, services.clock.now(), before, limit)
            compiled = str(query.compile(services.storage.engine, compile_kwargs={"literal_binds": True}))
            explain = "EXPLAIN QUERY PLAN" if database == "sqlite" else "EXPLAIN"
            plan = str(list(await session.execute(text(f"{explain} {compiled}"))))
            assert "ix_keys_live" in plan
            assert "SCAN keys" not in plan


@pytest.mark.parametrize("query", [{"limit": "0"}, {"limit": "x"}, {"before": "x"}, {"before": "9" * 19}])
@ON_ONE_DATABASE
async def test_an_invalid_page_of_keys_is_rejected(alice: httpx.AsyncClient, query: dict[str, str]) -> None:
    details = assert_error(await alice.get(PATH, params=query), 400, "VALIDATION_ERROR")
    assert fields(details) == list(query)


@pytest.mark.parametrize("granting", [False, True])
async def test_the_use_of_a_key_is_noted_at_most_once_a_minute(
    alice: httpx.AsyncClient, plugin: Site, clock: FrozenClock, services: Services, granting: bool
) -> None:
    async def after(**time: int) -> str:
        clock.advance(**time)
        if granting:
            assert_ok(await plugin.http.post("/api/v1/auth/token", json=grant(plugin)))
        else:
            assert_ok(await plugin.http.get("/api/v1/external-business/locations"))
        await services.background.drain()
        return str(assert_ok(await alice.get(PATH))["credentials"][0]["last_used_at"])

    assert await after(seconds=60) == "2026-01-02T03:04:05.678Z"
    assert await after(milliseconds=1) == "2026-01-02T03:05:05.679Z"
    assert await after(seconds=60) == "2026-01-02T03:05:05.679Z"


async def test_a_rejected_request_is_not_noted_as_a_use_of_the_key(
    alice: httpx.AsyncClient, plugin: Site, clock: FrozenClock, services: Services
) -> None:
    await services.background.drain()
    clock.advance(hours=1)
    assert_error(await plugin.http.get(PATH), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    await services.background.drain()
    [entry] = assert_ok(await alice.get(PATH))["credentials"]
    assert entry["last_used_at"] == "2026-01-02T03:04:05.678Z"


async def test_a_revoked_key_and_its_tokens_end_at_once(
    alice: httpx.AsyncClient, http: httpx.AsyncClient, plugin: Site
) -> None:
    assert_ok(await plugin.http.get("/api/v1/external-business/locations"))
    data = assert_ok(await alice.delete(f"{PATH}/{plugin.key['client_id']}"))
    assert data == {
        "client_id": plugin.key["client_id"],
        "revoked": True,
        "revoked_at": "2026-01-02T03:04:05.678Z",
    }
    refused = await plugin.http.get("/api/v1/external-business/locations")
    assert assert_error(refused, 401, "AUTH_INVALID_TOKEN") == {"reason": "revoked"}
    grant = {"grant_type": "client_credentials", **plugin.credentials}
    assert_error(await http.post("/api/v1/auth/token", json=grant), 401, "AUTH_INVALID_TOKEN")
    refresh = {"grant_type": "refresh_token", "refresh_token": plugin.tokens["refresh_token"]}
    assert_error(await http.post("/api/v1/auth/token", json=refresh), 401, "AUTH_INVALID_TOKEN")


async def test_only_the_owner_revokes_a_key_and_only_once_by_its_client_id(
    alice: httpx.AsyncClient, as_user: AsUser, plugin: Site
) -> None:
    path = f"{PATH}/{plugin.key['client_id']}"
    assert_error(await (await as_user(BOB)).delete(path), 404, "NOT_FOUND")
    assert_error(await alice.delete(f"{PATH}/{plugin.key['service_client_id']}"), 404, "NOT_FOUND")
    assert_ok(await alice.delete(path.replace("_", "%5F")))
    assert_error(await alice.delete(path), 404, "NOT_FOUND")


async def test_businesses_are_the_callers(as_user: AsUser) -> None:
    data = assert_ok(await (await as_user(ALICE)).get("/api/v1/businesses"))
    assert data == {"businesses": [{"id": 10, "name": "Harbour Coffee"}, {"id": 11, "name": "Harbour Books"}]}


async def test_a_key_sees_no_key_management(plugin: Site, as_service: AsService) -> None:
    for method, path in [("GET", PATH), ("POST", PATH), ("DELETE", f"{PATH}/x")]:
        assert_error(await plugin.http.request(method, path), 403, "AUTH_INSUFFICIENT_PERMISSIONS")


async def test_the_response_has_the_address_of_the_key(alice: httpx.AsyncClient) -> None:
    body = {"name": "Ü & Co/1?", "business_id": 10, "assigned_location_id": "locations/111"}
    made = await alice.post("/api/v1/developer/credentials", json=body)
    client_id = assert_ok(made, 201)["client_id"]
    assert made.headers["location"].startswith("/api/v1/developer/credentials/svcid_1_")
    assert assert_ok(await alice.delete(made.headers["location"]))["client_id"] == client_id
