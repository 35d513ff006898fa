"""Users that are made at their first login, where that is configured (D-15, row A036)."""

import asyncio

import httpx
import pytest

from conftest import ON_ONE_DATABASE
from profilesvc.services.accounts import deletion
from profilesvc.services.context import Services
from profilesvc.settings import IdentitySettings, Settings
from profilesvc.storage.users import list_users
from support.api import ALICE, assert_error, assert_ok
from support.identity.issuer import CLIENT, ISSUER, FakeIssuer, claims, exchanged, signed
from support.tokens import claims as claims_of


@pytest.fixture
def settings(settings: Settings, issuer: FakeIssuer) -> Settings:
    identity = IdentitySettings(issuer=ISSUER, jwks_url=issuer.url, client_id=CLIENT, create_users=True)
    return settings.model_copy(update={"identity": identity})


async def users(services: Services) -> list[tuple[str, str, str]]:
    async with services.storage.read() as session:
        return [(user.email, user.name, user.plan) for user in await list_users(session)]


DANA = {"sub": "dana", "email": "Dana@Example.com", "email_verified": True, "name": "Dana Novák"}


async def test_a_first_login_makes_a_user_and_the_next_finds_it(http: httpx.AsyncClient, services: Services) -> None:
    first = assert_ok(await exchanged(http, signed(claims(**DANA))))
    assert first["plan"] == "starter"
    assert (await users(services))[-1] == ("dana@example.com", "Dana Novák", "starter")
    changed = {**DANA, "email": "new@example.com", "name": "Dana N."}
    second = assert_ok(await exchanged(http, signed(claims(**changed))))
    assert claims_of(first["access_token"])["sub"] == claims_of(second["access_token"])["sub"]
    assert len(await users(services)) == 4


async def test_a_person_whose_account_was_deleted_starts_with_an_empty_one(
    http: httpx.AsyncClient, services: Services
) -> None:
    first = claims_of(assert_ok(await exchanged(http, signed(claims(**DANA))))["access_token"])["sub"]
    await deletion.request(services, int(first))
    token = assert_ok(await exchanged(http, signed(claims(**DANA, jti="again"))))["access_token"]
    assert claims_of(token)["sub"] != first
    listed = await http.get("/api/v1/businesses", headers={"Authorization": f"Bearer {token}"})
    assert assert_ok(listed) == {"businesses": []}


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("山田\u3000太郎", "山田\u3000太郎"),
        ("\u0646\u06cc\u200c\u0631", "\u0646\u06cc\u200c\u0631"),
        ("\u200fדנה לוי\u200f", "\u200fדנה לוי\u200f"),
        (" Dana\u00a0Novák\u00a0", "Dana\u00a0Novák"),
        ("", "dana"),
        ("\u3000 ", "dana"),
        ("\u200e\u200f", "dana"),
    ],
)
async def test_a_name_of_any_script_makes_a_user(
    http: httpx.AsyncClient, services: Services, name: str, stored: str
) -> None:
    assert_ok(await exchanged(http, signed(claims(**{**DANA, "name": name}))))
    assert (await users(services))[-1] == ("dana@example.com", stored, "starter")


async def test_a_name_that_cannot_be_used_is_named(http: httpx.AsyncClient) -> None:
    response = await exchanged(http, signed(claims(**{**DANA, "name": "x" * 201})))
    assert "its name cannot be used" in response.json()["error"]["message"]


async def test_two_first_logins_at_once_make_one_user(http: httpx.AsyncClient, services: Services) -> None:
    tokens = [signed(claims(**DANA, jti=str(number))) for number in range(8)]
    answers = await asyncio.gather(*(exchanged(http, token) for token in tokens))
    assert len({claims_of(assert_ok(answer)["access_token"])["sub"] for answer in answers}) == 1
    assert len(await users(services)) == 4


async def test_A036_a_used_email_address_is_not_linked(http: httpx.AsyncClient, services: Services) -> None:
    before = await users(services)
    for email in (ALICE, ALICE.upper(), f" {ALICE}"):
        made = claims(sub="mallory", email=email, email_verified=True)
        response = await exchanged(http, signed(made))
        assert assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS") == {"reason": "no_user"}
    assert await users(services) == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"email": None},
        {"email": 5},
        {"email": "no address"},
        {"email": "x" * 400 + "@example.com"},
        {"email": "a\x00@example.com"},
        {"email_verified": None},
        {"email_verified": False},
        {"email_verified": "true"},
        {"name": "x" * 300},
        {"name": "\x00"},
    ],
)
@ON_ONE_DATABASE
async def test_A036_claims_from_which_no_user_can_be_created(
    http: httpx.AsyncClient, services: Services, wrong: dict[str, object]
) -> None:
    before = await users(services)
    response = await exchanged(http, signed(claims(**{**DANA, **wrong})))
    assert assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS") == {"reason": "no_user"}
    assert "No user can be created" in response.json()["error"]["message"]
    assert await users(services) == before
