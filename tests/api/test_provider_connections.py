"""Owners' logins at the provider: connect, import, the end of a login, disconnect; nothing of another owner."""

import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from conftest import AsUser, Dial
from profilesvc.contract.errors import SERVICE_UNAVAILABLE
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import DAY, FrozenClock
from profilesvc.provider.remote import RemoteProvider
from profilesvc.services.access import require_location
from profilesvc.services.context import Caller, Services
from profilesvc.services.drafts import drafts, photos
from profilesvc.services.logins import logins
from profilesvc.services.provider_logins import Logins
from profilesvc.storage import provider_logins
from profilesvc.storage.tables import metadata
from support.api import ALICE, BOB, assert_error, assert_ok
from support.browser.dashboard import Browser
from support.pictures import png
from support.provider.consent import (
    BAKERY,
    CAFE,
    CONNECTIONS,
    DANA,
    EMPTY,
    LINKS,
    PAGE,
    SHOP,
    TITLES,
    add_dana,
    connect,
    connected,
    consent,
    dumped,
    everything,
    imported,
    query_of,
    sent,
)
from support.provider.drive import calls, drift, fail, forget_calls, heal

pytestmark = pytest.mark.in_process("the emulator's logins")
LOCATIONS = "/api/v1/external-business/locations"


@pytest.fixture
async def bobs(dial: Dial) -> AsyncIterator[Browser]:
    async with dial() as client:
        made = Browser(client)
        await made.sign_in(BOB)
        yield made


def secrets_of(services: Services) -> list[str]:
    """The refresh tokens in the memory of this process."""
    return [str(slot[2]) for slot in services.part(Logins)._providers]


async def test_owner_connects_a_login_and_imports_chosen_locations(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    answer = await connect(browser)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PAGE}?notice=connected")
    [entry] = assert_ok(await alice.get(CONNECTIONS))["connections"]
    assert (entry["email"], entry["state"], entry["locations"]) == ("dana@example.com", "active", 0)
    detail = assert_ok(await alice.get(f"{CONNECTIONS}/{entry['id']}"))
    [account] = detail["accounts"]
    assert (account["name"], account["title"]) == ("accounts/4", "Dana Roy")
    assert {each["name"]: each["title"] for each in account["locations"]} == TITLES
    assert all(each["available"] and not each["imported"] for each in account["locations"])
    assert account["locations"][0]["address"] == "1 Pier, Yokohama"
    done = await imported(alice, entry["id"], locations=[BAKERY, "412"], business_name="Roy")
    assert (done["imported"], done["refused"]) == ([BAKERY, CAFE], [])
    listed = {each["name"]: each for each in assert_ok(await alice.get(LOCATIONS))["locations"]}
    assert listed[BAKERY]["businessName"] == "Roy"
    assert SHOP not in listed
    await drift(emulator, locations={BAKERY: {"title": "Roy's Bakery"}})
    compared = assert_ok(await alice.get("/api/v1/sync/comparison/411"))
    assert compared["provider"]["title"] == "Roy's Bakery"
    post = assert_ok(
        await alice.post(f"/api/v1/posts?locationId={BAKERY}", json={"summary": "Bread", "topicType": "STANDARD"}), 201
    )
    assert post["name"].startswith(BAKERY)


async def test_import_is_repeatable_and_selects_by_title(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice)
    assert (await imported(alice, number, title_contains="roy"))["imported"] == [BAKERY, CAFE]
    assert (await imported(alice, number, title_contains=""))["imported"] == [BAKERY, CAFE, SHOP]
    again = await imported(alice, number, locations=[BAKERY, "locations/111", "locations/999"])
    assert again["imported"] == [BAKERY]
    assert [(each["name"], each["reason"]) for each in again["refused"]] == [
        ("locations/111", "not_found"),
        ("locations/999", "not_found"),
    ]
    assert assert_ok(await alice.get(f"{CONNECTIONS}/{number}"))["locations"] == 3


@pytest.mark.parametrize(
    "odd",
    [{"storefrontAddress": "1 Pier", "metadata": "x"}, {"storefrontAddress": {"addressLines": 5}, "metadata": [1]}],
)
async def test_odd_profile_is_listed_and_imported(
    browser: Browser,
    alice: httpx.AsyncClient,
    emulator: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    odd: dict[str, Any],
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice)

    async def locations(*_: object) -> list[dict[str, Any]]:
        return [{"name": BAKERY, "title": None, **odd}]

    monkeypatch.setattr(RemoteProvider, "locations", locations)
    [account] = assert_ok(await alice.get(f"{CONNECTIONS}/{number}"))["accounts"]
    assert [(place["name"], place["title"], place["address"]) for place in account["locations"]] == [(BAKERY, "", "")]
    assert (await imported(alice, number, locations=[BAKERY]))["imported"] == [BAKERY]
    listed = assert_ok(await alice.get(LOCATIONS, params={"limit": 100}))["locations"]
    assert [place["locationState"] for place in listed if place["name"] == BAKERY] == [{"isVerified": False}]


async def test_import_leaves_what_was_read_meanwhile(
    browser: Browser,
    alice: httpx.AsyncClient,
    emulator: httpx.AsyncClient,
    services: Services,
    clock: FrozenClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice)
    await imported(alice, number, locations=[BAKERY])
    find = logins._offered

    async def find_slowly(*args: Any) -> Any:
        found = await find(*args)
        await drift(emulator, locations={BAKERY: {"title": "Newer"}})
        clock.advance(hours=1)
        assert assert_ok(await alice.get("/api/v1/external-business/locations/411"))["title"] == "Newer"
        return found

    monkeypatch.setattr(logins, "_offered", find_slowly)
    await imported(alice, number, locations=[BAKERY])
    listed = assert_ok(await alice.get("/api/v1/external-business/locations"))["locations"]
    assert [location["title"] for location in listed if location["name"] == BAKERY] == ["Newer"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "locations"),
        ({"locations": [BAKERY], "title_contains": "x"}, "locations"),
        ({"locations": ["x/y"]}, "locations.0"),
        ({"title_contains": "", "business_id": 1, "business_name": "x"}, "business_name"),
        ({"title_contains": "", "business_id": "1"}, "business_id"),
        ({"title_contains": 1}, "title_contains"),
    ],
)
@pytest.mark.parametrize("database", ["sqlite"])
async def test_import_rejects_invalid_bodies(
    body: dict[str, Any], field: str, browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice)
    answer = await alice.post(f"{CONNECTIONS}/{number}/import", json=body)
    assert assert_error(answer, 400, "VALIDATION_ERROR")["errors"][0]["field"] == field


async def test_foreign_business_is_not_found(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice)
    for business in (20, 999):
        answer = await alice.post(
            f"{CONNECTIONS}/{number}/import", json={"title_contains": "", "business_id": business}
        )
        assert_error(answer, 404, "NOT_FOUND")


async def test_business_is_added_with_its_first_location_and_only_once(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice)
    before = await businesses(alice)
    nothing = await imported(alice, number, locations=["locations/999"], business_name="Roy")
    assert (nothing["imported"], nothing["business_id"]) == ([], None)
    first = await imported(alice, number, locations=[BAKERY], business_name="Roy")
    again = await imported(alice, number, title_contains="roy", business_name="Roy")
    assert (again["business_id"], again["refused"]) == (first["business_id"], [])
    elsewhere = await imported(alice, number, locations=[CAFE], business_name="Cafes")
    assert (elsewhere["business_id"], elsewhere["refused"]) == (None, [{"name": CAFE, "reason": "other_business"}])
    assert await businesses(alice) == [*before, "Roy"]
    listed = {each["name"]: each for each in assert_ok(await alice.get(LOCATIONS))["locations"]}
    assert (listed[BAKERY]["businessName"], listed[CAFE]["businessName"]) == ("Roy", "Roy")


async def businesses(owner: httpx.AsyncClient) -> list[str]:
    """The names of an owner's businesses."""
    return [each["name"] for each in assert_ok(await owner.get("/api/v1/businesses"))["businesses"]]


async def test_location_of_another_owner_is_refused_without_naming_them(
    browser: Browser, bobs: Browser, alice: httpx.AsyncClient, as_user: AsUser, emulator: httpx.AsyncClient
) -> None:
    """Both logins see the account; the owner who imported a location first has it."""
    await add_dana(emulator, "accounts/2")
    bob = await as_user(BOB)
    first, second = await connected(browser, alice), await connected(bobs, bob)
    await imported(alice, first, locations=[BAKERY])
    answer = await bob.post(f"{CONNECTIONS}/{second}/import", json={"title_contains": ""})
    done = assert_ok(answer)
    assert [(each["name"], each["reason"]) for each in done["refused"]] == [(BAKERY, "unavailable")]
    refused = assert_ok(await alice.post(f"{CONNECTIONS}/{first}/import", json={"locations": ["locations/211", CAFE]}))
    assert {each["reason"] for each in refused["refused"]} == {"unavailable"}
    for text in (answer.text, (await bob.get(f"{CONNECTIONS}/{second}")).text):
        assert "alice" not in text.lower()
    shown = {
        each["name"]: each for each in assert_ok(await bob.get(f"{CONNECTIONS}/{second}"))["accounts"][1]["locations"]
    }
    assert (shown[BAKERY]["available"], shown[BAKERY]["imported"]) == (False, False)


async def test_connections_of_another_owner_do_not_exist(
    browser: Browser, alice: httpx.AsyncClient, as_user: AsUser, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    number, bob = await connected(browser, alice), await as_user(BOB)
    assert assert_ok(await bob.get(CONNECTIONS)) == {"connections": []}
    for ident in (number, 999, "x", 10**30, "-1"):
        path = f"{CONNECTIONS}/{ident}"
        for answer in (
            await bob.get(path),
            await bob.delete(path),
            await bob.post(f"{path}/import", json={"title_contains": ""}),
        ):
            assert_error(answer, 404, "NOT_FOUND")
    assert assert_ok(await alice.get(f"{CONNECTIONS}/{number}"))["state"] == "active"


async def test_each_login_sees_only_its_own_accounts(
    browser: Browser, bobs: Browser, alice: httpx.AsyncClient, as_user: AsUser, emulator: httpx.AsyncClient
) -> None:
    """A location is read with the login of its owner, never with another one or the installation's."""
    await add_dana(emulator)
    bob = await as_user(BOB)
    number, of_bob = await connected(browser, alice), await connected(bobs, bob, "100002")
    await imported(alice, number, locations=[BAKERY])
    seen = assert_ok(await bob.get(f"{CONNECTIONS}/{of_bob}"))["accounts"]
    assert [account["name"] for account in seen] == ["accounts/2"]
    assert_error(await bob.get("/api/v1/sync/comparison/411"), 404, "NOT_FOUND")
    await drift(emulator, logins={DANA: {"email": "dana@example.com", "accounts": []}})
    answer = await alice.get("/api/v1/sync/comparison/411")
    assert assert_error(answer, 502, "PROVIDER_API_ERROR")["provider_status"] == 404


async def test_withdrawn_consent_stops_all_calls_until_the_owner_connects_again(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, services: Services, clock: FrozenClock
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice)
    await imported(alice, number, locations=[BAKERY, CAFE])
    await drift(emulator, logins={DANA: {"email": "dana@example.com", "accounts": ["accounts/4"], "revoked": True}})
    await forget_calls(emulator)
    for location in (BAKERY, CAFE, BAKERY):
        details = assert_error(
            await alice.get(f"/api/v1/sync/comparison/{location.removeprefix('locations/')}"), 502, "PROVIDER_API_ERROR"
        )
        assert (details["reason"], details["retryable"]) == ("reauth_required", False)
        assert details["reconnect_url"].endswith(PAGE)
    assert len([call for call in await calls(emulator) if call["path"] == "/token"]) == 1
    assert len(await calls(emulator)) == 2  # the rejected access token, and its refresh
    [entry] = assert_ok(await alice.get(CONNECTIONS))["connections"]
    assert (entry["state"], entry["last_error"]) == ("reauth_required", "invalid_grant")
    clock.advance(seconds=7200)
    assert_error(await alice.get(f"{CONNECTIONS}/{number}"), 502, "PROVIDER_API_ERROR")
    assert len(await calls(emulator)) == 2
    assert_ok(await alice.get("/api/v1/sync/comparison/111"))  # by the installation's login
    types = [each["type"] for each in assert_ok(await alice.get("/api/v1/events"))["events"]]
    assert types.count("provider_connection.reauth_required") == 1
    assert await connected(browser, alice) == number
    assert assert_ok(await alice.get(CONNECTIONS))["connections"][0]["state"] == "active"
    assert_ok(await alice.get("/api/v1/sync/comparison/411"))


async def test_expired_refresh_token_ends_the_login_of_every_process(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, services: Services, clock: FrozenClock
) -> None:
    """Another process has cached the same login and its access token, and reads the state of the row."""
    await add_dana(emulator)
    await drift(emulator, switches={"refresh_seconds": 4000})
    number = await connected(browser, alice)
    await imported(alice, number, locations=[BAKERY])
    clock.advance(seconds=5000)
    await emulator.post("/__emulator/clock", json={"advance_seconds": 0})
    other, services.part(Logins)._providers = services.part(Logins)._providers, {}
    details = assert_error(await alice.get(f"{CONNECTIONS}/{number}"), 502, "PROVIDER_API_ERROR")
    assert details["reason"] == "reauth_required"
    services.part(Logins)._providers = other
    await forget_calls(emulator)
    assert_error(await alice.get("/api/v1/sync/comparison/411"), 502, "PROVIDER_API_ERROR")
    assert await calls(emulator) == []


async def test_provider_that_is_down_does_not_end_a_login(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice)
    await fail(emulator, status=503)
    details = assert_error(await alice.get(f"{CONNECTIONS}/{number}"), 502, "PROVIDER_API_ERROR")
    assert details["reason"] == "unavailable"
    await heal(emulator)
    assert assert_ok(await alice.get(f"{CONNECTIONS}/{number}"))["state"] == "active"


@pytest.mark.parametrize(("statement", "is_sent"), [("change", True), ("find", False)])
async def test_database_that_fails_while_a_token_is_renewed_is_no_lost_response(
    browser: Browser,
    alice: httpx.AsyncClient,
    emulator: httpx.AsyncClient,
    services: Services,
    clock: FrozenClock,
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
    is_sent: bool,
) -> None:
    """The use of the login is not stored, or its row cannot be read a second time: then nothing was sent."""
    await add_dana(emulator)
    await imported(alice, await connected(browser, alice), locations=[BAKERY])
    clock.advance(hours=2)
    await forget_calls(emulator)
    works, original = [True] if statement == "find" else [], getattr(provider_logins, statement)

    async def failing(*args: Any, **values: Any) -> Any:
        if not works:
            raise ServiceError(SERVICE_UNAVAILABLE)
        works.pop()
        return await original(*args, **values)

    monkeypatch.setattr(provider_logins, statement, failing)
    answer = await alice.post("/api/v1/posts", params={"locationId": BAKERY}, json={"summary": "Once"})
    monkeypatch.undo()
    if is_sent:
        assert_ok(answer, 201)
    else:
        details = assert_error(answer, 502, "PROVIDER_API_ERROR")
        assert (details["reason"], details["retryable"]) == ("unavailable", True)
    assert [call["method"] for call in await calls(emulator, "POST")].count("POST") == 2 * is_sent
    async with services.storage.read() as session:
        assert (await session.execute(select(metadata.tables["post_usage"].c.used))).scalar_one() == is_sent


async def test_disconnect_leaves_nothing_of_the_login(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, services: Services, http: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice)
    done = await imported(alice, number, locations=[BAKERY, CAFE], business_name="Roy")
    body = {"name": "Website", "assigned_location_id": BAKERY, "business_id": done["business_id"]}
    key = assert_ok(
        await alice.post("/api/v1/developer/credentials", json={**body, "permissions": ["business.read"]}), 201
    )
    post = {"summary": "Bread at Roy Bakery", "topicType": "STANDARD"}
    once = {"X-Idempotency-Key": "bread-1"}
    assert_ok(await alice.post(f"/api/v1/posts?locationId={BAKERY}", json=post, headers=once), 201)
    await drift(emulator, locations={BAKERY: {"title": "Roy Bakery and Sons"}})
    assert_ok(await alice.get("/api/v1/sync/comparison/411"))
    before = await everything(services)
    assert "Roy Bakery" in before
    assert "dana@example.com" in before
    ended = assert_ok(await alice.delete(f"{CONNECTIONS}/{number}"))
    assert (ended["locations"], ended["deactivated_keys"]) == ([BAKERY, CAFE], [key["client_id"]])
    await services.background.settle()
    after = await everything(services)
    for text in ("Roy Bakery", "Roy Cafe", "dana@example.com", DANA, "Bread", "accounts/4", "1 Pier"):
        assert text not in after, text
    assert all(slot not in after for slot in secrets_of(services))
    assert assert_ok(await alice.get(CONNECTIONS)) == {"connections": []}
    listed = [each["name"] for each in assert_ok(await alice.get(LOCATIONS))["locations"]]
    assert BAKERY not in listed
    [shown] = assert_ok(await alice.get("/api/v1/developer/credentials"))["credentials"]
    assert (shown["status"], shown["deactivation_reason"]) == ("deactivated", "user_requested")
    trail = [each["event"] for each in assert_ok(await alice.get("/api/v1/audit"))["events"]]
    assert trail[:2] == ["provider.disconnected", "key.deactivated"]
    assert trail.count("provider.imported") == 1
    assert_error(await alice.get("/api/v1/sync/comparison/411"), 404, "NOT_FOUND")


async def test_disconnect_deletes_the_photos_of_drafts(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, services: Services
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice)
    await imported(alice, number, locations=[BAKERY])
    caller = Caller(1, services.plans["pro"], frozenset())
    location = await require_location(services, caller, BAKERY)
    url = await photos.store(services, caller, png())
    await drafts.save(services, location, {}, {"summary": "x", "media": [{"sourceUrl": url}]})
    assert (await browser.http.get(url)).status_code == 200
    assert_ok(await alice.delete(f"{CONNECTIONS}/{number}"))
    await services.background.settle()
    assert (await browser.http.get(url)).status_code == 404


async def test_export_has_what_disconnecting_deletes(
    browser: Browser, bobs: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, as_user: AsUser
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice)
    done = await imported(alice, number, locations=[BAKERY, CAFE], business_name="Roy")
    assert done["refused"] == []
    post = {"summary": "Bread at Roy Bakery", "topicType": "STANDARD"}
    assert_ok(await alice.post(f"/api/v1/posts?locationId={BAKERY}", json=post), 201)
    await forget_calls(emulator)
    copy = assert_ok(await alice.get(f"{CONNECTIONS}/{number}/export"))
    assert await calls(emulator) == []
    bakery, cafe = copy["locations"]
    assert (bakery["name"], bakery["profile"]["title"], bakery["desired"]["title"]) == (BAKERY, *["Roy Bakery"] * 2)
    assert [each["summary"] for each in bakery["posts"]] == ["Bread at Roy Bakery"]
    assert (cafe["name"], cafe["posts"]) == (CAFE, [])
    assert copy["connection"]["email"] == "dana@example.com"
    assert "1//" not in str(copy)
    page = await browser.http.get(f"{PAGE}/{number}")
    assert f'href="{PAGE}/{number}/data.json"' in page.text
    file = await browser.http.get(f"{PAGE}/{number}/data.json")
    assert file.headers["content-disposition"].startswith(f'attachment; filename="login-{number}-')
    assert file.json()["locations"] == copy["locations"]
    bob = await as_user(BOB)
    assert_error(await bob.get(f"{CONNECTIONS}/{number}/export"), 404, "NOT_FOUND")
    assert (await bobs.http.get(f"{PAGE}/{number}/data.json")).status_code == 404
    assert_ok(await alice.delete(f"{CONNECTIONS}/{number}"))
    assert_error(await alice.get(f"{CONNECTIONS}/{number}/export"), 404, "NOT_FOUND")


async def test_disconnect_revokes_the_consent_and_repeats_it(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, services: Services, clock: FrozenClock
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice)
    await fail(emulator, status=503, match={"path": "/revoke"})
    assert_ok(await alice.delete(f"{CONNECTIONS}/{number}"))
    await services.background.settle()
    await heal(emulator)
    await forget_calls(emulator)
    await logins.revoke_due(services)
    assert await calls(emulator) == []  # not before the pause has ended
    clock.advance(seconds=61)
    await logins.revoke_due(services)
    assert [(call["path"], call["status"]) for call in await calls(emulator)] == [("/revoke", 200)]
    await logins.revoke_due(services)
    assert len(await calls(emulator)) == 1
    async with services.storage.read() as session:
        table = metadata.tables["provider_connections"]
        [row] = (await session.execute(select(table))).all()
    assert (row.refresh_token, row.revoke_at, row.email, row.subject) == (None, None, None, None)


async def test_token_of_a_consent_that_cannot_be_revoked_is_deleted_in_the_end(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, services: Services, clock: FrozenClock
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice)
    await fail(emulator, status=503, times=50, match={"path": "/revoke"})
    assert_ok(await alice.delete(f"{CONNECTIONS}/{number}"))
    await services.background.settle()
    for _ in range(6):
        clock.advance(seconds=2 * DAY // 1000)
        await logins.revoke_due(services)
    async with services.storage.read() as session:
        [row] = (await session.execute(select(metadata.tables["provider_connections"]))).all()
    assert (row.refresh_token, row.revoke_at) == (None, None)


async def test_disconnected_location_can_be_imported_by_another_owner_and_again(
    browser: Browser,
    bobs: Browser,
    alice: httpx.AsyncClient,
    as_user: AsUser,
    emulator: httpx.AsyncClient,
    services: Services,
) -> None:
    await add_dana(emulator)
    bob = await as_user(BOB)
    number = await connected(browser, alice)
    await imported(alice, number, title_contains="")
    assert_ok(await alice.delete(f"{CONNECTIONS}/{number}"))
    await services.background.settle()  # the provider ends every token and code of the login
    of_bob = await connected(bobs, bob)
    assert (await imported(bob, of_bob, locations=[BAKERY]))["refused"] == []
    again = await connected(browser, alice)
    assert again != number
    done = await imported(alice, again, title_contains="")
    assert [each["name"] for each in done["refused"]] == [BAKERY]
    assert done["imported"] == [CAFE, SHOP]
    assert_error(await alice.get("/api/v1/sync/comparison/411"), 404, "NOT_FOUND")
    assert_ok(await alice.get("/api/v1/sync/comparison/412"))


async def test_location_of_the_installations_login_moves_to_the_owners(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    number = await connected(browser, alice, "100001")
    done = await imported(alice, number, locations=["locations/111"])
    assert (done["imported"], done["refused"]) == (["locations/111"], [])
    await drift(emulator, logins={"100001": {"email": ALICE, "accounts": ["accounts/1"], "revoked": True}})
    details = assert_error(await alice.get("/api/v1/sync/comparison/111"), 502, "PROVIDER_API_ERROR")
    assert details["reason"] == "reauth_required"
    assert_ok(await alice.get("/api/v1/sync/comparison/112"))


async def test_no_plaintext_token_in_database_log_or_response(
    browser: Browser,
    alice: httpx.AsyncClient,
    emulator: httpx.AsyncClient,
    services: Services,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    await add_dana(emulator)
    number = await connected(browser, alice)
    answers = [await alice.get(CONNECTIONS), await alice.get(f"{CONNECTIONS}/{number}")]
    stored = await everything(services) + await dumped(services)
    assert stored.count("dana@example.com") >= 2
    [provider] = services.part(Logins)._providers.values()
    token: str = provider._transport._tokens._login.refresh_token  # type: ignore[attr-defined]
    access: str = provider._transport._tokens._token  # type: ignore[attr-defined]
    assert token.startswith("1//")
    assert access.startswith("ya29.")
    await drift(emulator, logins={DANA: {"email": "dana@example.com", "accounts": [], "revoked": True}})
    answers.append(await alice.get(f"{CONNECTIONS}/{number}"))
    for secret in (token, access):
        assert secret not in stored
        assert secret not in caplog.text
        assert secret not in repr(provider) + repr(provider._transport._tokens._login)  # type: ignore[attr-defined]
        assert all(secret not in answer.text for answer in answers)


async def test_copied_row_cannot_be_used_by_another_owner(
    browser: Browser, alice: httpx.AsyncClient, as_user: AsUser, emulator: httpx.AsyncClient, services: Services
) -> None:
    await add_dana(emulator)
    await connected(browser, alice)
    table = metadata.tables["provider_connections"]
    async with services.storage.write() as session:
        [row] = (await session.execute(select(table))).all()
        await session.execute(table.insert().values({**row._mapping, "owner_id": 2, "id": 77}))
    details = assert_error(await (await as_user(BOB)).get(f"{CONNECTIONS}/77"), 502, "PROVIDER_API_ERROR")
    assert details["reason"] == "reauth_required"


async def test_url_of_the_api_needs_the_session_of_its_owner(
    browser: Browser, bobs: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, http: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    started = assert_ok(await alice.post(CONNECTIONS))
    query = query_of(started["authorization_url"])
    assert (query["access_type"], query["prompt"], query["code_challenge_method"]) == ("offline", "consent", "S256")
    back = await consent(http, started["authorization_url"])
    for other in (bobs.http, http):
        assert (await other.get(back)).status_code == 401
    assert (await browser.http.get(back)).status_code == 401  # the first response ends the attempt
    assert assert_ok(await alice.get(CONNECTIONS)) == {"connections": []}
    started = assert_ok(await alice.post(CONNECTIONS))
    back = await consent(http, started["authorization_url"])
    assert (await browser.http.get(back)).status_code == 303
    assert len(assert_ok(await alice.get(CONNECTIONS))["connections"]) == 1


async def test_callback_in_another_browser_is_refused(
    browser: Browser, dial: Dial, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    """Also in another browser of the same user: only the one that was sent to the provider has the cookie."""
    await add_dana(emulator)
    back = await consent(browser.http, await sent(browser))
    async with dial() as client:
        second = Browser(client)
        await second.sign_in(ALICE)
        answer = await client.get(back)
        assert answer.status_code == 401
        assert "Start again" in answer.text
        client.cookies.set("profilesvc_consent", query_of(back)["state"])
        assert (await client.get(back)).status_code == 401
    assert (await browser.http.get(back)).status_code == 401  # the code cannot be redeemed any more
    assert assert_ok(await alice.get(CONNECTIONS)) == {"connections": []}
    assert (await connect(browser)).status_code == 303


async def test_stolen_state_is_refused(
    browser: Browser, bobs: Browser, alice: httpx.AsyncClient, as_user: AsUser, emulator: httpx.AsyncClient
) -> None:
    """Bob cannot connect his login for Alice, and her login is not connected for him."""
    await add_dana(emulator)
    of_alice, of_bob = await sent(browser), await sent(bobs)
    code = query_of(await consent(bobs.http, of_bob, "100002"))["code"]
    state = query_of(of_alice)["state"]
    for client, query in (
        (bobs.http, {"state": state, "code": code}),
        (browser.http, {"state": query_of(of_bob)["state"], "code": code}),
        (browser.http, {"state": state, "code": code}),  # the verifier is another one
        (browser.http, {"state": state[:-1] + "x", "code": code}),
        (browser.http, {"code": code}),
    ):
        assert (await client.get(f"{PAGE}/callback", params=query)).status_code == 401
    for owner in (alice, await as_user(BOB)):
        assert assert_ok(await owner.get(CONNECTIONS)) == {"connections": []}


async def test_code_and_state_are_used_once(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    url = await sent(browser)
    back = await consent(browser.http, url)
    cookies = dict(browser.http.cookies)
    assert (await browser.http.get(back)).status_code == 303
    for name, value in cookies.items():
        browser.http.cookies.set(name, value)
    assert (await browser.http.get(back)).status_code == 401
    again = await consent(browser.http, url)  # a new code for the same state
    assert (await browser.http.get(again)).status_code == 401


@pytest.mark.in_process("rotates the keys of the service")
async def test_consent_outlasts_a_rotation_of_the_keys(
    browser: Browser, services: Services, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await add_dana(emulator)
    url = await sent(browser)
    await services.signing_keys.rotate("HS256", at_once=True)
    clock.advance(minutes=1)
    await services.signing_keys.reload()
    assert (await browser.http.get(await consent(browser.http, url))).status_code == 303


async def test_the_state_of_a_consent_expires(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await add_dana(emulator)
    back = await consent(browser.http, await sent(browser))
    clock.advance(seconds=600)
    assert (await browser.http.get(back)).status_code == 401


@pytest.mark.parametrize("form", [{"granted": ["openid", "email"]}, {"decision": "deny"}])
async def test_missing_scope_or_denied_consent_connects_nothing(
    form: dict[str, Any], browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    answer = await connect(browser, **form)
    assert answer.status_code == 400
    assert "Start again" in answer.text
    assert assert_ok(await alice.get(CONNECTIONS)) == {"connections": []}


async def test_login_without_locations_is_connected(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice, EMPTY)
    assert assert_ok(await alice.get(f"{CONNECTIONS}/{number}"))["accounts"] == []


async def test_connect_link_connects_once_for_the_owner_who_made_it(
    dial: Dial, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await add_dana(emulator)
    link = assert_ok(await alice.post(LINKS))["url"]
    async with dial() as client, dial() as second:
        dana, other = Browser(client), Browser(second)
        for _ in range(2):  # a program that checks links uses nothing up
            page = await dana.open(link)
        assert "Alice Ito asks for access" in page.text
        back = await consent(client, await sent(dana, f"{link}/start"))
        late = await consent(second, await sent(other, f"{link}/start"), EMPTY)
        assert (await second.get(back)).status_code == 401
        assert (await client.get(back)).status_code == 401  # it has ended, and the link is still valid
        back = await consent(client, await sent(dana, f"{link}/start"))
        assert "is connected" in (await dana.open(back)).text
        assert (await second.get(late)).status_code == 401
        assert (await client.get(link)).status_code == 401
        assert (await client.get(f"{link}/start")).status_code == 401
        assert (await client.get(f"{PAGE}/link/x")).status_code == 401
    [entry] = assert_ok(await alice.get(CONNECTIONS))["connections"]
    assert entry["email"] == "dana@example.com"
    expired = assert_ok(await alice.post(LINKS))["url"]
    clock.advance(seconds=86_400)
    async with dial() as client:
        assert (await client.get(expired)).status_code == 401
