"""An issuer on its bad days: what its keys cost then, and what is answered (row A035)."""

import asyncio
import gzip
import json
from dataclasses import replace

import httpx
import pytest
from quart import Quart

from profilesvc.domain.time import FrozenClock
from profilesvc.services.context import Services
from profilesvc.tokens import jwks
from support.api import assert_error, assert_ok
from support.identity.issuer import FakeIssuer, Logins, exchanged, jwk, rsa_key, signed
from support.waiting import deadline

pytestmark = [
    pytest.mark.usefixtures("linked"),
    pytest.mark.in_process("counts what one process asks of the issuer, with less patience"),
]


@pytest.fixture
def impatient(app: Quart, services: Services, clock: FrozenClock, issuer: FakeIssuer) -> None:
    """Give the issuer a third of a second, where the service gives it five."""
    assert services.identity is not None
    assert jwks.TIMEOUT_SECONDS == 5.0
    keys = jwks.RemoteKeys(issuer.url, clock, seconds=0.3)
    app.extensions["profilesvc"] = replace(services, identity=replace(services.identity, keys=keys))


def assert_unavailable(response: httpx.Response, retry_after: str = "5") -> None:
    assert_error(response, 503, "SERVICE_UNAVAILABLE")
    assert response.headers["retry-after"] == retry_after
    assert response.headers["cache-control"] == "no-store"


BAD_SETS = {
    "not JSON": b"<html>",
    "a list": b"[]",
    "no keys": b"{}",
    "keys no list": b'{"keys": {}}',
    "a field twice": b'{"keys": [], "keys": []}',
    "not UTF-8": b'{"keys": "\xff"}',
    "deep": b'{"keys":' + b"[" * 30_000,
    "empty": b"",
}


async def test_A035_an_issuer_that_cannot_be_read_is_503_and_read_again(
    login: Logins, clock: FrozenClock, issuer: FakeIssuer
) -> None:
    for name, content in BAD_SETS.items():
        issuer.serve(content)
        asked = len(issuer.hits)
        assert_unavailable(await login())
        assert_unavailable(await login())
        assert len(issuer.hits) == asked + 1, name
        clock.advance(seconds=5)
    for status in (204, 301, 400, 401, 404, 500, 503):
        issuer.serve(b"", status)
        assert_unavailable(await login())
        clock.advance(seconds=5)
    issuer.well()
    assert_ok(await login())


async def test_A035_a_redirect_of_the_issuer_is_not_followed(
    login: Logins, issuer: FakeIssuer, canary: FakeIssuer
) -> None:
    for status in (301, 302, 303, 307, 308):
        issuer.serve(b"", status, {"Location": canary.url})
    assert_unavailable(await login())
    assert canary.hits == []


async def test_A035_a_response_of_ten_megabytes_and_more_is_not_read(login: Logins, issuer: FakeIssuer) -> None:
    issuer.endless(b" " * 16_384)
    assert_unavailable(await login())
    assert issuer.sent < 10_000_000
    packed = gzip.compress(json.dumps({"keys": [jwk(rsa_key())]}).encode())
    issuer.serve(packed, headers={"Content-Encoding": "gzip"})
    assert_unavailable(await login())


async def test_A035_a_slow_issuer_is_read_once_for_all_waiting_logins(
    impatient: None, login: Logins, clock: FrozenClock, issuer: FakeIssuer
) -> None:
    for after_headers in (False, True):
        issuer.silent(after_headers=after_headers)
        async with deadline(30, "the failure of an issuer"):  # it would be silent forever
            for answer in await asyncio.gather(*(login() for _ in range(5))):
                assert_unavailable(answer)
        clock.advance(seconds=5)
    assert len(issuer.hits) <= 2, "once for all; a busy machine may give up before it has asked"


async def test_A035_an_issuer_that_is_down_is_a_503(http: httpx.AsyncClient, app: Quart, services: Services) -> None:
    assert services.identity is not None
    keys = jwks.RemoteKeys("http://127.0.0.1:1/jwks.json", services.clock)
    app.extensions["profilesvc"] = replace(services, identity=replace(services.identity, keys=keys))
    assert_unavailable(await exchanged(http, signed()))


async def test_A035_the_keys_of_the_issuer_are_valid_for_a_day_of_outage(
    login: Logins, clock: FrozenClock, issuer: FakeIssuer
) -> None:
    assert_ok(await login())
    issuer.serve(b"", 500)
    for _ in range(3):
        clock.advance(hours=8)
        assert_ok(await login())
    assert len(issuer.hits) == 4
    assert_ok(await login())
    assert len(issuer.hits) == 4, "asked again every half minute, not at every login"
    # A key that is not among them may be a new one.
    assert_unavailable(await login(rsa_key(1), "k2"), "30")
    clock.advance(minutes=10)
    assert_unavailable(await login())
    issuer.well()
    clock.advance(seconds=5)
    assert_ok(await login())


async def test_a_clock_that_was_set_back_does_not_block_sign_in(
    login: Logins, clock: FrozenClock, issuer: FakeIssuer
) -> None:
    assert_ok(await login())
    clock.advance(hours=-1)
    assert_ok(await login())
    assert len(issuer.hits) == 2
