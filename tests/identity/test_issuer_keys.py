"""The issuer's keys: where they may come from, and how long they are kept (rows A034 and A035)."""

import asyncio
import json

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from profilesvc.domain.time import FrozenClock
from support.api import assert_ok
from support.identity.issuer import FakeIssuer, Logins, assert_refused, claims, exchanged, jwk, rsa_key, signed

pytestmark = pytest.mark.usefixtures("linked")


async def test_A034_no_address_or_key_of_a_token_is_used(
    http: httpx.AsyncClient, issuer: FakeIssuer, canary: FakeIssuer
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


async def test_A034_nothing_is_fetched_for_a_token_that_fails_an_earlier_check(
    http: httpx.AsyncClient, issuer: FakeIssuer
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


@pytest.mark.in_process("counts what one process asks of the issuer")
async def test_the_keys_of_the_issuer_are_read_once_for_ten_minutes(
    login: Logins, clock: FrozenClock, issuer: FakeIssuer
) -> None:
    for answer in await asyncio.gather(*(login() for _ in range(10))):
        assert_ok(answer)
    clock.advance(minutes=9, seconds=59)
    assert_ok(await login())
    assert issuer.hits == ["/jwks.json"]
    clock.advance(seconds=1)
    assert_ok(await login())
    assert len(issuer.hits) == 2


@pytest.mark.in_process("counts what one process asks of the issuer")
async def test_an_unknown_kid_is_looked_for_twice_a_minute(
    login: Logins, clock: FrozenClock, issuer: FakeIssuer
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


async def test_a_token_without_a_key_id_is_rejected_if_there_are_two_keys(
    http: httpx.AsyncClient, issuer: FakeIssuer
) -> None:
    issuer.well(jwk(rsa_key()), jwk(rsa_key(1), "k2"))
    assert_refused(await exchanged(http, signed(kid=None)))


async def test_A035_a_malformed_key_does_not_affect_a_valid_one(http: httpx.AsyncClient, issuer: FakeIssuer) -> None:
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
