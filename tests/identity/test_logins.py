"""An ID token is valid once, for the user whom the operator linked to its subject (D-15, rows A033 and A036)."""

import asyncio
import base64
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from sqlalchemy import select

from conftest import Dial
from profilesvc.domain.time import FrozenClock
from profilesvc.operations import housekeeping, operator
from profilesvc.services.context import Services
from profilesvc.storage.tables import audit, exchanges
from support.api import ALICE, assert_error, assert_ok
from support.identity.issuer import NOW, FakeIssuer, assert_refused, claims, exchanged, jwk, signed

pytestmark = pytest.mark.usefixtures("linked")
LOCATIONS = "/api/v1/external-business/locations"


async def rows(services: Services, table: Any) -> list[Any]:
    async with services.storage.read() as session:
        return list(await session.execute(select(table)))


async def test_A033_an_id_token_is_valid_for_one_exchange(
    http: httpx.AsyncClient, clock: FrozenClock, services: Services
) -> None:
    token = signed()
    assert_ok(await exchanged(http, token))
    for _ in range(2):
        assert_refused(await exchanged(http, token), "revoked")
    clock.advance(minutes=4)
    assert_refused(await exchanged(http, token), "revoked")
    assert len(await rows(services, audit)) == 1


async def test_A033_only_one_of_twenty_simultaneous_exchanges_succeeds(http: httpx.AsyncClient) -> None:
    token = signed()
    answers = await asyncio.gather(*(exchanged(http, token) for _ in range(20)))
    assert sorted(answer.status_code for answer in answers) == [200] + [401] * 19


async def test_another_spelling_of_the_signature_is_the_same_token(http: httpx.AsyncClient, issuer: FakeIssuer) -> None:
    """(r, s) and (r, n - s) are both signatures of an elliptic curve."""
    curve = ec.generate_private_key(ec.SECP256R1())
    issuer.well(jwk(curve))
    token = signed(key=curve, alg="ES256")
    head, signature = token.rsplit(".", 1)
    raw = base64.urlsafe_b64decode(signature + "==")
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    other = raw[:32] + (order - int.from_bytes(raw[32:])).to_bytes(32)
    twin = f"{head}.{base64.urlsafe_b64encode(other).rstrip(b'=').decode()}"
    assert_ok(await exchanged(http, twin))
    assert_refused(await exchanged(http, token), "revoked")


async def test_records_of_expired_tokens_are_deleted_by_housekeeping(
    http: httpx.AsyncClient, clock: FrozenClock, services: Services
) -> None:
    assert_ok(await exchanged(http, signed()))
    clock.advance(hours=3)
    later = NOW + 3 * 3600
    assert_ok(await exchanged(http, signed(claims(iat=later, exp=later + 300))))
    assert len(await rows(services, exchanges)) == 2
    await housekeeping.run_once(services)
    assert len(await rows(services, exchanges)) == 1


@pytest.mark.in_process("reads the log")
async def test_a_login_that_fails_leaves_the_token_unused_and_its_subject_in_the_log(
    http: httpx.AsyncClient, services: Services, caplog: pytest.LogCaptureFixture
) -> None:
    token = signed(claims(sub="bob-at-login"))
    assert_error(await exchanged(http, token), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert "no user is linked to the subject 'bob-at-login'" in caplog.text
    await operator.link(services, "bob@example.com", "bob-at-login")
    assert_ok(await exchanged(http, token))


async def test_a_suspended_user_cannot_sign_in(http: httpx.AsyncClient, services: Services) -> None:
    await operator.suspend(services, ALICE)
    assert_refused(await exchanged(http, signed()), "revoked")
    await operator.resume(services, ALICE)
    assert_ok(await exchanged(http, signed()))


async def test_a_logout_ends_the_user_token(dial: Dial, http: httpx.AsyncClient, services: Services) -> None:
    token = assert_ok(await exchanged(http, signed()))["access_token"]
    await operator.logout(services, ALICE)
    async with dial(token) as alice:
        assert assert_error(await alice.get(LOCATIONS), 401, "AUTH_INVALID_TOKEN") == {"reason": "revoked"}


async def test_the_issuer_is_part_of_the_identity(http: httpx.AsyncClient, services: Services) -> None:
    await operator.link(services, "bob@example.com", "bob-at-login", "https://other.example")
    response = await exchanged(http, signed(claims(sub="bob-at-login")))
    assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert "operator" in response.json()["error"]["message"]


async def test_A036_an_email_address_links_no_user(http: httpx.AsyncClient, services: Services) -> None:
    made = claims(sub="mallory", email=ALICE, email_verified=True)
    response = await exchanged(http, signed(made))
    assert assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS") == {"reason": "no_user"}
    assert ALICE not in response.text
    assert await rows(services, audit) == []
