"""The issuer's keys: where they may come from, and what happens when they do not come (rows A034 and A035)."""

import asyncio
import gzip
import json
import time
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from quart import Quart

from identity_support import FakeIssuer, assert_refused, claims, exchanged, jwk, rsa_key, signed
from profilesvc.domain.world import FrozenClock
from profilesvc.services import jwks
from profilesvc.services.context import Services
from support import assert_error, assert_ok

pytestmark = pytest.mark.usefixtures("linked")


@pytest.fixture
def canary() -> Iterator[FakeIssuer]:
    """The attacker's server: nobody may ever ask it."""
    with FakeIssuer() as fake:
        yield fake


class Logins:
    """Numbered logins, each with an ID token of its own at the time that the clock tells."""

    def __init__(self, http: httpx.AsyncClient, clock: FrozenClock) -> None:
        self._http, self._clock, self._count = http, clock, 0

    async def __call__(self, key: rsa.RSAPrivateKey | None = None, kid: str = "k1") -> httpx.Response:
        self._count += 1
        now = self._clock.now() // 1000
        made = claims(iat=now, exp=now + 300, jti=str(self._count))
        return await exchanged(self._http, signed(made, key, kid=kid))


@pytest.fixture
def login(http: httpx.AsyncClient, clock: FrozenClock) -> Logins:
    return Logins(http, clock)


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


class TestWhereKeysComeFrom:
    async def test_A034_no_address_or_key_of_a_token_is_used(
        self, http: httpx.AsyncClient, issuer: FakeIssuer, canary: FakeIssuer
    ) -> None:
        evil = rsa_key(1)
        canary.well(jwk(evil))
        for header in (
            {"jku": canary.url},
            {"jwk": jwk(evil)},
            {"x5u": canary.url},
            {"x5c": ["MIIB"]},
            {"jku": issuer.url},
            {"kid": canary.url, "jku": canary.url},
        ):
            for key in (evil, rsa_key()):
                assert_refused(await exchanged(http, signed(key=key, **header)))
        assert (canary.hits, issuer.hits) == ([], [])
        assert_refused(await exchanged(http, signed(key=evil, kid=canary.url)))
        assert_refused(await exchanged(http, signed(claims(iss=canary.url), key=evil)))
        assert canary.hits == []

    async def test_A034_nothing_is_fetched_for_what_fails_before_the_signature(
        self, http: httpx.AsyncClient, issuer: FakeIssuer
    ) -> None:
        good = signed()
        for token in ("x", "e30.e30.AAAA", good[:-4] + "!!!!"):
            assert (await exchanged(http, token)).status_code == 401
        for token in (
            signed(claims(iss="https://other.example")),
            signed(alg="RS384"),
            signed(key=b"secret", alg="HS256"),
            signed(typ="at+jwt"),
            signed(kid=""),
            signed(kid="a\nb"),
            signed(kid="k" * 256),
            signed(crit=["x"]),
        ):
            assert_refused(await exchanged(http, token))
        assert issuer.hits == []

    async def test_keys_are_read_once_for_ten_minutes(
        self, login: Logins, clock: FrozenClock, issuer: FakeIssuer
    ) -> None:
        for answer in await asyncio.gather(*(login() for _ in range(10))):
            assert_ok(answer)
        clock.advance(minutes=9, seconds=59)
        assert_ok(await login())
        assert issuer.hits == ["/jwks.json"]
        clock.advance(seconds=1)
        assert_ok(await login())
        assert len(issuer.hits) == 2

    async def test_an_unknown_kid_is_looked_for_twice_a_minute(
        self, login: Logins, clock: FrozenClock, issuer: FakeIssuer
    ) -> None:
        assert_ok(await login())
        issuer.well(jwk(rsa_key()), jwk(rsa_key(1), "k2"))  # the issuer rotates
        for _ in range(5):
            assert_refused(await login(rsa_key(1), "k2"))
        assert len(issuer.hits) == 1
        clock.advance(seconds=30)
        assert_ok(await login(rsa_key(1), "k2"))
        for number in range(5):
            assert_refused(await login(rsa_key(1), f"guess-{number}"))
        assert len(issuer.hits) == 2
        issuer.well(jwk(rsa_key(1), "k2"))  # the old key is taken back
        clock.advance(minutes=10)
        assert_refused(await login())

    async def test_a_key_without_a_name_is_taken_when_it_is_the_only_one(
        self, http: httpx.AsyncClient, issuer: FakeIssuer
    ) -> None:
        issuer.well(jwk(rsa_key()), jwk(rsa_key(1), "k2"))
        assert_refused(await exchanged(http, signed(kid=None)))

    async def test_A035_a_malformed_key_beside_a_good_one(self, http: httpx.AsyncClient, issuer: FakeIssuer) -> None:
        short = rsa.generate_private_key(public_exponent=65537, key_size=1024)
        curve = ec.generate_private_key(ec.SECP256K1())
        private = json.loads(json.dumps(jwk(rsa_key(1), "k2"))) | {"d": "AAAA", "p": "x"}
        issuer.serve(
            json.dumps(
                {
                    "keys": [
                        None,
                        5,
                        [],
                        {},
                        {"kty": "RSA", "kid": "k1", "n": "!", "e": "AQAB"},
                        {"kty": "oct", "kid": "k1", "k": "c2VjcmV0"},
                        {"kty": "EC", "kid": "k1", "crv": "P-256", "x": "AA", "y": "AA"},
                        {"kty": ["RSA"], "kid": "k1"},
                        jwk(short),
                        jwk(curve),
                        jwk(rsa_key(), use="enc"),
                        jwk(rsa_key(), key_ops=["encrypt"]),
                        jwk(rsa_key(), alg="RS512"),
                        private,
                        jwk(rsa_key(), "good"),
                    ]
                }
            ).encode()
        )
        assert_ok(await exchanged(http, signed(kid="good")))
        assert_ok(await exchanged(http, signed(key=rsa_key(1), kid="k2")))
        assert_refused(await exchanged(http, signed(claims(jti="1"))))


BAD_SETS = {
    "not JSON": b"<html>",
    "a list": b"[]",
    "no keys": b"{}",
    "keys no list": b'{"keys": {}}',
    "a member twice": b'{"keys": [], "keys": []}',
    "not UTF-8": b'{"keys": "\xff"}',
    "deep": b'{"keys":' + b"[" * 30_000,
    "empty": b"",
}


class TestTrouble:
    async def test_A035_an_issuer_that_cannot_be_read_is_503_and_asked_again(
        self, login: Logins, clock: FrozenClock, issuer: FakeIssuer
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

    async def test_A035_no_redirect_is_followed(self, login: Logins, issuer: FakeIssuer, canary: FakeIssuer) -> None:
        for status in (301, 302, 303, 307, 308):
            issuer.serve(b"", status, {"Location": canary.url})
        assert_unavailable(await login())
        assert canary.hits == []

    async def test_A035_an_answer_of_ten_megabytes_and_more_is_not_read(
        self, login: Logins, issuer: FakeIssuer
    ) -> None:
        issuer.endless(b" " * 16_384)
        assert_unavailable(await login())
        assert issuer.sent < 10_000_000
        packed = gzip.compress(json.dumps({"keys": [jwk(rsa_key())]}).encode())
        issuer.serve(packed, headers={"Content-Encoding": "gzip"})
        assert_unavailable(await login())

    async def test_A035_a_slow_issuer_costs_its_time_and_no_more(
        self, impatient: None, login: Logins, clock: FrozenClock, issuer: FakeIssuer
    ) -> None:
        for after_headers in (False, True):
            issuer.silent(after_headers=after_headers)
            begun = time.monotonic()
            for answer in await asyncio.gather(*(login() for _ in range(5))):
                assert_unavailable(answer)
            assert time.monotonic() - begun < 5
            clock.advance(seconds=5)
        assert len(issuer.hits) == 2

    async def test_A035_an_issuer_that_is_down(self, http: httpx.AsyncClient, app: Quart, services: Services) -> None:
        assert services.identity is not None
        keys = jwks.RemoteKeys("http://127.0.0.1:1/jwks.json", services.clock)
        app.extensions["profilesvc"] = replace(services, identity=replace(services.identity, keys=keys))
        assert_unavailable(await exchanged(http, signed()))

    async def test_A035_keys_that_were_read_are_good_for_a_day_of_trouble(
        self, login: Logins, clock: FrozenClock, issuer: FakeIssuer
    ) -> None:
        assert_ok(await login())
        issuer.serve(b"", 500)
        for _ in range(3):
            clock.advance(hours=8)
            assert_ok(await login())
        assert len(issuer.hits) == 4
        assert_ok(await login())
        assert len(issuer.hits) == 4, "asked again every half minute, not at every login"
        # A key that is not among them may be a new one: nobody knows.
        assert_unavailable(await login(rsa_key(1), "k2"), "30")
        clock.advance(minutes=10)
        assert_unavailable(await login())
        issuer.well()
        clock.advance(seconds=5)
        assert_ok(await login())

    async def test_a_clock_that_was_set_back_keeps_nobody_out(
        self, login: Logins, clock: FrozenClock, issuer: FakeIssuer
    ) -> None:
        assert_ok(await login())
        clock.advance(hours=-1)
        assert_ok(await login())
        assert len(issuer.hits) == 2
