"""A location whose manager changes: it moves to the owner whose login sees it, once the former login does not."""

from collections.abc import AsyncIterator

import httpx
import pytest

from conftest import AsUser, Dial
from profilesvc.domain.time import FrozenClock
from profilesvc.services import tokens
from profilesvc.services.context import Services
from profilesvc.services.provider_logins import Logins
from support.api import BOB, assert_error, assert_ok
from support.browser.dashboard import Browser
from support.fleet.deployment import KEYS
from support.provider.consent import BAKERY, CAFE, CONNECTIONS, DANA, add_dana, connected, imported
from support.provider.drive import drift, fail, heal

pytestmark = pytest.mark.in_process("the emulator's logins")
EVE = "100006"  # another manager of the same account at the provider
LOCATION = "/api/v1/external-business/locations/411"


@pytest.fixture
async def bobs(dial: Dial) -> AsyncIterator[Browser]:
    async with dial() as client:
        made = Browser(client)
        await made.sign_in(BOB)
        yield made


@pytest.fixture
async def bob(as_user: AsUser) -> httpx.AsyncClient:
    return await as_user(BOB)


@pytest.fixture
async def numbers(
    browser: Browser, bobs: Browser, alice: httpx.AsyncClient, bob: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> tuple[int, int]:
    """Logins of Alice and Bob that both manage the account; Alice has imported two locations."""
    await add_dana(emulator)
    await drift(emulator, logins={EVE: {"email": "eve@example.com", "accounts": ["accounts/4"]}})
    of_alice = await connected(browser, alice)
    await imported(alice, of_alice, locations=[BAKERY, CAFE], business_id=10)
    return of_alice, await connected(bobs, bob, EVE)


async def lose(emulator: httpx.AsyncClient, **login: object) -> None:
    """Alice's login is no manager of the account any more."""
    await drift(emulator, logins={DANA: {"email": "dana@example.com", "accounts": [], **login}})


def refused(done: dict[str, object]) -> object:
    return [(each["name"], each["reason"]) for each in done["refused"]]  # type: ignore[attr-defined]


async def test_stays_while_both_logins_see_it(
    numbers: tuple[int, int], alice: httpx.AsyncClient, bob: httpx.AsyncClient
) -> None:
    done = await imported(bob, numbers[1], locations=[BAKERY])
    assert (done["imported"], refused(done)) == ([], [(BAKERY, "unavailable")])
    assert_ok(await alice.get(LOCATION))


async def test_moves_when_the_former_login_has_lost_it(
    numbers: tuple[int, int], alice: httpx.AsyncClient, bob: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    body = {"name": "Old", "business_id": 10, "assigned_location_id": BAKERY}
    key = assert_ok(await alice.post(KEYS, json=body), 201)
    await lose(emulator)
    done = await imported(bob, numbers[1], locations=[BAKERY])
    assert (done["imported"], refused(done)) == ([BAKERY], [])
    assert assert_ok(await bob.get(LOCATION))["title"] == "Roy Bakery"
    assert_error(await alice.get(LOCATION), 404, "NOT_FOUND")
    listed = assert_ok(await alice.get(KEYS))["credentials"]
    assert [each["status"] for each in listed if each["client_id"] == key["client_id"]] == ["deactivated"]
    [login] = assert_ok(await alice.get(CONNECTIONS))["connections"]
    assert (login["state"], login["locations"]) == ("active", 1)  # the other one was not imported by anybody else


@pytest.mark.parametrize("status", [500, 503, 429, 401])
async def test_stays_while_the_provider_cannot_be_asked(
    numbers: tuple[int, int],
    alice: httpx.AsyncClient,
    bob: httpx.AsyncClient,
    emulator: httpx.AsyncClient,
    status: int,
) -> None:
    await lose(emulator)
    await fail(emulator, status=status, match={"path": ".*/v1/locations/411"})
    assert refused(await imported(bob, numbers[1], locations=[BAKERY])) == [(BAKERY, "unavailable")]
    await heal(emulator)
    assert_ok(await alice.get(LOCATION))


async def test_moves_a_week_after_the_former_login_has_ended(
    numbers: tuple[int, int],
    alice: httpx.AsyncClient,
    bob: httpx.AsyncClient,
    emulator: httpx.AsyncClient,
    services: Services,
    clock: FrozenClock,
) -> None:
    await lose(emulator, accounts=["accounts/4"], revoked=True)
    services.part(Logins)._providers.clear()  # and their access tokens
    await alice.get(f"{CONNECTIONS}/{numbers[0]}")
    assert assert_ok(await alice.get(CONNECTIONS))["connections"][0]["state"] == "reauth_required"
    clock.advance(days=6)
    assert refused(await imported(bob, numbers[1], locations=[BAKERY])) == [(BAKERY, "unavailable")]
    clock.advance(days=1)
    bob.headers["Authorization"] = f"Bearer {await tokens.user_token(services, BOB)}"  # the former one has ended
    assert (await imported(bob, numbers[1], locations=[BAKERY]))["imported"] == [BAKERY]


async def test_of_the_installations_own_login_never_moves(
    numbers: tuple[int, int], alice: httpx.AsyncClient, bob: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await drift(emulator, logins={EVE: {"email": "eve@example.com", "accounts": ["accounts/4", "accounts/1"]}})
    done = await imported(bob, numbers[1], locations=["locations/111"])
    assert refused(done) == [("locations/111", "unavailable")]
    assert_ok(await alice.get("/api/v1/external-business/locations/111"))
