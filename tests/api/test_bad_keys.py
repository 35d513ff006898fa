"""Bad values when keys are made, listed and revoked (rows A086, A087, A105 to A116 of the list of bad input)."""

from typing import Any

import httpx
from sqlalchemy import func, select

from conftest import AsService, AsUser
from profilesvc.domain.time import FrozenClock
from profilesvc.services.context import Services
from profilesvc.storage.keys import credentials
from profilesvc.storage.tables import keys, syncs
from support.api import BOB, Site, assert_error, assert_ok, fields

KEYS = "/api/v1/developer/credentials"


LOCATIONS = "/api/v1/external-business/locations"


TOKEN = "/api/v1/auth/token"


VALIDATE = "/api/v1/auth/validate-service-credentials"


JSON = {"Content-Type": "application/json"}


def key_body(**members: Any) -> dict[str, Any]:
    return {"name": "My Site", "business_id": 10, "assigned_location_id": "locations/111", **members}


async def rows(services: Services) -> list[int]:
    """How many keys and syncs there are: what bad input must not change."""
    async with services.storage.read() as session:
        return [int((await session.execute(select(func.count()).select_from(t))).scalar_one()) for t in (keys, syncs)]


async def test_A086_A087_a_business_id_must_be_a_positive_64_bit_integer(
    alice: httpx.AsyncClient, services: Services
) -> None:
    before = await rows(services)
    for literal in ("2147483648000000000000", "9223372036854775808", "-1", "0", '"10"', "true", "1.5", "[]", "{}"):
        raw = f'{{"name":"a","business_id":{literal},"assigned_location_id":"111"}}'.encode()
        response = await alice.post(KEYS, content=raw, headers=JSON)
        assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["business_id"], literal
    for literal in ("9223372036854775807", "1e18", "2147483648"):
        raw = f'{{"name":"a","business_id":{literal},"assigned_location_id":"111"}}'.encode()
        assert_error(await alice.post(KEYS, content=raw, headers=JSON), 404, "NOT_FOUND")
    assert await rows(services) == before
    raw = b'{"name":"a","business_id":10.0,"assigned_location_id":"111"}'
    assert assert_ok(await alice.post(KEYS, content=raw, headers=JSON), 201)["business_id"] == 10


async def test_A105_A106_the_name_of_a_key_has_1_to_100_characters(alice: httpx.AsyncClient) -> None:
    for bad in (None, "", " ", "\u3000\t", "x" * 101, 5, ["x"], "a\0b"):
        response = await alice.post(KEYS, json=key_body(name=bad))
        assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["name"], bad
    without = {name: value for name, value in key_body().items() if name != "name"}
    assert fields(assert_error(await alice.post(KEYS, json=without), 400, "VALIDATION_ERROR")) == ["name"]
    for name, slug in [
        ("\U0001f642", "key"),
        ("x" * 100, "x" * 64),
        (" " + "y" * 100 + " ", "y" * 64),
        ("Ünï / .. %2F ?#", "n___2f_"),
        ("My  Site", "my__site"),
    ]:
        made = assert_ok(await alice.post(KEYS, json=key_body(name=name)), 201)
        assert made["client_id"].split("_", 3)[3] == slug
        assert made["name"] == name.strip()
        assert_ok(await alice.delete(f"{KEYS}/{made['client_id']}"))


async def test_A107_keys_of_one_name_and_millisecond_have_different_client_ids(
    alice: httpx.AsyncClient, clock: FrozenClock
) -> None:
    made = [assert_ok(await alice.post(KEYS, json=key_body()), 201)["client_id"] for _ in range(5)]
    assert len(set(made)) == 5
    assert [int(ident.split("_")[2]) for ident in made] == [clock.now() + n for n in range(5)]


async def test_A108_resources_of_other_users_are_not_found(alice: httpx.AsyncClient) -> None:
    answers = [
        await alice.post(KEYS, json=key_body(**members))
        for members in (
            {"business_id": 20},
            {"business_id": 999},
            {"assigned_location_id": "211"},
            {"assigned_location_id": "219"},
            {"assigned_location_id": "999"},
            {"business_id": 20, "assigned_location_id": "211"},
        )
    ]
    for answer in answers:
        assert_error(answer, 404, "NOT_FOUND")
        assert answer.content == answers[0].content
    assert_error(await alice.post(KEYS, json=key_body(assigned_location_id="114")), 409, "CONFLICT")
    assert_ok(await alice.post(KEYS, json=key_body(assigned_location_id="119")), 201)
    entries = assert_ok(await alice.get(LOCATIONS))["locations"]
    popup = next(entry for entry in entries if entry["name"] == "locations/119")
    assert (popup["isAssigned"], popup["businessId"]) == (True, 10)


async def test_A109_an_invalid_domain_is_rejected_by_its_field(alice: httpx.AsyncClient) -> None:
    bad = ["*.example.com", "co.uk", "127.0.0.1", "[::1]", "http://", "a..b", "user@x.com", "", " ", "com"]
    bad += [".".join(["x" * 60] * 5), "exa mple.com", "example.com\n", "2130706433", "0x7f.1", "-a.example"]
    for domain in bad:
        members: Any
        for members, field in [
            ({"primary_domain": domain}, "primary_domain"),
            ({"allowed_domains": ["ok.example", domain]}, "allowed_domains.1"),
        ]:
            response = await alice.post(KEYS, json=key_body(**members))
            assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == [field], domain
    for members in ({"primary_domain": 5}, {"allowed_domains": "x.example"}, {"allowed_domains": [5]}):
        assert_error(await alice.post(KEYS, json=key_body(**members)), 400, "VALIDATION_ERROR")


async def test_A110_A111_domains_are_stored_in_one_normal_form(alice: httpx.AsyncClient) -> None:
    for given, primary, twin in [
        ("https://Example.com:8443/x", "example.com:8443", "www.example.com:8443"),
        ("http://Example.com:80/x", "example.com", "www.example.com"),
        ("www.example.com", "www.example.com", "example.com"),
        ("bücher.example", "xn--bcher-kva.example", "www.xn--bcher-kva.example"),
        ("EXAMPLE.com.", "example.com", "www.example.com"),
    ]:
        made = assert_ok(await alice.post(KEYS, json=key_body(primary_domain=given)), 201)
        assert (made["primary_domain"], made["allowed_domains"]) == (primary, [primary, twin])
    extras = ["Shop.example", "shop.EXAMPLE", "WWW.example.com", "example.com"]
    body = key_body(primary_domain="example.com", allowed_domains=extras)
    made = assert_ok(await alice.post(KEYS, json=body), 201)
    assert made["allowed_domains"] == ["example.com", "www.example.com", "shop.example"]
    many = [f"d{number}.example" for number in range(51)]
    assert_error(await alice.post(KEYS, json=key_body(allowed_domains=many)), 400, "VALIDATION_ERROR")
    assert_ok(await alice.post(KEYS, json=key_body(allowed_domains=many[:50])), 201)


async def test_A112_a_key_manages_no_keys(plugin: Site) -> None:
    client = plugin.key["client_id"]
    for method, path in [
        ("POST", KEYS),
        ("GET", KEYS),
        ("DELETE", f"{KEYS}/{client}"),
        ("GET", f"/api/v1/api-keys/{client}/status"),
    ]:
        response = await plugin.http.request(method, path, json=key_body() if method == "POST" else None)
        assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS")


async def test_A115_only_the_owner_deletes_a_key_and_only_once(
    alice: httpx.AsyncClient, as_user: AsUser, as_service: AsService
) -> None:
    one, two = await as_service(), await as_service()
    path = f"{KEYS}/{one.key['client_id']}"
    assert_error(await (await as_user(BOB)).delete(path), 404, "NOT_FOUND")
    assert_ok(await alice.delete(path))
    assert_error(await alice.delete(path), 404, "NOT_FOUND")
    encoded = "".join(f"%{ord(letter):02X}" for letter in two.key["client_id"])
    assert_error(await alice.delete(f"{KEYS}/{two.key['service_client_id']}"), 404, "NOT_FOUND")
    assert_ok(await alice.delete(f"{KEYS}/{encoded}"))


async def test_A116_no_response_shows_a_secret(
    alice: httpx.AsyncClient, http: httpx.AsyncClient, plugin: Site, services: Services
) -> None:
    secret = plugin.key["client_secret"]
    async with services.storage.read() as session:
        _, (digest,), _ = await credentials(session, plugin.key["client_id"], services.clock.now())
    for response in [
        await alice.get(KEYS, params={"include_revoked": "true"}),
        await alice.get(f"/api/v1/api-keys/{plugin.key['client_id']}/status", params={"history": "true"}),
        await http.post(VALIDATE, json=plugin.credentials),
        await http.post(TOKEN, json={"grant_type": "client_credentials", **plugin.credentials}),
        await http.post(TOKEN, json={"grant_type": "x", **plugin.credentials}),
        await alice.delete(f"{KEYS}/{plugin.key['client_id']}"),
    ]:
        for word in (secret, digest, "client_secret"):
            assert word not in response.text
