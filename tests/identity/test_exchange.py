"""Users sign in at an identity provider: what its ID tokens must be (D-15, rows A033 and A036)."""

import base64
import json
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from sqlalchemy import select

from conftest import Dial
from profilesvc.services.context import Services
from profilesvc.storage.tables import audit, exchanges
from support.api import assert_error, assert_ok, fields
from support.identity.issuer import (
    CLIENT,
    ISSUER,
    NOW,
    PATH,
    FakeIssuer,
    assert_refused,
    body,
    claims,
    exchanged,
    jwk,
    rsa_key,
    signed,
)
from support.tokens import claims as claims_of

pytestmark = pytest.mark.usefixtures("linked")
LOCATIONS = "/api/v1/external-business/locations"


async def rows(services: Services, table: Any) -> list[Any]:
    async with services.storage.read() as session:
        return list(await session.execute(select(table)))


async def test_an_id_token_becomes_a_user_token(dial: Dial, http: httpx.AsyncClient, services: Services) -> None:
    response = await exchanged(http, signed(claims(nonce="n-1")), nonce="n-1")
    granted = assert_ok(response)
    token = granted.pop("access_token")
    assert granted == {
        "token_type": "Bearer",
        "scope": "user",
        "plan": "pro",
        "expires_in": 604_800,
        "permissions": ["business.read", "business.write"],
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
    }
    assert response.headers["cache-control"] == "no-store"
    made = claims_of(token)
    assert (made["sub"], made["scope"], made["exp"] - made["iat"]) == ("1", "user", 604_800)
    async with dial(token) as alice:
        assert assert_ok(await alice.get("/api/v1/businesses"))["businesses"][0]["name"] == "Harbour Coffee"
    (event,) = await rows(services, audit)
    assert (event.event, event.owner_id, json.loads(event.details)) == ("user.login", 1, {"issuer": ISSUER})


async def test_additional_claims_are_ignored(http: httpx.AsyncClient) -> None:
    extra = {"auth_time": NOW, "acr": "1", "groups": ["a"] * 500, "nonce": "unasked", "nbf": NOW, "azp": CLIENT}
    for token in (
        signed(claims(**extra), x5t="thumbprint"),
        signed(claims(aud=[CLIENT])),
        signed(claims(aud=["other", CLIENT], azp=CLIENT)),
        signed(claims(iat=NOW - 600)),
        signed(claims(iat=NOW + 60)),
        signed(claims(exp=NOW + 1)),
        signed(typ=None, made=claims(jti="without a type")),
        signed(kid=None, made=claims(jti="the only key")),
    ):
        assert_ok(await exchanged(http, token))


@pytest.mark.in_process("counts what one process asks of the issuer")
async def test_every_configured_algorithm_is_accepted(http: httpx.AsyncClient, issuer: FakeIssuer) -> None:
    curve, edwards = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
    issuer.well(jwk(rsa_key()), jwk(curve, "k2"), jwk(edwards, "k3"))
    for key, alg, kid in [(rsa_key(), "RS256", "k1"), (rsa_key(), "PS256", "k1"), (curve, "ES256", "k2")]:
        assert_ok(await exchanged(http, signed(key=key, alg=alg, kid=kid)))
    assert_ok(await exchanged(http, signed(key=edwards, alg="EdDSA", kid="k3")))
    assert len(issuer.hits) == 1, "kept, and not asked for again"
    # A key is valid for its own algorithms and no others, whatever the header says.
    for alg, kid in [("ES256", "k1"), ("RS256", "k2"), ("EdDSA", "k2"), ("PS256", "k3")]:
        key = {"ES256": curve, "EdDSA": edwards}.get(alg, rsa_key())
        assert_refused(await exchanged(http, signed(claims(jti=alg + kid), key, alg, kid=kid)))


def unsigned(alg: str) -> str:
    parts = [{"alg": alg, "kid": "k1"}, claims()]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join([*encoded, base64.urlsafe_b64encode(b"x").rstrip(b"=").decode()])


def bad_tokens() -> dict[str, str]:
    """Every fault that an ID token can have, except its age, by name."""
    good = signed()
    header, _, signature = good.split(".")
    swapped = signed(claims(sub="bob-at-login")).split(".")[1]
    pem_secret = jwk(rsa_key())["n"].encode()
    made = {
        "alg none": unsigned("none"),
        "alg None": unsigned("None"),
        "HS256 by our idea of the key": signed(key=pem_secret, alg="HS256"),
        "RS512, not configured": signed(alg="RS512"),
        "signed by another key": signed(key=rsa_key(1)),
        "claims swapped": f"{header}.{swapped}.{signature}",
        "typ of an access token": signed(typ="at+jwt"),
        "typ no text": signed(typ=5),
        "crit": signed(crit=["exp"]),
        "zip": signed(zip="DEF"),
        "kid unknown": signed(kid="k9"),
        "kid of another case": signed(kid="K1"),
    }
    changes: dict[str, dict[str, Any]] = {
        "iss other": {"iss": "https://evil.example"},
        "iss with a slash": {"iss": f"{ISSUER}/"},
        "iss in capitals": {"iss": ISSUER.upper()},
        "iss missing": {"iss": None},
        "iss a list": {"iss": [ISSUER]},
        "aud other": {"aud": "someone-else"},
        "aud missing": {"aud": None},
        "aud empty": {"aud": []},
        "aud longer": {"aud": f"{CLIENT}x"},
        "aud an object": {"aud": {CLIENT: 1}},
        "two audiences without azp": {"aud": [CLIENT, "other"]},
        "two audiences, azp of the other": {"aud": [CLIENT, "other"], "azp": "other"},
        "one audience, azp of another": {"azp": "other"},
        "exp missing": {"exp": None},
        "exp a text": {"exp": str(NOW + 300)},
        "exp true": {"exp": True},
        "exp a fraction": {"exp": NOW + 300.5},
        "iat missing": {"iat": None},
        "iat in the future": {"iat": NOW + 61},
        "nbf in the future": {"nbf": NOW + 61},
        "nbf a text": {"nbf": "0"},
        "sub missing": {"sub": None},
        "sub empty": {"sub": ""},
        "sub a number": {"sub": 1},
        "sub too long": {"sub": "x" * 256},
        "sub with NUL": {"sub": "alice-at-login\x00"},
        "sub with a surrogate": {"sub": "\ud800"},
    }
    return made | {name: signed(claims(**change)) for name, change in changes.items()}


async def test_A033_no_faulty_id_token_is_exchanged(
    http: httpx.AsyncClient, services: Services, issuer: FakeIssuer
) -> None:
    for name, token in bad_tokens().items():
        response = await exchanged(http, token)
        try:
            assert_refused(response)
        except AssertionError as error:
            raise AssertionError(name) from error
    for too_old in (claims(exp=NOW), claims(exp=NOW - 1), claims(iat=NOW - 660), claims(iat=NOW - 601)):
        assert_refused(await exchanged(http, signed(too_old)), "expired")
    # Only a genuine token has the reason that it is too old.
    assert_refused(await exchanged(http, signed(claims(exp=NOW - 1), key=rsa_key(1))))
    assert await rows(services, exchanges) == []
    assert await rows(services, audit) == []
    assert_ok(await exchanged(http, signed()))


@pytest.mark.in_process("reads the log")
async def test_the_log_names_only_the_failed_check_of_a_genuine_token(
    http: httpx.AsyncClient, issuer: FakeIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="profilesvc")
    token = signed(claims(aud="a-secret-audience", sub="a-secret-subject"))
    assert_refused(await exchanged(http, token))
    assert_refused(await exchanged(http, signed(claims(aud="other"), key=rsa_key(1))))
    ours = [record.getMessage() for record in caplog.records if record.name == "profilesvc"]
    assert ours == [f"a signed ID token of {ISSUER} is rejected: aud"]


async def test_A033_strings_that_are_not_tokens(http: httpx.AsyncClient, issuer: FakeIssuer) -> None:
    good = signed()
    for token in (
        "",
        "x",
        "a.b",
        "a.b.c.d",
        good + "=",
        f" {good}",
        f"{good}\n",
        good[: good.rindex(".")],
        "e." * 9000,
    ):
        assert_refused(await exchanged(http, token), "malformed")
    for token in ("e30.e30.e30", "a.b.c", good[:-1] + ("A" if good[-1] != "A" else "B")):
        assert_refused(await exchanged(http, token))
    duplicate = base64.urlsafe_b64encode(b'{"alg":"RS256","alg":"RS256","kid":"k1"}').rstrip(b"=").decode()
    assert_refused(await exchanged(http, f"{duplicate}.{good.split('.', 1)[1]}"))
    deep = base64.urlsafe_b64encode(b"[" * 9000).rstrip(b"=").decode()
    assert_refused(await exchanged(http, f"{deep}.{deep[:2000]}.AAAA"))


async def test_the_body_is_checked(http: httpx.AsyncClient) -> None:
    wrong: Any
    for wrong, field in [
        ({"subject_token": 1}, "subject_token"),
        ({"subject_token": None}, "subject_token"),
        ({"subject_token_type": "urn:ietf:params:oauth:token-type:jwt"}, "subject_token_type"),
        ({"subject_token_type": None}, "subject_token_type"),
        ({"nonce": ""}, "nonce"),
        ({"nonce": 7}, "nonce"),
        ({"requested_token_type": "urn:ietf:params:oauth:token-type:refresh_token"}, "requested_token_type"),
    ]:
        response = await http.post(PATH, json={**body(signed()), **wrong})
        assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == [field]


async def test_the_nonce_of_the_body_is_the_tokens(http: httpx.AsyncClient) -> None:
    for made in (claims(), claims(nonce="n-2"), claims(nonce=None), claims(nonce=["n-1"])):
        assert_refused(await exchanged(http, signed(made), nonce="n-1"))


async def test_D31_a_page_that_is_no_dashboard_neither_gets_a_token_nor_uses_one_up(http: httpx.AsyncClient) -> None:
    token = signed()
    refused = await http.post(PATH, json=body(token), headers={"Origin": "https://evil.example"})
    assert_error(refused, 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert "access-control-allow-origin" not in refused.headers
    granted = await http.post(PATH, json=body(token), headers={"Origin": "http://localhost:5173"})
    assert_ok(granted)
    assert granted.headers["access-control-allow-origin"] == "http://localhost:5173"
