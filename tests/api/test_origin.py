"""Which pages may call and read the response (D-30, D-31; rows A123 to A125)."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from benchmarks import generate
from benchmarks.generate import Amounts
from quart import Quart
from sqlalchemy import delete, insert, literal, select, text, update

from conftest import BASE_URL, ON_ONE_DATABASE, AsService, Change, Dial
from profilesvc.domain.time import FrozenClock
from profilesvc.services import keys as key_service
from profilesvc.services.context import Services
from profilesvc.storage import tables, users
from profilesvc.storage.domains import ENTRIES
from profilesvc.storage.tables import key_domains, keys
from support.api import Site, assert_error, assert_ok
from support.cases.origins import DOMAINS, GOOD, HOSTILE, MALFORMED
from support.database.citus import on_one_server
from support.database.statement_counts import sent_by
from support.effort import effort
from support.parts import Broken

LOCATIONS = "/api/v1/external-business/locations"
HEARTBEAT = "/api/v1/api-keys/heartbeat"
TOKEN = "/api/v1/auth/token"
VALIDATE = "/api/v1/auth/validate-service-credentials"
EXPOSED = (
    "X-Request-Id, Retry-After, RateLimit, RateLimit-Policy, Idempotency-Replayed, X-Data-Age, "
    "ETag, Location, Allow, WWW-Authenticate"
)
GOOD_ORIGIN, EVIL = "https://example.com", "https://evil.example"


def origin(value: str) -> dict[str, Any]:
    return {"Origin": value.encode()}


def cors_of(response: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name.startswith("access-control-")}


def assert_readable(response: httpx.Response, by: str) -> None:
    assert cors_of(response) == {"access-control-allow-origin": by, "access-control-expose-headers": EXPOSED}
    assert response.headers["vary"].startswith("Origin")


def assert_unreadable(response: httpx.Response) -> None:
    assert cors_of(response) == {}
    assert response.headers["vary"].startswith("Origin")


def assert_refused(response: httpx.Response) -> None:
    assert assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS") == {"reason": "origin_not_allowed"}
    assert_unreadable(response)


@pytest.fixture
async def site(as_service: AsService) -> Site:
    """A site with domains."""
    return await as_service(**DOMAINS)


@pytest.fixture
def configure(services: Services, change: Change) -> Change:
    """`configure(dashboard_origins=…)`: other settings over the same parts."""
    return lambda **settings: change(settings=services.settings.model_copy(update=settings))


@pytest.fixture
def production(configure: Change) -> None:
    """The rules of production over the same parts."""
    configure(environment="production")


async def test_A123_an_allowed_origin_is_returned_exactly_as_it_was_sent(site: Site) -> None:
    for value in [*GOOD, "http://example.com", "http://www.example.com:80"]:
        response = await site.http.get(LOCATIONS, headers=origin(value))
        assert_ok(response)
        assert_readable(response, value)


async def test_A123_every_other_origin_is_rejected_and_not_reflected(site: Site) -> None:
    for value in HOSTILE:
        response = await site.http.get(LOCATIONS, headers=origin(value))
        assert_refused(response)
        assert len(value) < 6 or value not in response.text


async def test_A123_a_request_with_two_origins_is_rejected(
    site: Site, alice: httpx.AsyncClient, http: httpx.AsyncClient
) -> None:
    for values in ((GOOD_ORIGIN, GOOD_ORIGIN), (GOOD_ORIGIN, EVIL), (EVIL, GOOD_ORIGIN)):
        for client in (site.http, alice, http):
            response = await client.get(LOCATIONS, headers=[("Origin", value) for value in values])
            assert_error(response, 400, "VALIDATION_ERROR")
            assert_unreadable(response)


@pytest.mark.usefixtures("production")
async def test_A123_production_rejects_an_origin_over_http(site: Site, http: httpx.AsyncClient) -> None:
    assert_refused(await site.http.get(LOCATIONS, headers=origin("http://example.com")))
    assert_readable(await site.http.get(LOCATIONS, headers=origin(GOOD_ORIGIN)), GOOD_ORIGIN)
    assert_unreadable(await http.options(LOCATIONS, headers=PREFLIGHT | origin("http://example.com")))


async def test_a_key_without_domains_accepts_every_origin_but_null(plugin: Site) -> None:
    for value in (EVIL, "http://shop.example:8080", "https://10.0.0.1"):
        assert_readable(await plugin.http.get(LOCATIONS, headers=origin(value)), value)
    for value in MALFORMED:
        assert_refused(await plugin.http.get(LOCATIONS, headers=origin(value)))


async def test_a_request_without_an_origin_is_not_checked_and_referer_is_ignored(site: Site) -> None:
    for headers in ({}, {"Referer": EVIL}, {"Referer": GOOD_ORIGIN}):
        response = await site.http.get(LOCATIONS, headers=headers)
        assert_ok(response)
        assert_unreadable(response)
    assert_refused(await site.http.get(LOCATIONS, headers={"Referer": GOOD_ORIGIN, **origin(EVIL)}))


async def test_a_heartbeat_is_bound_to_the_domains_of_its_key(site: Site) -> None:
    assert_refused(await site.http.post(HEARTBEAT, json={}, headers=origin(EVIL)))
    assert_readable(await site.http.post(HEARTBEAT, json={}, headers=origin(GOOD_ORIGIN)), GOOD_ORIGIN)


async def test_D31_the_origin_of_the_service_is_accepted_for_every_caller(
    site: Site, alice: httpx.AsyncClient, http: httpx.AsyncClient
) -> None:
    for client in (site.http, alice):
        assert_readable(await client.get(LOCATIONS, headers=origin(BASE_URL)), BASE_URL)
    response = await http.get(LOCATIONS, headers=origin(BASE_URL))
    assert_error(response, 401, "AUTH_INVALID_TOKEN")
    assert_readable(response, BASE_URL)
    for value in ("https://profiles.test", "http://profiles.test:8000", "http://profiles.test.", "http://test"):
        assert_refused(await alice.get(LOCATIONS, headers=origin(value)))


async def test_D31_development_accepts_users_from_any_port_of_this_machine(
    alice: httpx.AsyncClient, site: Site
) -> None:
    for value in ("http://localhost:3000", "http://127.0.0.1:8888", "https://localhost", "http://localhost"):
        assert_readable(await alice.get(LOCATIONS, headers=origin(value)), value)
        assert_refused(await site.http.get(LOCATIONS, headers=origin(value)))  # users' pages, not the key's
    for value in ("http://localhost.evil.example", "http://127.0.0.2", "http://localhost.", EVIL, "null"):
        assert_refused(await alice.get(LOCATIONS, headers=origin(value)))


@pytest.mark.usefixtures("production")
async def test_D31_production_accepts_no_port_of_this_machine(alice: httpx.AsyncClient) -> None:
    assert_refused(await alice.get(LOCATIONS, headers=origin("http://localhost:3000")))


async def test_D31_configured_dashboards_are_compared_as_origins(
    configure: Change, alice: httpx.AsyncClient, site: Site
) -> None:
    configure(dashboard_origins=("https://dash.example:8443", "https://Other.example"))
    for value in ("https://dash.example:8443", "https://other.example", "https://other.example:443", BASE_URL):
        assert_readable(await alice.get(LOCATIONS, headers=origin(value)), value)
    for value in ("https://dash.example", "http://dash.example:8443", "https://x.dash.example:8443"):
        assert_refused(await alice.get(LOCATIONS, headers=origin(value)))
    assert_refused(await alice.get(LOCATIONS, headers=origin("http://localhost:3000")))  # it is configured now
    assert_refused(await site.http.get(LOCATIONS, headers=origin("https://dash.example:8443")))


async def test_D03_the_token_is_checked_before_the_origin_and_no_page_reads_the_error(dial: Dial) -> None:
    async with dial("garbage.garbage.garbage") as client:
        for value in (GOOD_ORIGIN, EVIL, "null"):
            response = await client.get(LOCATIONS, headers=origin(value))
            assert_error(response, 401, "AUTH_INVALID_TOKEN")
            assert_unreadable(response)


async def test_D03_the_permission_is_checked_before_the_origin(as_service: AsService) -> None:
    reader = await as_service(permissions=["business.read"], **DOMAINS)
    for value, check in ((EVIL, assert_unreadable), (GOOD_ORIGIN, lambda r: assert_readable(r, GOOD_ORIGIN))):
        response = await reader.http.post("/api/v1/sync/111", json={}, headers=origin(value))
        details = assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS")
        assert details == {"reason": "permission_missing", "required": "business.write"}
        check(response)


async def test_D03_the_origin_is_checked_before_syntax_and_location(site: Site) -> None:
    for path in (f"{LOCATIONS}?page=x", f"{LOCATIONS}/a b", f"{LOCATIONS}/999", "/api/v1/posts"):
        assert_refused(await site.http.get(path, headers=origin(EVIL)))


async def test_a_deactivated_key_shows_the_reason_to_its_own_page(site: Site, services: Services) -> None:
    await key_service.deactivate(services, site.key["client_id"], "billing_issue")
    for value, check in ((EVIL, assert_unreadable), (GOOD_ORIGIN, lambda r: assert_readable(r, GOOD_ORIGIN))):
        response = await site.http.get(LOCATIONS, headers=origin(value))
        details = assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS")
        assert details["deactivation_reason"] == "billing_issue"
        check(response)


async def test_A125_an_allowed_page_can_read_errors_that_follow_the_origin_check(site: Site) -> None:
    for path, status in ((f"{LOCATIONS}/999", 403), (f"{LOCATIONS}?page=x", 400), ("/api/v1/posts", 400)):
        response = await site.http.get(path, headers=origin(GOOD_ORIGIN))
        assert response.status_code == status
        assert_readable(response, GOOD_ORIGIN)


async def test_A125_an_allowed_page_can_read_an_internal_error(site: Site, change: Change) -> None:
    change(provider=Broken())
    path = f"{LOCATIONS}/111/refresh-verification"
    response = await site.http.post(path, headers=origin(GOOD_ORIGIN))
    assert_error(response, 500, "INTERNAL_ERROR")
    assert_readable(response, GOOD_ORIGIN)


async def test_D30_a_token_is_issued_only_to_an_origin_of_its_key(http: httpx.AsyncClient, site: Site) -> None:
    grants = [
        {"grant_type": "client_credentials", **site.credentials},
        {"grant_type": "refresh_token", "refresh_token": site.tokens["refresh_token"]},
    ]
    for grant in grants:
        for value in (EVIL, "null", "http://localhost:3000"):
            assert_refused(await http.post(TOKEN, json=grant, headers=origin(value)))
    for grant in grants:
        response = await http.post(TOKEN, json=grant, headers=origin(GOOD_ORIGIN))
        assert_ok(response)
        assert_readable(response, GOOD_ORIGIN)


async def test_D30_a_wrong_secret_does_not_reveal_the_domains_of_the_key(http: httpx.AsyncClient, site: Site) -> None:
    wrong = {"grant_type": "client_credentials", **site.credentials, "client_secret": "x"}
    for value in (EVIL, GOOD_ORIGIN):
        response = await http.post(TOKEN, json=wrong, headers=origin(value))
        assert_error(response, 401, "AUTH_INVALID_TOKEN")
        assert_unreadable(response)


async def test_a_refresh_rejected_for_its_origin_does_not_use_up_the_token(http: httpx.AsyncClient, site: Site) -> None:
    grant = {"grant_type": "refresh_token", "refresh_token": site.tokens["refresh_token"]}
    for _ in range(3):
        assert_refused(await http.post(TOKEN, json=grant, headers=origin(EVIL)))
    assert_ok(await http.post(TOKEN, json=grant))


async def test_A028_the_check_of_credentials_uses_only_site_domain(http: httpx.AsyncClient, site: Site) -> None:
    body = {**site.credentials, "site_domain": "example.com"}
    for value, check in ((EVIL, assert_unreadable), (GOOD_ORIGIN, lambda r: assert_readable(r, GOOD_ORIGIN))):
        response = await http.post(VALIDATE, json=body, headers=origin(value))
        assert assert_ok(response)["valid"] is True
        check(response)
        other = await http.post(VALIDATE, json={**body, "site_domain": EVIL}, headers=origin(value))
        assert assert_ok(other) == {"valid": False, "reason": "domain_not_allowed"}
        check(other)
        wrong = await http.post(VALIDATE, json={**body, "client_secret": "x"}, headers=origin(value))
        assert_unreadable(wrong)


PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
ALLOWED = {
    "access-control-allow-headers": "Authorization, Content-Type, X-Idempotency-Key, Idempotency-Key, "
    "If-None-Match, X-Request-Id, Traceparent, Tracestate",
    "access-control-max-age": "600",
    "access-control-expose-headers": EXPOSED,
}


async def preflight(http: httpx.AsyncClient, value: str, path: str = LOCATIONS) -> bool:
    """Whether the browser would go on; the answer is one of exactly two."""
    response = await http.options(path, headers=PREFLIGHT | origin(value))
    assert response.status_code == 204
    assert response.content == b""
    assert response.headers["vary"].startswith("Origin")
    found, methods = cors_of(response), set(response.headers["allow"].split(", ")) - {"OPTIONS"}
    assert set(found.pop("access-control-allow-methods", ", ".join(methods)).split(", ")) == methods
    assert found in ({}, {"access-control-allow-origin": value, **ALLOWED})
    return found != {}


class ReadOnly:
    """A storage that knows no writing."""

    def __init__(self, services: Services) -> None:
        self.read = services.storage.read


async def test_A124_a_preflight_accepts_only_origins_of_live_keys(http: httpx.AsyncClient, site: Site) -> None:
    for value in [*GOOD, "http://example.com"]:
        assert await preflight(http, value), value
    for value in HOSTILE:
        if "localhost" not in value and "127.0.0.1" not in value:
            assert not await preflight(http, value), value


@pytest.mark.in_process("takes away the writing of the app's database")
async def test_A124_a_preflight_writes_nothing(
    http: httpx.AsyncClient, site: Site, app: Quart, services: Services
) -> None:
    app.extensions["profilesvc"] = replace(services, storage=ReadOnly(services))  # type: ignore[arg-type]
    assert await preflight(http, GOOD_ORIGIN)
    assert not await preflight(http, EVIL)
    await services.background.drain()


async def test_A124_every_route_responds_to_a_preflight_by_its_origin(
    http: httpx.AsyncClient, site: Site, app: Quart
) -> None:
    for path, methods in walk(app):
        assert await preflight(http, GOOD_ORIGIN, path), path
        assert not await preflight(http, EVIL, path), path
        response = await http.options(path, headers=PREFLIGHT | origin(GOOD_ORIGIN))
        allowed = response.headers["access-control-allow-methods"].split(", ")
        assert methods <= set(allowed), path  # those of other rules of the path are allowed too
        assert len(set(allowed)) == len(allowed)


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/api/v1/reviews/111001/reply", ["PUT", "DELETE"]),
        ("/api/v1/posts", ["GET", "HEAD", "POST"]),
        ("/api/v1/posts/11101", ["PATCH", "DELETE"]),
        (TOKEN, ["POST"]),
    ],
)
@ON_ONE_DATABASE
async def test_a_preflight_allows_the_methods_of_the_path(
    http: httpx.AsyncClient, site: Site, path: str, methods: list[str]
) -> None:
    response = await http.options(path, headers=PREFLIGHT | origin(GOOD_ORIGIN))
    assert response.headers["access-control-allow-methods"].split(", ") == methods


async def test_A124_dashboards_and_our_own_pages_need_no_key(http: httpx.AsyncClient, configure: Change) -> None:
    assert await preflight(http, BASE_URL)
    assert await preflight(http, "http://localhost:5173")
    assert not await preflight(http, GOOD_ORIGIN)
    configure(dashboard_origins=("https://dash.example",))
    assert await preflight(http, "https://dash.example")
    assert not await preflight(http, "http://localhost:5173")


async def test_A124_a_page_without_tls_is_accepted_only_in_development(
    http: httpx.AsyncClient, site: Site, configure: Change
) -> None:
    assert await preflight(http, "http://example.com")
    configure(environment="production")
    assert not await preflight(http, "http://example.com")
    assert await preflight(http, GOOD_ORIGIN)


@pytest.mark.parametrize(("environment", "accepted"), [("development", True), ("production", False)])
async def test_A124_a_key_for_this_machine_is_accepted_only_in_development(
    http: httpx.AsyncClient, as_service: AsService, configure: Change, environment: str, accepted: bool
) -> None:
    await as_service(primary_domain="localhost")
    configure(dashboard_origins=("https://dash.example",), environment=environment)
    assert await preflight(http, "https://localhost") is accepted


async def test_A124_revoked_expired_and_deactivated_keys_accept_no_page(
    http: httpx.AsyncClient,
    alice: httpx.AsyncClient,
    as_service: AsService,
    services: Services,
    clock: FrozenClock,
) -> None:
    revoked = await as_service(primary_domain="revoked.example")
    await as_service(primary_domain="short.example", expires_at="2026-01-02T04:00:00Z")
    held = await as_service(primary_domain="held.example")
    for name in ("revoked", "short", "held"):
        assert await preflight(http, f"https://www.{name}.example")
    assert_ok(await alice.delete(f"/api/v1/developer/credentials/{revoked.key['client_id']}"))
    await key_service.deactivate(services, held.key["client_id"], "billing_issue")
    clock.advance(hours=1)
    for name in ("revoked", "short", "held"):
        assert not await preflight(http, f"https://www.{name}.example"), name
    await key_service.reactivate(services, held.key["client_id"])
    assert await preflight(http, "https://held.example")
    await as_service(primary_domain="revoked.example")
    assert await preflight(http, "https://revoked.example")


async def test_A124_a_preflight_finds_a_live_key_behind_many_deactivated_ones(
    http: httpx.AsyncClient, as_service: AsService, services: Services
) -> None:
    held, live = [await as_service(primary_domain="many.example") for _ in range(2)]
    await key_service.deactivate(services, held.key["client_id"], "billing_issue")
    async with services.storage.write() as session:
        query = select(key_domains.c.owner_id, key_domains.c.key_id).where(key_domains.c.domain == "many.example")
        (owner, first), _ = (await session.execute(query.order_by(key_domains.c.key_id))).all()
        entries = [{"domain": "many.example", "until": 2**62 - more} for more in range(-150, 0)]
        await session.execute(insert(key_domains), [{**each, "owner_id": owner, "key_id": first} for each in entries])
    assert await preflight(http, "https://many.example")
    await key_service.deactivate(services, live.key["client_id"], "billing_issue")
    assert not await preflight(http, "https://many.example")


@pytest.mark.slow
async def test_A124_ten_thousand_owners_of_a_domain_do_not_cost_a_statement_each(
    http: httpx.AsyncClient, services: Services
) -> None:
    owners = 10_000
    await generate.load(services, Amounts(owners, 0, 0, sites_per_user=1), seed=1, sure=True)
    async with services.storage.write() as session:
        entries = key_domains.c.domain.like("site%")
        # An UPDATE of the domain is rejected on Citus, which distributes the table by it.
        moved = select(*(literal("many.example") if c is key_domains.c.domain else c for c in key_domains.c))
        await session.execute(insert(key_domains).from_select(list(key_domains.c), moved.where(entries)))
        await session.execute(delete(key_domains).where(entries))
        await session.execute(update(tables.users).values(suspended_at=services.clock.now()))
    with sent_by(services) as sent:
        assert not await preflight(http, "https://many.example")
    assert len(sent.statements) < owners / 100
    async with services.storage.write() as session:
        last = select(tables.users.c.id).order_by(tables.users.c.id.desc()).limit(1).scalar_subquery()
        await session.execute(update(tables.users).where(tables.users.c.id == last).values(suspended_at=None))
    assert await preflight(http, "https://many.example")


async def test_A124_keys_of_a_suspended_owner_accept_no_page(
    http: httpx.AsyncClient, site: Site, services: Services
) -> None:
    async with services.storage.write() as session:
        await users.update_user(session, 1, suspended_at=services.clock.now())
    assert not await preflight(http, GOOD_ORIGIN)


async def test_A124_a_live_key_without_domains_accepts_every_page(
    http: httpx.AsyncClient, alice: httpx.AsyncClient, plugin: Site
) -> None:
    for value in (EVIL, "https://10.0.0.1:8443", "https://a.b.c"):
        assert await preflight(http, value)
    for value in MALFORMED:
        assert not await preflight(http, value), value
    assert_ok(await alice.delete(f"/api/v1/developer/credentials/{plugin.key['client_id']}"))
    assert not await preflight(http, EVIL)


async def test_options_requests_that_are_no_preflight_are_unchanged(http: httpx.AsyncClient, site: Site) -> None:
    plain = await http.options(LOCATIONS)
    assert (plain.status_code, plain.content) == (204, b"")
    assert set(plain.headers["allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}
    assert_unreadable(plain)
    without_method = await http.options(LOCATIONS, headers=origin(GOOD_ORIGIN))
    assert without_method.status_code == 204
    assert_unreadable(without_method)
    assert_error(await http.options("/api/v1/nothing", headers=PREFLIGHT | origin(EVIL)), 404, "NOT_FOUND")


@on_one_server
async def test_the_lookup_of_a_domain_searches_one_index(site: Site, services: Services, database: str) -> None:
    """By domain and time: keys that have ended are not even passed by."""
    statement = ENTRIES.statement.params(domain="example.com", until=1, owner_id=0, key_id=0)
    compiled = str(statement.compile(services.storage.engine, compile_kwargs={"literal_binds": True}))
    async with services.storage.write() as session:
        owner, key = (await session.execute(select(keys.c.owner_id, keys.c.id))).first() or (0, 0)
        of_key = {"owner_id": owner, "key_id": key}
        ended = [{"domain": "example.com", "until": until, **of_key} for until in range(-5, 0)]
        others = [{"domain": f"{number}.example", "until": 9, **of_key} for number in range(3_000)]
        await session.execute(insert(key_domains), ended + others)
        await session.execute(text("ANALYZE key_domains"))  # rows of few domains can be read by any index
        if database == "sqlite":
            rows = list(await session.execute(text(f"EXPLAIN QUERY PLAN {compiled}")))
            plan = [row.detail for row in rows]
            assert "(domain=? AND (until,owner_id,key_id)>(?,?,?))" in plan[0]
            assert not [step for step in plan if step.startswith("SCAN")]
        else:
            await session.execute(text("SET LOCAL enable_seqscan = off"))
            plan = [row[0] for row in await session.execute(text(f"EXPLAIN {compiled}"))]
            conditions = [line for line in plan if "Index Cond:" in line]
            assert any("domain" in line and "until" in line for line in conditions), plan


def walk(app: Quart) -> Iterator[tuple[str, set[str]]]:
    """Every path that is served, with values of the demo data, and its methods."""
    values = {
        "locationId": "111",
        "postId": "11101",
        "reviewId": "r1",
        "client_id": "svcid_1_1_nobody",
        "webhook_id": "1",
        "delivery_id": "1",
        "alert_id": "1",
        "connection_id": "1",
        "session_id": "1",
        "draft_id": "x",
        "template_id": "x",
        "link": "1-1-x",
        "name": "docs.js",
        "badge": "nobody",
        "filename": "dashboard.css",
        "missing": "nothing",
    }
    for rule in app.url_map.iter_rules():
        path = re.sub(r"<(?:\w+:)?(\w+)>", lambda name: values[name[1]], rule.rule)
        yield path, (rule.methods or set()) - {"HEAD", "OPTIONS"}


@pytest.fixture
async def everyone(
    dial: Dial, site: Site, alice: httpx.AsyncClient, http: httpx.AsyncClient
) -> AsyncIterator[list[httpx.AsyncClient]]:
    async with dial("a.b.c") as stranger:
        yield [site.http, alice, http, stranger]


def some(everyone: list[httpx.AsyncClient], turn: int) -> list[httpx.AsyncClient]:
    """Two of the callers, in turn, so that each calls every route; in `make fuzz` all of them."""
    return effort([everyone[(turn + each) % len(everyone)] for each in range(2)], everyone)


@pytest.mark.slow
@pytest.mark.fuzz
class TestEveryRoute:
    @ON_ONE_DATABASE
    async def test_A125_no_route_reflects_an_origin_that_is_not_allowed(
        self, app: Quart, everyone: list[httpx.AsyncClient]
    ) -> None:
        alike = ["https://example.com.evil.com", "https://xexample.com", "https://example.com@evil.com"]
        hostile = [EVIL, "null", *effort([], alike)]  # a test of A123 sends all of HOSTILE
        for path, methods in walk(app):
            sent = [(method, value) for method in [*sorted(methods), "OPTIONS", "PUT"] for value in hostile]
            for method, value, client in [(*each, one) for at, each in enumerate(sent) for one in some(everyone, at)]:
                response = await client.request(method, path, json={}, headers=PREFLIGHT | origin(value))
                assert_unreadable(response)
                assert value == "null" or value not in response.text, (method, path)
                assert not any(value in given for given in response.headers.values())

    @ON_ONE_DATABASE
    async def test_A125_responses_vary_by_origin_and_allow_no_star_and_no_credentials(
        self, app: Quart, everyone: list[httpx.AsyncClient]
    ) -> None:
        paths = [*walk(app), ("/api/v1/nothing", {"GET"}), ("/nothing", {"GET"}), ("//x", {"GET"})]
        values = (GOOD_ORIGIN, BASE_URL, EVIL, None)
        for path, methods in paths:
            sent = [(method, value) for method in [*sorted(methods), "OPTIONS"] for value in values]
            for method, value, client in [(*each, one) for at, each in enumerate(sent) for one in some(everyone, at)]:
                headers = {} if value is None else origin(value)
                response = await client.request(method, path, json={}, headers=headers)
                vary = [one.split(", ")[0] for one in response.headers.get_list("vary")]
                assert vary == ["Origin"], (method, path)
                assert "access-control-allow-credentials" not in response.headers
                assert response.headers.get("access-control-allow-origin") in (None, value)

    async def test_A125_an_allowed_page_can_read_every_bearer_route(self, app: Quart, site: Site) -> None:
        for path, methods in walk(app):
            if not path.startswith("/api/") or path in (TOKEN, VALIDATE):
                continue
            for method in methods:
                response = await site.http.request(method, path, json={}, headers=origin(GOOD_ORIGIN))
                assert_readable(response, GOOD_ORIGIN)


async def test_pages_of_two_sites_at_once_do_not_mix(as_service: AsService) -> None:
    one, two = await as_service(primary_domain="one.example"), await as_service(primary_domain="two.example")
    requests = [
        (site.http.get(LOCATIONS, headers=origin(f"https://{name}.example")), good, name)
        for _ in range(10)
        for site, own in ((one, "one"), (two, "two"))
        for name, good in (("one", own == "one"), ("two", own == "two"))
    ]
    answers = await asyncio.gather(*(request for request, _, _ in requests))
    for response, (_, good, name) in zip(answers, requests, strict=True):
        assert response.status_code == (200 if good else 403)
        assert response.headers.get("access-control-allow-origin") == (f"https://{name}.example" if good else None)
