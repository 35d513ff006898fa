"""Rate limits of the routes without a bearer token: addresses, client ids, wrong secrets (D-50)."""

import asyncio
from collections.abc import Callable

import httpx
import pytest

from api.limits import LOCATION, VALIDATE, assert_limited, fields, from_address
from conftest import ON_ONE_DATABASE, AsService
from profilesvc.domain.time import FrozenClock
from profilesvc.limits.settings import LimitSettings
from profilesvc.settings import Settings
from support.api import Site, assert_error, assert_ok
from support.tokens import PATH as TOKEN
from support.tokens import grant, refresh

Limited = Callable[..., None]
pytestmark = ON_ONE_DATABASE


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """The default limits, behind one proxy."""
    return settings.model_copy(update={"limits": LimitSettings(), "trusted_hops": 1})


class TestSecrets:
    async def tries(self, http: httpx.AsyncClient, site: Site, address: str, count: int) -> list[httpx.Response]:
        wrong = grant(site, client_secret="wrong")
        return [await http.post(TOKEN, json=wrong, headers=from_address(address)) for _ in range(count)]

    async def test_A023_the_eleventh_wrong_secret_waits_and_each_further_one_twice_as_long(
        self, http: httpx.AsyncClient, plugin: Site, clock: FrozenClock
    ) -> None:
        answers = await self.tries(http, plugin, "203.0.113.1", 14)
        assert [answer.status_code for answer in answers] == [401] * 10 + [429] * 4
        assert [assert_limited(answer) for answer in answers[10:]] == [1, 2, 4, 8]
        assert fields(answers[10])[:3] == ("wrong-secrets", 10, 900)
        waits = [assert_limited(answer) for answer in await self.tries(http, plugin, "203.0.113.1", 12)]
        assert waits[-1] == 900
        clock.advance(seconds=899)
        assert [answer.status_code for answer in await self.tries(http, plugin, "203.0.113.1", 1)] == [429]
        clock.advance(seconds=900)
        assert [answer.status_code for answer in await self.tries(http, plugin, "203.0.113.1", 11)] == [401] * 10 + [
            429
        ]

    async def test_A023_validate_and_refresh_spend_the_budget_of_wrong_secrets(
        self, http: httpx.AsyncClient, plugin: Site
    ) -> None:
        headers = from_address("203.0.113.1")
        wrong = {**plugin.credentials, "client_secret": "wrong"}
        for _ in range(5):
            assert not assert_ok(await http.post(VALIDATE, json=wrong, headers=headers))["valid"]
        for _ in range(5):
            assert_error(
                await http.post(TOKEN, json=refresh(plugin, **wrong), headers=headers), 401, "AUTH_INVALID_TOKEN"
            )
        for path, body in ((VALIDATE, wrong), (TOKEN, refresh(plugin, **wrong)), (TOKEN, grant(plugin, **wrong))):
            assert_limited(await http.post(path, json=body, headers=headers))

    async def test_A023_an_unknown_client_is_limited_like_a_known_one(self, http: httpx.AsyncClient) -> None:
        for client_id in ("svcid_1_1_nobody", "x" * 5_000):
            body = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": "wrong"}
            answers = [await http.post(TOKEN, json=body, headers=from_address("203.0.113.1")) for _ in range(11)]
            assert [answer.status_code for answer in answers] == [401] * 10 + [429]

    async def test_A024_the_right_secret_is_accepted_from_every_address(
        self, http: httpx.AsyncClient, plugin: Site
    ) -> None:
        assert (await self.tries(http, plugin, "203.0.113.1", 20))[-1].status_code == 429
        for address in ("203.0.113.2", "203.0.113.1", "2001:db8::1"):
            assert_ok(await http.post(TOKEN, json=grant(plugin), headers=from_address(address)))
            assert assert_ok(await http.post(VALIDATE, json=plugin.credentials, headers=from_address(address)))["valid"]
        assert (await self.tries(http, plugin, "203.0.113.2", 1))[0].status_code == 401

    async def test_A024_a_crowd_of_attackers_does_not_lock_out_the_site(
        self, http: httpx.AsyncClient, plugin: Site
    ) -> None:
        for number in range(15):
            assert (await self.tries(http, plugin, f"198.51.100.{number}", 12))[-1].status_code == 429
        for _ in range(30):
            assert_ok(await http.post(TOKEN, json=grant(plugin), headers=from_address("203.0.113.7")))
        assert_ok(await plugin.http.get(LOCATION))


@pytest.mark.slow
async def test_A025_an_address_may_send_the_rate_and_the_burst_at_once_and_no_more(
    http: httpx.AsyncClient, as_service: AsService, clock: FrozenClock
) -> None:
    sites = [await as_service() for _ in range(5)]
    headers, connections = from_address("203.0.113.1"), asyncio.Semaphore(8)  # with a frozen clock

    async def ask(number: int) -> httpx.Response:
        async with connections:
            return await http.post(TOKEN, json=grant(sites[number % 5]), headers=headers)

    answers = await asyncio.gather(*(ask(number) for number in range(801)))
    (late,) = [answer for answer in answers if answer.status_code != 200]
    assert assert_limited(late) == 80
    assert fields(late)[:3] == ("tokens-per-address", 800, 80)
    assert_ok(await http.post(TOKEN, json=grant(sites[0]), headers=from_address("203.0.113.2")))
    clock.advance(seconds=80)
    assert_ok(await http.post(TOKEN, json=grant(sites[0]), headers=headers))


async def test_A149_the_forged_addresses_of_one_client_share_a_bucket(http: httpx.AsyncClient) -> None:
    codes = []
    for number in range(1_000):
        forged = f"10.{number // 256}.{number % 256}.1, 203.0.113.9"
        codes.append((await http.post(TOKEN, json={}, headers=from_address(forged))).status_code)
    assert codes == [400] * 800 + [429] * 200


async def test_the_port_of_a_client_is_no_part_of_its_address(http: httpx.AsyncClient, limited: Limited) -> None:
    limited(tokens_per_address="2/minute")
    sent = ("203.0.113.1:50001", "203.0.113.2:50001", "203.0.113.1:50002", "203.0.113.1:50003", "203.0.113.2")
    answers = [await http.post(TOKEN, json={}, headers=from_address(address)) for address in sent]
    assert [answer.status_code for answer in answers] == [400, 400, 400, 429, 400]


async def test_an_IPv6_prefix_of_64_bits_is_one_customer(http: httpx.AsyncClient, limited: Limited) -> None:
    limited(tokens_per_address="2/minute")
    sent = (
        "2001:db8::1",
        "2001:db8::ffff:1",
        "2001:db8::2",
        "2001:db8:0:1::1",
        "::ffff:203.0.113.1",
        "203.0.113.1",
    )
    answers = [await http.post(TOKEN, json={}, headers=from_address(address)) for address in (*sent, "203.0.113.1")]
    assert [answer.status_code for answer in answers] == [400, 400, 429, 400, 400, 400, 429]


async def test_a_client_id_has_a_bucket_per_address(http: httpx.AsyncClient, plugin: Site, limited: Limited) -> None:
    limited(tokens_per_client="2/minute")
    here, there = from_address("203.0.113.1"), from_address("203.0.113.2")
    assert_ok(await http.post(TOKEN, json=grant(plugin), headers=here))
    assert_ok(await http.post(TOKEN, json=refresh(plugin), headers=here))
    refused = await http.post(VALIDATE, json=plugin.credentials, headers=here)
    assert assert_limited(refused) == 60
    assert refused.headers["Cache-Control"] == "no-store"
    assert_ok(await http.post(TOKEN, json=grant(plugin), headers=there))
