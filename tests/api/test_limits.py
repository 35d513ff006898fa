"""Rate limits of every bucket: rejections, requests that do not count, and the headers (D-50)."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from api.limits import CREDENTIALS, HEARTBEAT, LOCATION, NEW_KEY, VALIDATE, assert_limited, fields, from_address
from conftest import ON_ONE_DATABASE, AsService, AsUser, Change
from profilesvc.domain.plans import Catalogue
from profilesvc.domain.rates import Window
from profilesvc.domain.time import FrozenClock
from profilesvc.limits.settings import LimitSettings
from profilesvc.services.context import Services
from profilesvc.settings import Settings
from support.api import ALICE, BOB, Site, assert_error, assert_ok
from support.tokens import PATH as TOKEN
from support.tokens import grant

ALERTS = "/api/v1/alerts"
Ask = Callable[[], Awaitable[httpx.Response]]
Limited = Callable[..., None]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """The default limits, behind one proxy."""
    return settings.model_copy(update={"limits": LimitSettings(), "trusted_hops": 1})


async def test_A114_the_301st_creation_within_an_hour(
    alice: httpx.AsyncClient, services: Services, clock: FrozenClock
) -> None:
    for _ in range(10):
        key = assert_ok(await alice.post(CREDENTIALS, json=NEW_KEY), 201)
        assert_ok(await alice.delete(f"{CREDENTIALS}/{key['client_id']}"))
    clock.advance(minutes=5)
    for _ in range(289):
        await services.limiter.count("creations-per-user", 1)
    assert_ok(await alice.post(CREDENTIALS, json=NEW_KEY), 201)
    refused = await alice.post(CREDENTIALS, json=NEW_KEY)
    assert assert_limited(refused) == 3_300
    assert fields(refused)[:3] == ("creations-per-user", 300, 3_600)
    assert len(assert_ok(await alice.get(CREDENTIALS))["credentials"]) == 1
    clock.advance(seconds=3_300)
    assert_ok(await alice.post(CREDENTIALS, json=NEW_KEY), 201)


async def test_A148_the_31st_heartbeat_changes_nothing(
    alice: httpx.AsyncClient, plugin: Site, as_service: AsService, clock: FrozenClock
) -> None:
    for _ in range(30):
        assert_ok(await plugin.http.post(HEARTBEAT, json={"plugin_version": "1"}))
    clock.advance(seconds=30)
    assert assert_limited(await plugin.http.post(HEARTBEAT, json={"plugin_version": "2"})) == 30
    status = assert_ok(await alice.get(f"/api/v1/api-keys/{plugin.key['client_id']}/status"))
    assert (status["plugin_version"], status["last_heartbeat_at"]) == ("1", "2026-01-02T03:04:05.678Z")
    assert_ok(await plugin.http.get(LOCATION))  # a bucket of its own
    assert_ok(await (await as_service()).http.post(HEARTBEAT, json={"plugin_version": "1"}))


class Askers:
    """A request of each bucket, by the setting's name."""

    def __init__(self, http: httpx.AsyncClient, alice: httpx.AsyncClient, plugin: Site) -> None:
        self.http, self.alice, self.plugin = http, alice, plugin

    def of(self, setting: str) -> Ask:
        here = from_address("203.0.113.1")
        wrong = grant(self.plugin, client_secret="wrong")
        asks: dict[str, Ask] = {
            "tokens_per_address": lambda: self.http.post(TOKEN, json=grant(self.plugin), headers=here),
            "tokens_per_client": lambda: self.http.post(VALIDATE, json=self.plugin.credentials, headers=here),
            "wrong_secrets": lambda: self.http.post(TOKEN, json=wrong, headers=here),
            "heartbeats_per_key": lambda: self.plugin.http.post(HEARTBEAT, json={}),
            "reads_per_key": lambda: self.plugin.http.get(LOCATION),
            "reads_per_user": lambda: self.alice.get(LOCATION),
            "writes_per_key": lambda: self.plugin.http.patch(f"{LOCATION}/sync", json={"syncEnabled": True}),
            "writes_per_user": lambda: self.alice.patch(f"{LOCATION}/sync", json={"syncEnabled": True}),
            "syncs_per_location": lambda: self.plugin.http.post("/api/v1/sync/111", json={"title": "T"}),
            "verifications_per_location": lambda: self.alice.post(f"{LOCATION}/refresh-verification"),
            "creations_per_user": lambda: self.alice.post(CREDENTIALS, json=NEW_KEY),
            "mails_per_user": self._confirmation,
            "links_per_address": self._confirmation,
            "calls_per_user": lambda: self.alice.post("/api/v1/webhooks/1/test"),
        }
        return asks[setting]

    async def _confirmation(self) -> httpx.Response:
        """Ask for a message to the same stranger again."""
        made = await self.alice.post("/api/v1/alerts", json={"address": "stranger@harbour.example.com"})
        if made.is_success:
            await self.alice.delete(f"/api/v1/alerts/{made.json()['data']['id']}")
        return made


RATES = [name for name in LimitSettings.model_fields if name not in ("enabled", "storage_url")]


@pytest.mark.parametrize("setting", RATES)
@ON_ONE_DATABASE
async def test_A151_a_rejection_has_the_time_of_the_next_grant(
    setting: str, http: httpx.AsyncClient, alice: httpx.AsyncClient, plugin: Site, limited: Limited, clock: FrozenClock
) -> None:
    limited(**{setting: "3/minute"})
    ask = Askers(http, alice, plugin).of(setting)
    first = (await ask()).status_code
    for _ in range(2):
        clock.advance(milliseconds=7_300)
        assert (await ask()).status_code == first
    clock.advance(milliseconds=200)
    refused = await ask()
    wait = assert_limited(refused)
    assert fields(refused)[:3] == (setting.replace("_", "-"), 3, 60)
    clock.advance(seconds=wait - 1)
    if setting != "wrong_secrets":  # a wrong secret before its time makes the time longer
        assert assert_limited(await ask()) == 1
    clock.advance(seconds=1)
    assert (await ask()).status_code == first


async def test_a_reader_who_does_not_confirm_has_five_links_a_day(
    alice: httpx.AsyncClient, as_user: AsUser, clock: FrozenClock
) -> None:
    stranger = {"address": "stranger@harbour.example.com"}
    for _ in range(3):
        made = assert_ok(await alice.post(ALERTS, json=stranger), 201)
        assert_ok(await alice.delete(f"{ALERTS}/{made['id']}"))
    made = assert_ok(await alice.post(ALERTS, json={"address": "Stranger@harbour.example.com"}), 201)
    assert_ok(await alice.post(f"{ALERTS}/{made['id']}/test"))
    refused = await alice.post(f"{ALERTS}/{made['id']}/test")
    assert assert_limited(refused) == 86_400
    assert fields(refused)[:3] == ("links-per-address", 5, 86_400)
    assert_ok(await alice.delete(f"{ALERTS}/{made['id']}"))
    assert_limited(await alice.post(ALERTS, json=stranger))
    own = assert_ok(await alice.post(ALERTS, json={}), 201)
    for _ in range(6):
        assert_ok(await alice.post(f"{ALERTS}/{own['id']}/test"))
    assert_ok(await alice.post(ALERTS, json={"address": "other@harbour.example.com"}), 201)
    assert_ok(await (await as_user(BOB)).post(ALERTS, json=stranger), 201)
    clock.advance(days=1)
    assert_ok(await alice.post(ALERTS, json=stranger), 201)


@ON_ONE_DATABASE
async def test_an_address_that_is_not_accepted_counts_as_no_message(alice: httpx.AsyncClient, limited: Limited) -> None:
    limited(mails_per_user="1/hour")
    for address in ("h\u00e4fen@harbour.example.com", "=?utf-8?q?a?=@harbour.example.com"):
        assert_error(await alice.post(ALERTS, json={"address": address}), 400, "VALIDATION_ERROR")
    assert_ok(await alice.post(ALERTS, json={"address": "team@harbour.example.com"}), 201)


async def test_every_response_has_the_remaining_requests(
    alice: httpx.AsyncClient, plugin: Site, as_user: AsUser
) -> None:
    bob = await as_user(BOB)
    left = [
        fields(await alice.get(path))[3]
        for path in (LOCATION, "/api/v1/posts", "/api/v1/external-business/locations/999", f"{LOCATION}?x=1")
    ]
    assert left == [599, 598, 597, 596]
    assert fields(await bob.get(LOCATION))[:4] == ("reads-per-user", 600, 60, 599)
    assert fields(await plugin.http.get(LOCATION))[:4] == ("reads-per-key", 300, 60, 299)
    assert fields(await plugin.http.get("/api/v1/businesses"))[3] == 298  # 403: after the check
    assert fields(await plugin.http.post("/api/v1/sync/111", json={"title": "T"}))[:4] == (
        "syncs-per-location",
        10,
        60,
        9,
    )


async def test_a_request_that_is_not_counted_has_no_headers(http: httpx.AsyncClient) -> None:
    bad = httpx.AsyncClient(transport=http._transport, base_url=http.base_url, headers={"Authorization": "Bearer x"})
    for path in ("/healthz", "/readyz", "/openapi.json", "/docs", "/api/v1/nowhere", LOCATION):
        assert "RateLimit" not in (await bad.get(path)).headers
    await bad.aclose()


async def test_without_limits_there_are_no_counts_and_no_headers(
    http: httpx.AsyncClient, alice: httpx.AsyncClient, plugin: Site, limited: Limited
) -> None:
    limited(enabled=False, **dict.fromkeys(RATES, "1/day"))
    for setting in RATES:
        ask = Askers(http, alice, plugin).of(setting)
        for answer in (await ask(), await ask()):
            assert answer.status_code in (200, 201, 401, 404)
            assert not [name for name in answer.headers if name.startswith("ratelimit")]


async def test_a_repeated_sync_is_not_counted(plugin: Site, limited: Limited, clock: FrozenClock) -> None:
    limited(syncs_per_location="1/minute")

    async def sync(key: str, title: str = "T", **query: str) -> httpx.Response:
        headers = {"X-Idempotency-Key": key}
        return await plugin.http.post("/api/v1/sync/111", json={"title": title}, headers=headers, params=query)

    done = await sync("one")
    again = await sync("one")
    assert assert_ok(again) == assert_ok(done)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert fields(again)[0] == "writes-per-key"
    assert_error(await sync("one", "Other"), 422, "IDEMPOTENCY_KEY_REUSED")
    assert_ok(await sync("two", validateOnly="true"))
    assert_limited(await sync("two"))
    clock.advance(minutes=1)
    assert_ok(await sync("two"))  # the refusal left the key free


async def test_sites_and_users_are_counted_apart(
    alice: httpx.AsyncClient, plugin: Site, as_service: AsService, limited: Limited
) -> None:
    other = await as_service()
    limited(reads_per_key="2/minute", reads_per_user="2/minute")
    for client in (plugin.http, alice, other.http):
        codes = [(await client.get(LOCATION)).status_code for _ in range(3)]
        assert codes == [200, 200, 429]


@pytest.mark.parametrize(("reads", "granted"), [(None, 2), ("3/minute", 3), ("1/minute", 2)])
async def test_a_plan_may_raise_reads(
    reads: str | None, granted: int, alice: httpx.AsyncClient, services: Services, change: Change
) -> None:
    raised = {"reads": Window.of(reads) if reads else None}
    plans = Catalogue({name: plan.model_copy(update=raised) for name, plan in services.plans.items()})
    change(limits=LimitSettings(reads_per_user=Window.of("2/minute")), plans=plans)
    codes = [(await alice.get(LOCATION)).status_code for _ in range(4)]
    assert codes == [200] * granted + [429] * (4 - granted)


@pytest.mark.parametrize("step", [-1, 1])
async def test_A152_limits_recover_when_the_clock_is_set(
    step: int, http: httpx.AsyncClient, as_user: AsUser, plugin: Site, limited: Limited, clock: FrozenClock
) -> None:
    limited(tokens_per_client="3/minute", reads_per_user="3/minute", wrong_secrets="1/15 minutes")
    alice = await as_user(ALICE)
    clock.advance(hours=2)

    async def round_of(ask: Ask) -> list[int]:
        answers = [await ask() for _ in range(4)]
        assert all(int(answer.headers.get("Retry-After", 1)) >= 1 for answer in answers)
        return [answer.status_code for answer in answers]

    def wrong() -> Any:
        return http.post(TOKEN, json=grant(plugin, client_secret="wrong"), headers=from_address("203.0.113.2"))

    for _ in range(2):
        assert await round_of(lambda: http.post(TOKEN, json=grant(plugin))) == [200, 200, 200, 429]
        assert await round_of(lambda: alice.get(LOCATION)) == [200, 200, 200, 429]
        assert await round_of(wrong) == [401, 429, 429, 429]
        clock.advance(hours=step)


async def test_an_allowed_page_can_read_a_429(as_service: AsService, limited: Limited) -> None:
    site = await as_service(primary_domain="example.com")
    limited(reads_per_key="1/minute")
    await site.http.get(LOCATION)
    for origin, readable in (("https://example.com", True), ("https://evil.example", False)):
        refused = await site.http.get(LOCATION, headers={"Origin": origin})
        assert_limited(refused)
        assert (refused.headers.get("Access-Control-Allow-Origin") == origin) is readable
