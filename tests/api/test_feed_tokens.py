"""Pushes with a forged token: 401, and nothing is read or written."""

import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any, cast

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from quart import Quart
from sqlalchemy import func, select

from conftest import ON_ONE_DATABASE
from profilesvc.bootstrap import Runtime
from profilesvc.domain.time import FrozenClock
from profilesvc.emulator.notifications import _signing_key
from profilesvc.services.context import Services
from profilesvc.settings import Settings
from profilesvc.storage import tables
from profilesvc.tokens.jose import b64
from support.api import assert_error
from support.database.partitions import recorded
from support.provider.drive import calls, forget_calls
from support.provider.feed import FEED, PATH, Signer, claims, connect, message

AUDIENCE = f"http://profiles.test{PATH}"
OTHER = rsa.generate_private_key(65537, 2048)
pytestmark = [pytest.mark.in_process("reads the key of the emulator"), ON_ONE_DATABASE]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"notifications": FEED})


@pytest.fixture
async def signer(app: Quart, world: Runtime, services: Services) -> Signer:
    shared = await connect(app, world, services, "accounts/1")
    async with shared.store.write() as session:
        return Signer(*await _signing_key(session))


def with_hmac(signer: Signer, values: dict[str, Any]) -> str:
    """HS256 with the public key as its secret."""
    form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    secret = signer.key.public_key().public_bytes(*form)
    head = b64(json.dumps({"alg": "HS256", "typ": "JWT", "kid": signer.kid}).encode())
    signed = f"{head}.{b64(json.dumps(values).encode())}"
    return f"{signed}.{b64(hmac.digest(secret, signed.encode(), hashlib.sha256))}"


def tampered(signer: Signer, values: dict[str, Any]) -> str:
    head, _, signature = signer.token(values).split(".")
    return f"{head}.{b64(json.dumps({**values, 'sub': 'x'}).encode())}.{signature}"


Forge = Callable[[Signer, dict[str, Any]], str]
FORGED: dict[str, Forge] = {
    "wrong key": lambda signer, values: Signer(signer.kid, OTHER).token(values),
    "other kid": lambda signer, values: Signer("other", signer.key).token(values),
    "other key and kid": lambda _, values: Signer("other", OTHER).token(values),
    "no kid": lambda signer, values: jwt.encode(values, signer.key, "RS256"),
    "empty kid": lambda signer, values: signer.token(values, kid=""),
    "long kid": lambda signer, values: signer.token(values, kid="k" * 300),
    "alg none": lambda _, values: jwt.encode(values, cast(Any, None), "none"),
    "alg none with a kid": lambda signer, values: jwt.encode(values, cast(Any, None), "none", {"kid": signer.kid}),
    "HS256 with the public key": with_hmac,
    "RS384": lambda signer, values: jwt.encode(values, signer.key, "RS384", {"kid": signer.kid}),
    "PS256": lambda signer, values: jwt.encode(values, signer.key, "PS256", {"kid": signer.kid}),
    "typ": lambda signer, values: signer.token(values, typ="at+jwt"),
    "key in the header": lambda signer, values: signer.token(values, jwk=json.loads("{}")),
    "key at an address": lambda signer, values: signer.token(values, jku="https://forged.example/certs"),
    "crit": lambda signer, values: signer.token(values, crit=["x"]),
    "changed claims": tampered,
    "no signature": lambda signer, values: signer.token(values).rpartition(".")[0] + ".",
    "two parts": lambda signer, values: signer.token(values).rpartition(".")[0],
    "padding": lambda signer, values: signer.token(values) + "=",
    "too long": lambda signer, values: signer.token({**values, "x": "x" * 5_000}),
    "not a token": lambda *_: "x",
    "no token": lambda *_: "",
}
CHANGED: dict[str, dict[str, Any]] = {
    "expired": {"iat": -3700, "exp": -1},
    "just expired": {"iat": -3600, "exp": 0},
    "future": {"iat": 3600, "exp": 7200},
    "future nbf": {"nbf": 3600},
    "valid for a year": {"exp": 365 * 86_400},
    "no exp": {"exp": None},
    "no iat": {"iat": None},
    "exp as text": {"exp": "later"},
    "other audience": {"aud": "https://other.example/provider/notifications"},
    "several audiences": {"aud": [AUDIENCE, "https://other.example"]},
    "no audience": {"aud": None},
    "other issuer": {"iss": "https://accounts.google.com.forged.example"},
    "issuer without its scheme": {"iss": "accounts.google.com"},
    "no issuer": {"iss": None},
    "other e-mail": {"email": "push@other.iam.gserviceaccount.com"},
    "e-mail in capitals": {"email": "PUSH@emulator.iam.gserviceaccount.com"},
    "no e-mail": {"email": None},
    "unverified e-mail": {"email_verified": False},
    "verified as text": {"email_verified": "true"},
    "verification left out": {"email_verified": None},
}


def _with_times(now: int, changed: dict[str, Any]) -> dict[str, Any]:
    """Times are written as seconds from now."""
    times = {
        name: value + now // 1000 for name, value in changed.items() if isinstance(value, int) and value is not False
    }
    return {**changed, **times}


async def refused(
    http: httpx.AsyncClient, services: Services, emulator: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    """401, without a statement, and without a call but for the keys of the issuer."""
    await forget_calls(emulator)
    with recorded(services) as seen:
        answer = await http.post(PATH, json=message("1"), headers=headers)
    assert_error(answer, 401, "AUTH_INVALID_TOKEN")
    assert [sql for sql in seen if "FROM changed_locations" not in sql] == [], "other than what the rounds look for"
    assert {call["path"] for call in await calls(emulator)} <= {"/oauth2/v3/certs"}
    async with services.storage.read() as session:
        for table in (tables.notifications, tables.changed_locations):
            assert (await session.execute(select(func.count()).select_from(table))).scalar_one() == 0


@pytest.mark.parametrize("how", FORGED)
async def test_forged_signature_is_rejected(
    http: httpx.AsyncClient,
    services: Services,
    emulator: httpx.AsyncClient,
    clock: FrozenClock,
    signer: Signer,
    how: str,
) -> None:
    token = FORGED[how](signer, claims(clock.now(), AUDIENCE))
    await refused(http, services, emulator, {"Authorization": f"Bearer {token}"})


@pytest.mark.parametrize("how", CHANGED)
async def test_signed_token_with_other_claims_is_rejected(
    http: httpx.AsyncClient,
    services: Services,
    emulator: httpx.AsyncClient,
    clock: FrozenClock,
    signer: Signer,
    how: str,
) -> None:
    values = claims(clock.now(), AUDIENCE, **_with_times(clock.now(), CHANGED[how]))
    await refused(http, services, emulator, {"Authorization": f"Bearer {signer.token(values)}"})


async def test_token_elsewhere_is_not_read(
    http: httpx.AsyncClient, services: Services, emulator: httpx.AsyncClient, clock: FrozenClock, signer: Signer
) -> None:
    token = signer.token(claims(clock.now(), AUDIENCE))
    for headers in ({}, {"Authorization": token}, {"Authorization": f"Basic {token}"}, {"Cookie": f"token={token}"}):
        await refused(http, services, emulator, headers)


async def test_genuine_token_is_accepted_and_its_key_is_cached(
    http: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock, signer: Signer
) -> None:
    """The control: the same token, unchanged."""
    await forget_calls(emulator)
    token = signer.token(claims(clock.now(), AUDIENCE))
    for number in range(5):
        answer = await http.post(PATH, json=message(str(number)), headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 204
    assert [call["path"] for call in await calls(emulator)] == ["/oauth2/v3/certs"]


async def test_unknown_keys_do_not_make_the_issuer_busy(
    http: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock, signer: Signer
) -> None:
    await forget_calls(emulator)
    for number in range(20):
        token = Signer(f"k{number}", OTHER).token(claims(clock.now(), AUDIENCE))
        answer = await http.post(PATH, json=message("1"), headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 401
    assert len(await calls(emulator)) == 1
