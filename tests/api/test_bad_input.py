"""Bad bodies, queries and values on every route that takes them (rows A083 to A116 of the list of bad input)."""

import json
import logging
from typing import Any

import httpx
import pytest
from quart import Quart
from sqlalchemy import func, select

from conftest import AsService, AsUser
from hostile import Forge, hostile
from profilesvc.domain.world import SECOND, FrozenClock
from profilesvc.fixtures import fixture_path
from profilesvc.services.context import Services
from profilesvc.services.signing import signing_key
from profilesvc.storage.keys import digests
from profilesvc.storage.tables import keys, syncs
from support import BOB, Site, assert_error, assert_ok, fields

KEYS = "/api/v1/developer/credentials"
LOCATIONS = "/api/v1/external-business/locations"
HEARTBEAT = "/api/v1/api-keys/heartbeat"
TOKEN = "/api/v1/auth/token"
VALIDATE = "/api/v1/auth/validate-service-credentials"
POSTS = "/api/v1/posts"
JSON = {"Content-Type": "application/json"}
# Every route that takes a body, for a key or a user that may call it.
BODIES = [
    ("user", "POST", KEYS),
    ("key", "POST", HEARTBEAT),
    ("nobody", "POST", TOKEN),
    ("nobody", "POST", VALIDATE),
    ("key", "POST", f"{POSTS}?locationId=111"),
    ("key", "PATCH", f"{POSTS}/11101?locationId=111"),
    ("key", "PATCH", f"{LOCATIONS}/111/sync"),
    ("key", "POST", "/api/v1/sync/111"),
]
# Every route that takes a page or a size.
NUMBERS = [
    (LOCATIONS, "page"),
    (LOCATIONS, "limit"),
    ("/api/v1/sync/history/111", "page"),
    ("/api/v1/sync/history/111", "limit"),
    (f"{POSTS}?locationId=111", "pageSize"),
]


def key_body(**members: Any) -> dict[str, Any]:
    return {"name": "My Site", "business_id": 10, "assigned_location_id": "locations/111", **members}


@pytest.fixture
def clients(http: httpx.AsyncClient, alice: httpx.AsyncClient, plugin: Site) -> dict[str, httpx.AsyncClient]:
    return {"nobody": http, "user": alice, "key": plugin.http}


async def rows(services: Services) -> list[int]:
    """How many keys and syncs there are: what bad input must not change."""
    async with services.storage.read() as session:
        return [int((await session.execute(select(func.count()).select_from(t))).scalar_one()) for t in (keys, syncs)]


async def test_the_list_of_routes_is_whole(app: Quart) -> None:
    taking = {
        f"{found.method} {found.path}"
        for view in app.view_functions.values()
        if (found := getattr(view, "endpoint", None)) and found.body is not None
    }
    assert len(taking) == len(BODIES)


class TestBodies:
    async def test_a083_to_a089_what_is_not_plain_json(
        self, clients: dict[str, httpx.AsyncClient], services: Services
    ) -> None:
        before = await rows(services)
        good = b'{"a":1}'
        for name, raw in [
            ("A001 empty", b""),
            ("A001 blank", b" \r\n\t"),
            ("A001 half", b'{"a":'),
            ("A001 a list", b"[]"),
            ("A001 null", b"null"),
            ("A001 a string", b'"x"'),
            ("A001 a number", b"1"),
            ("A001 two values", good + good),
            ("A001 a comment", b'{"a":1/**/}'),
            ("A001 a trailing comma", b'{"a":1,}'),
            ("A001 single quotes", b"{'a':1}"),
            ("A083 invalid UTF-8", b'{"a":"\xff"}'),
            ("A083 overlong UTF-8", b'{"a":"\xc0\xaf"}'),
            ("A083 a surrogate in UTF-8", b'{"a":"\xed\xa0\x80"}'),
            ("A083 UTF-16", '{"a":1}'.encode("utf-16")),
            ("A083 UTF-16 without a mark", '{"a":1}'.encode("utf-16-le")),
            ("A083 UTF-32", '{"a":1}'.encode("utf-32")),
            ("A083 latin-1", '{"a":"é"}'.encode("latin-1")),
            ("A084 30,000 arrays", b"[" * 30_000 + b"]" * 30_000),
            ("A084 30,000 objects that never end", b'{"a":' * 10_000),
            ("A084 depth 33", b'{"a":' * 33 + b"1" + b"}" * 33),
            ("A084 depth 33 of arrays", b'{"a":' + b"[" * 32 + b"]" * 32 + b"}"),
            ("A085 a byte order mark", b"\xef\xbb\xbf" + good),
            ("A086 NaN", b'{"a":NaN}'),
            ("A086 Infinity", b'{"a":-Infinity}'),
            ("A086 1e400", b'{"a":1e400}'),
            ("A086 5,000 digits", b'{"a":' + b"9" * 5_000 + b"}"),
            ("A088 a member twice", b'{"a":1,"a":1}'),
            ("A088 a member twice, deep", b'{"b":{"a":1,"a":2}}'),
            ("A088 a member twice, escaped", b'{"a":1,"\\u0061":1}'),
            ("A089 a lone surrogate", b'{"a":"\\ud800"}'),
            ("A089 a lone surrogate as a name", b'{"\\udfff":1}'),
            ("A089 a lone surrogate, deep", b'{"a":[{"b":"\\udc00x"}]}'),
            ("A001 a control character", b'{"a":"\n"}'),
        ]:
            for caller, method, path in BODIES:
                response = await clients[caller].request(method, path, content=raw, headers=JSON)
                details = assert_error(response, 400, "VALIDATION_ERROR")
                assert details["errors"][0]["in"] == "body", (name, path)
        assert await rows(services) == before

    async def test_a084_depth_32_is_good(self, clients: dict[str, httpx.AsyncClient]) -> None:
        raw = b'{"a":' * 32 + b"1" + b"}" * 32
        response = await clients["key"].post(HEARTBEAT, content=raw, headers=JSON)
        assert_ok(response)

    async def test_a090_a102_sizes(self, clients: dict[str, httpx.AsyncClient], services: Services) -> None:
        before = await rows(services)
        many = json.dumps({f"member{number}": number for number in range(100_000)}).encode()
        for caller, method, path in BODIES:
            cap = (64 if caller == "nobody" else 256) * 1024
            for raw, status in [(b"{" + b" " * cap, 413), (b"{" + b" " * (cap - 1), 400), (many, 413)]:
                response = await clients[caller].request(method, path, content=raw, headers=JSON)
                assert_error(response, status, {413: "PAYLOAD_TOO_LARGE", 400: "VALIDATION_ERROR"}[status])
        for caller, method, path, body in [
            ("user", "POST", KEYS, key_body(name="x" * 200_000)),
            ("key", "POST", "/api/v1/sync/111", {"title": "x" * 200_000}),
            ("key", "POST", HEARTBEAT, {"detected_plugins": ["x"] * 10_000}),
            ("key", "POST", f"{POSTS}?locationId=111", {"summary": "x" * 200_000}),
        ]:
            response = await clients[caller].request(method, path, json=body)
            assert_error(response, 400, "VALIDATION_ERROR")
        assert await rows(services) == before

    async def test_a017_media_types_on_every_route(self, clients: dict[str, httpx.AsyncClient]) -> None:
        for caller, method, path in BODIES:
            for media in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/xml"):
                response = await clients[caller].request(method, path, content=b"{}", headers={"Content-Type": media})
                assert_error(response, 415, "UNSUPPORTED_MEDIA_TYPE")

    async def test_a101_members_that_are_not_the_callers_to_set(
        self, clients: dict[str, httpx.AsyncClient], services: Services
    ) -> None:
        extra = {
            "plan": "agency",
            "user_id": 2,
            "client_id": "mine",
            "isVerified": True,
            "__proto__": {"x": 1},
            "id": 7,
        }
        made = assert_ok(await clients["user"].post(KEYS, json=key_body(**extra)), 201)
        assert (made["plan"], made["client_id"].split("_")[1]) == ("pro", "1")
        assert made["service_client_id"] != 7
        assert_ok(await clients["key"].post(HEARTBEAT, json={**extra, "key_id": 99}))
        switch = await clients["key"].patch(f"{LOCATIONS}/111/sync", json={"syncEnabled": True, **extra})
        assert "isVerified" in fields(assert_error(switch, 400, "VALIDATION_ERROR"))
        post = await clients["key"].post(f"{POSTS}?locationId=111", json={"summary": "x", **extra})
        assert "plan" in fields(assert_error(post, 400, "VALIDATION_ERROR"))
        synced = assert_ok(await clients["key"].post("/api/v1/sync/111", json={**extra, "name": "locations/211"}))
        assert synced["status"] == "skipped"

    async def test_a103_what_looks_like_code_is_text(
        self, clients: dict[str, httpx.AsyncClient], plugin: Site, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, logger="profilesvc")
        texts = [
            "<script>alert(1)</script>",
            "'; DROP TABLE keys; --",
            "{{7*7}} ${7*7} <%= 7 %>",
            "a\r\nSet-Cookie: b=c",
            "\x1b[31mred\x1b[0m",
            "‮evil",
            "%s %d {0}",
        ]
        for text in texts:
            made = await clients["user"].post(KEYS, json=key_body(name=text))
            assert assert_ok(made, 201)["name"] == text.strip()
            assert made.headers["content-type"] == "application/json"
            assert "set-cookie" not in made.headers
            assert_ok(await clients["key"].post(HEARTBEAT, json={"plugin_version": text}))
            status = await clients["user"].get(f"/api/v1/api-keys/{plugin.key['client_id']}/status")
            assert assert_ok(status)["plugin_version"] == text
            assert_ok(await clients["key"].post("/api/v1/sync/111", json={"title": text}))
            read = await clients["key"].get(f"{LOCATIONS}/111")
            assert assert_ok(read)["title"] == text
        ours = [record.getMessage() for record in caplog.records if record.name.startswith("profilesvc")]
        assert not any("\n" in line or "\x1b" in line for line in ours)


class TestQueries:
    async def test_a097_numbers(self, alice: httpx.AsyncClient) -> None:
        bad = [
            "0",
            "-1",
            "abc",
            "1e3",
            "1_0",
            "+1",
            " 1",
            "1 ",
            "\u0661",
            "1" + "0" * 20,
            "",
            "1.0",
            "0x1",
            "null",
            "१",
        ]
        for path, name in NUMBERS:
            for value in bad:
                response = await alice.get(path, params={**httpx.URL(path).params, name: value})
                details = assert_error(response, 400, "VALIDATION_ERROR")
                assert fields(details) == [name], (path, value)
                assert details["errors"][0]["in"] == "query"
            joint = "&" if "?" in path else "?"
            for twisted in (f"{name}=1&{name}=2", f"{name}=1&{name}=1", f"{name}[]=1", f"{name}[a]=1"):
                response = await alice.get(f"{path}{joint}{twisted}")
                assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == [name], twisted
            assert_ok(await alice.get(f"{path}{joint}unknown=1&unknown=2&also[]=3"))

    async def test_a099_page_tokens(self, alice: httpx.AsyncClient, as_user: AsUser) -> None:
        first = assert_ok(await alice.get(POSTS, params={"locationId": "111", "pageSize": 2}))
        token, bob = first["nextPageToken"], await as_user(BOB)
        assert token
        other = await bob.get(POSTS, params={"locationId": "211", "pageToken": token})
        assert_error(other, 400, "VALIDATION_ERROR")
        flipped = ("A" if token[0] != "A" else "B") + token[1:]
        for value in (
            "x",
            token[:-1],
            token + "A",
            flipped,
            token * 2,
            "x" * 60_000,
            "\0",
            "é",
            "=" * 8,
            "..",
            "null",
        ):
            response = await alice.get(POSTS, params={"locationId": "111", "pageToken": value})
            assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["pageToken"], value[:20]

    async def test_a100_location_ids(self, alice: httpx.AsyncClient) -> None:
        missing = await alice.get(POSTS)
        assert fields(assert_error(missing, 400, "VALIDATION_ERROR")) == ["locationId"]
        for query in ("locationId=", "locationId=111&locationId=111", "locationId[]=111", "locationid=111"):
            response = await alice.get(f"{POSTS}?{query}")
            assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["locationId"], query
        for value in (
            "x" * 65,
            "locations/",
            "locations",
            "accounts/1/locations/111",
            "locations/111/localPosts/1",
            "locations/locations/111",
            "111 ",
            "111\n",
            "111\0",
            "1;2",
            "../111",
            "\u0661\u0661\u0661",
            "%31%31%31",
            "Locations/111",
        ):
            response = await alice.get(POSTS, params={"locationId": value})
            assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["locationId"], value
        for value in ("111", "locations/111"):
            assert_ok(await alice.get(POSTS, params={"locationId": value}))
        assert_error(await alice.get(POSTS, params={"locationId": "x" * 64}), 404, "NOT_FOUND")


class TestKeys:
    async def test_a086_a087_numbers_of_a_business(self, alice: httpx.AsyncClient, services: Services) -> None:
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

    async def test_a105_a106_names(self, alice: httpx.AsyncClient) -> None:
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

    async def test_a107_the_same_name_in_the_same_millisecond(
        self, alice: httpx.AsyncClient, clock: FrozenClock
    ) -> None:
        made = [assert_ok(await alice.post(KEYS, json=key_body()), 201)["client_id"] for _ in range(5)]
        assert len(set(made)) == 5
        assert [int(ident.split("_")[2]) for ident in made] == [clock.now() + n for n in range(5)]

    async def test_a108_what_is_not_the_callers(self, alice: httpx.AsyncClient) -> None:
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

    async def test_a109_domains_that_are_none(self, alice: httpx.AsyncClient) -> None:
        bad = ["*.example.com", "co.uk", "127.0.0.1", "[::1]", "http://", "a..b", "user@x.com", "", " ", "com"]
        bad += [".".join(["x" * 60] * 5), "exa mple.com", "example.com\n", "2130706433", "0x7f.1", "-a.example"]
        for domain in bad:
            for members, field in [
                ({"primary_domain": domain}, "primary_domain"),
                ({"allowed_domains": ["ok.example", domain]}, "allowed_domains.1"),
            ]:
                response = await alice.post(KEYS, json=key_body(**members))
                assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == [field], domain
        for members in ({"primary_domain": 5}, {"allowed_domains": "x.example"}, {"allowed_domains": [5]}):
            assert_error(await alice.post(KEYS, json=key_body(**members)), 400, "VALIDATION_ERROR")

    async def test_a110_a111_domains_in_one_normal_form(self, alice: httpx.AsyncClient) -> None:
        for given, primary, twin in [
            ("https://Example.com:8443/x", "example.com", "www.example.com"),
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

    async def test_a112_a_key_manages_no_keys(self, plugin: Site) -> None:
        client = plugin.key["client_id"]
        for method, path in [
            ("POST", KEYS),
            ("GET", KEYS),
            ("DELETE", f"{KEYS}/{client}"),
            ("GET", f"/api/v1/api-keys/{client}/status"),
        ]:
            response = await plugin.http.request(method, path, json=key_body() if method == "POST" else None)
            assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS")

    async def test_a115_delete(self, alice: httpx.AsyncClient, as_user: AsUser, as_service: AsService) -> None:
        one, two = await as_service(), await as_service()
        path = f"{KEYS}/{one.key['client_id']}"
        assert_error(await (await as_user(BOB)).delete(path), 404, "NOT_FOUND")
        assert_ok(await alice.delete(path))
        assert_error(await alice.delete(path), 404, "NOT_FOUND")
        encoded = "".join(f"%{ord(letter):02X}" for letter in two.key["client_id"])
        assert_error(await alice.delete(f"{KEYS}/{two.key['service_client_id']}"), 404, "NOT_FOUND")
        assert_ok(await alice.delete(f"{KEYS}/{encoded}"))

    async def test_a116_no_answer_shows_a_secret(
        self, alice: httpx.AsyncClient, http: httpx.AsyncClient, plugin: Site, services: Services
    ) -> None:
        secret = plugin.key["client_secret"]
        async with services.storage.read() as session:
            (digest,) = await digests(session, plugin.key["service_client_id"], services.clock.now())
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


class TestBearer:
    async def test_a054_a055_a056_headers(self, app: Quart, http: httpx.AsyncClient, plugin: Site) -> None:
        token = plugin.tokens["access_token"]
        for value in (
            "Bearer",
            "Bearer ",
            f"Bearer  {token}",
            f"Token {token}",
            "Basic eDp5",
            token,
            f"Bearer {token} x",
        ):
            response = await http.get(LOCATIONS, headers={"Authorization": value})
            assert assert_error(response, 401, "AUTH_INVALID_TOKEN") == {"reason": "malformed"}, value
            assert response.headers["www-authenticate"] == 'Bearer error="invalid_token"'
        for value in (None, ""):
            headers = {} if value is None else {"Authorization": value}
            response = await http.get(LOCATIONS, headers=headers)
            assert assert_error(response, 401, "AUTH_INVALID_TOKEN") == {"reason": "missing"}
            assert response.headers["www-authenticate"] == "Bearer"
        for scheme in ("bearer", "BEARER", "bEaReR"):
            assert_ok(await http.get(LOCATIONS, headers={"Authorization": f"{scheme} {token}"}))
        for pair in (("Bearer x", f"Bearer {token}"), (f"Bearer {token}", "Bearer x"), (f"Bearer {token}",) * 2):
            two = [("Authorization", value) for value in pair]
            response = await http.get(LOCATIONS, headers=two)
            assert assert_error(response, 401, "AUTH_INVALID_TOKEN") == {"reason": "malformed"}

    async def test_a057_tokens_in_other_places(self, http: httpx.AsyncClient, plugin: Site) -> None:
        token = plugin.tokens["access_token"]
        for options in (
            {"params": {"access_token": token, "token": token}},
            {"headers": {"Cookie": f"access_token={token}; Authorization=Bearer {token}"}},
            {"headers": {"X-Access-Token": token, "X-Api-Key": token, "Proxy-Authorization": f"Bearer {token}"}},
        ):
            response = await http.get(LOCATIONS, **options)  # type: ignore[arg-type]
            assert assert_error(response, 401, "AUTH_INVALID_TOKEN") == {"reason": "missing"}

    async def test_a058_to_a081_every_hostile_token_is_a_401(
        self, http: httpx.AsyncClient, plugin: Site, services: Services, caplog: pytest.LogCaptureFixture
    ) -> None:
        now = services.clock.now()
        claims = services.signer.read(plugin.tokens["access_token"], "at+jwt", now)
        key = signing_key(fixture_path("signing_key.pem").read_bytes())
        forge = Forge(key, claims, now // SECOND)
        assert_ok(await http.get(LOCATIONS, headers={"Authorization": f"Bearer {forge.good()}"}))
        count = 0
        for name, token in hostile(forge):
            value = f"Bearer {token}".encode()
            if b"\r" in value or b"\n" in value or b"\0" in value or value.strip() != value:
                continue  # no server passes these on: see the raw requests
            response = await http.get(LOCATIONS, headers=[(b"Authorization", value)])
            status = 431 if len(value) > 16_000 else 401
            code = {431: "HEADERS_TOO_LARGE", 401: "AUTH_INVALID_TOKEN"}[status]
            details = assert_error(response, status, code)
            assert status == 431 or details["reason"] in ("malformed", "invalid", "expired"), name
            count += 1
        assert count >= 150
        assert_ok(await plugin.http.get(LOCATIONS))
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []

    async def test_a074_a_client_that_is_unknown(
        self, http: httpx.AsyncClient, plugin: Site, services: Services
    ) -> None:
        now = services.clock.now()
        claims = services.signer.read(plugin.tokens["access_token"], "at+jwt", now)
        rest = {name: value for name, value in claims.items() if name not in ("iat", "exp")}
        for other in (
            {"sub": "svcid_1_1_nobody", "client_id": "svcid_1_1_nobody"},
            {"scope": "user", "sub": "999", "client_id": "dashboard"},
            {"scope": "user", "sub": "9223372036854775807", "client_id": "dashboard"},
        ):
            token = services.signer.issue("at+jwt", {**rest, **other}, now, 60)
            response = await http.get(LOCATIONS, headers={"Authorization": f"Bearer {token}"})
            assert assert_error(response, 401, "AUTH_INVALID_TOKEN") == {"reason": "revoked"}

    async def test_a075_claims_never_widen_what_the_key_may(
        self, http: httpx.AsyncClient, as_service: AsService, services: Services
    ) -> None:
        site, now = await as_service(permissions=["business.read"]), services.clock.now()
        claims = services.signer.read(site.tokens["access_token"], "at+jwt", now)
        rest = {name: value for name, value in claims.items() if name not in ("iat", "exp")}
        wide = {**rest, "permissions": ["business.read", "business.write"], "location": "locations/211"}
        headers = {"Authorization": f"Bearer {services.signer.issue('at+jwt', wide, now, 60)}"}
        assert_ok(await http.get(f"{LOCATIONS}/111", headers=headers))
        for method, path in [("GET", f"{LOCATIONS}/211"), ("PATCH", f"{LOCATIONS}/111/sync")]:
            response = await http.request(method, path, headers=headers)
            assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS")
