"""Owners' logins under requests that overlap, repeat themselves, or were not foreseen."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import httpx
import pytest

from conftest import ON_POSTGRES
from profilesvc.domain.time import FrozenClock
from profilesvc.services.context import Services
from profilesvc.services.logins import importing, logins
from profilesvc.storage import idempotency
from profilesvc.storage.tables import metadata
from support.api import ALICE, assert_error, assert_ok
from support.browser.dashboard import Browser
from support.provider.consent import (
    BAKERY,
    CAFE,
    CONNECTIONS,
    DANA,
    LINKS,
    PAGE,
    add_dana,
    connected,
    everything,
    imported,
)
from support.provider.drive import calls, drift, fail, forget_calls, heal, no_faults
from support.waiting import until_async

pytestmark = pytest.mark.in_process("the emulator's logins")


async def held(emulator: httpx.AsyncClient, request: Awaitable[httpx.Response], method: str, path: str) -> "Held":
    """Send a request that waits at the provider for this call."""
    await fail(emulator, "hold", times=1, match={"method": method, "path": path})
    task = asyncio.ensure_future(request)
    await until_async(lambda: no_faults(emulator), "the provider to hold the call", every=0)
    return Held(emulator, task)


class Held:
    """A request that waits at the provider."""

    def __init__(self, emulator: httpx.AsyncClient, task: "asyncio.Future[httpx.Response]") -> None:
        self._emulator, self._task = emulator, task

    async def finish(self) -> httpx.Response:
        assert not self._task.done()
        await heal(self._emulator)
        return await self._task


async def test_requests_at_the_same_time_spend_one_call_on_a_login_that_has_ended(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice)
    await imported(alice, number, locations=[BAKERY, CAFE])
    await drift(emulator, logins={DANA: {"email": "dana@example.com", "accounts": ["accounts/4"], "revoked": True}})
    await forget_calls(emulator)
    answers = await asyncio.gather(*(alice.get(f"/api/v1/sync/comparison/{at}") for at in (411, 412) * 4))
    reasons = {assert_error(answer, 502, "PROVIDER_API_ERROR")["reason"] for answer in answers}
    assert reasons == {"reauth_required"}
    assert len([call for call in await calls(emulator) if call["path"] == "/token"]) == 1


async def test_import_that_overlaps_the_disconnect_stores_nothing(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, services: Services
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice)
    importing = alice.post(f"{CONNECTIONS}/{number}/import", json={"title_contains": ""})
    waiting = await held(emulator, importing, "GET", "/v1/accounts/4/locations")
    assert_ok(await alice.delete(f"{CONNECTIONS}/{number}"))
    assert_error(await waiting.finish(), 404, "NOT_FOUND")
    assert "Roy Bakery" not in await everything(services)


async def test_requests_that_overlap_the_disconnect_store_nothing(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, services: Services
) -> None:
    await add_dana(emulator)
    post, profile = {"summary": "Bread", "topicType": "STANDARD"}, {"title": "Roy Bakery and Sons"}
    for method, path, sent_to, body in (
        ("PATCH", "/v1/locations", "/api/v1/sync/411", profile),
        ("POST", "/v4", f"/api/v1/posts?locationId={BAKERY}", post),
        ("POST", "/v4", f"/api/v1/posts?locationId={BAKERY}&", post),  # with an idempotency key
        ("GET", "/v1/locations", "/api/v1/sync/comparison/411", None),
    ):
        number = await connected(browser, alice)
        done = await imported(alice, number, locations=[BAKERY], business_name="Roy")
        assert done["refused"] == []
        assert_ok(await alice.patch(f"/api/v1/external-business/{BAKERY}/sync", json={"syncEnabled": True}))
        waiting = await held(
            emulator,
            alice.request(
                "GET" if body is None else "POST",
                sent_to,
                json=body,
                headers={"Idempotency-Key": "one"} if sent_to.endswith("&") else {},
            ),
            method,
            path,
        )
        assert_ok(await alice.delete(f"{CONNECTIONS}/{number}"))
        response = await waiting.finish()
        if response.status_code == 502:  # the consent was withdrawn before the provider looked at the token
            assert assert_error(response, 502, "PROVIDER_API_ERROR")["reason"] == "reauth_required"
        elif body is not None:
            assert_error(response, 404, "NOT_FOUND")
        await services.background.settle()
        after = await everything(services)
        for text in ("Roy Bakery", "Bread"):
            assert text not in after, (method, text)
        async with services.storage.read() as session:
            for table in ("posts", "syncs"):
                rows = await session.execute(metadata.tables[table].select())
                assert BAKERY not in {row.location_name for row in rows}, (method, table)


@ON_POSTGRES
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/sync/411", {"title": "Roy Bakery and Sons"}),
        (f"/api/v1/posts?locationId={BAKERY}", {"summary": "Bread", "topicType": "STANDARD"}),
    ],
)
async def test_disconnect_waits_for_a_request_that_stores_its_response(
    browser: Browser,
    alice: httpx.AsyncClient,
    emulator: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    body: dict[str, str],
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice)
    await imported(alice, number, locations=[BAKERY], business_name="Roy")
    assert_ok(await alice.patch(f"/api/v1/external-business/{BAKERY}/sync", json={"syncEnabled": True}))
    finish, ending = idempotency.finish, list[asyncio.Task[httpx.Response]]()

    async def finish_and_wait(*args: Any) -> bool:
        is_ours = await finish(*args)
        ending.append(asyncio.create_task(alice.delete(f"{CONNECTIONS}/{number}")))
        await asyncio.wait(ending, timeout=0.3)
        return is_ours

    monkeypatch.setattr(idempotency, "finish", finish_and_wait)
    assert (await alice.post(path, json=body, headers={"Idempotency-Key": "one"})).is_success
    assert_ok(await ending[0])


async def test_login_that_is_connected_again_is_not_withdrawn(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, services: Services, clock: FrozenClock
) -> None:
    """The provider withdraws a login as a whole, so a late withdrawal would end the new consent."""
    await add_dana(emulator)
    first, other = await connected(browser, alice), await connected(browser, alice, "100002")
    await fail(emulator, status=503, match={"path": "/revoke"})
    for number in (first, other):
        assert_ok(await alice.delete(f"{CONNECTIONS}/{number}"))
    await services.background.settle()
    await heal(emulator)
    again = await connected(browser, alice)
    await forget_calls(emulator)
    clock.advance(seconds=61)
    await logins.revoke_due(services)
    assert [call["path"] for call in await calls(emulator)] == ["/revoke"]  # of the other login only
    detail = assert_ok(await alice.get(f"{CONNECTIONS}/{again}"))
    assert (detail["state"], len(detail["accounts"])) == ("active", 1)
    async with services.storage.read() as session:
        rows = (await session.execute(metadata.tables["provider_connections"].select())).all()
    assert [row.id for row in rows if row.refresh_token is not None] == [again]


async def test_import_of_the_operator_leaves_the_login_of_the_owner(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, services: Services
) -> None:
    number = await connected(browser, alice, "100001")
    await imported(alice, number, locations=["locations/111"])
    assert "locations/111" in await importing.import_account(services, ALICE, "accounts/1")
    assert assert_ok(await alice.get(f"{CONNECTIONS}/{number}"))["locations"] == 1
    await drift(emulator, logins={"100001": {"email": ALICE, "accounts": ["accounts/1"], "revoked": True}})
    details = assert_error(await alice.get("/api/v1/sync/comparison/111"), 502, "PROVIDER_API_ERROR")
    assert details["reason"] == "reauth_required"


async def test_repeated_import_publishes_the_loss_of_the_verification_and_leaves_its_reason(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice)
    await imported(alice, number, locations=[BAKERY])
    switch = f"/api/v1/external-business/{BAKERY}/sync"
    assert_ok(await alice.patch(switch, json={"syncEnabled": True}))

    async def published(voice: dict[str, Any]) -> list[tuple[str, Any]]:
        """The events of a repeated import, each with its values, without the location."""
        await drift(emulator, voice_of_merchant={BAKERY: voice})
        before = len(assert_ok(await alice.get("/api/v1/events"))["events"])
        await imported(alice, number, locations=[BAKERY])
        events = assert_ok(await alice.get("/api/v1/events"))["events"][before:]
        return [(each["type"], [*each["data"].values()][1:]) for each in events]

    suspended = {"complyWithGuidelines": {"recommendationReason": "BUSINESS_LOCATION_SUSPENDED"}}
    assert await published(suspended) == [
        ("location.sync_switched", [False]),
        ("location.verification_changed", [False, "UNVERIFIED"]),
    ]
    assert_ok(await alice.post(f"/api/v1/external-business/{BAKERY}/refresh-verification"))
    assert await published(suspended) == []
    details = assert_error(await alice.patch(switch, json={"syncEnabled": True}), 409, "LOCATION_NOT_VERIFIED")
    assert details["verificationState"] == "SUSPENDED"
    assert await published({"hasVoiceOfMerchant": True}) == [("location.verification_changed", [True, "VERIFIED"])]


async def test_disconnect_forgets_the_idempotency_keys_of_its_own_locations_only(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, services: Services
) -> None:
    await add_dana(emulator)
    verified = {"hasVoiceOfMerchant": True, "hasBusinessAuthority": True}
    short = {"account": "accounts/4", "profile": {"title": "Short id"}, "voice_of_merchant": verified}
    await drift(emulator, new_locations={"locations/11": short})
    number = await connected(browser, alice)
    await imported(alice, number, locations=["locations/11"], business_name="Roy")

    async def posted(location: str) -> str:
        body, once = {"summary": "Bread", "topicType": "STANDARD"}, {"X-Idempotency-Key": "bread-1"}
        answer = await alice.post(f"/api/v1/posts?locationId={location}", json=body, headers=once)
        return str(assert_ok(answer, 201)["name"])

    async def synced() -> str:
        assert_ok(await alice.patch("/api/v1/external-business/locations/11/sync", json={"syncEnabled": True}))
        once = {"X-Idempotency-Key": "sync-1"}
        answer = await alice.post("/api/v1/sync/locations/11", json={"title": "Roy"}, headers=once)
        return str(assert_ok(answer)["syncId"])  # and no name of a location

    own, other, sync = await posted("locations/11"), await posted("locations/111"), await synced()
    assert_ok(await alice.delete(f"{CONNECTIONS}/{number}"))
    await services.background.settle()
    assert await posted("locations/111") == other
    await imported(alice, await connected(browser, alice), locations=["locations/11"], business_name="Roy")
    assert await posted("locations/11") != own
    assert await synced() != sync


@pytest.mark.parametrize("database", ["sqlite"])
async def test_long_numbers_are_not_found(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    for ident in ("0" * 15 + "9" * 30, "9" * 5000, "9223372036854775808"):
        assert_error(await alice.get(f"{CONNECTIONS}/{ident}"), 404, "NOT_FOUND")
    number = await connected(browser, alice)
    page = await browser.open(f"{PAGE}/{number}")
    fields = {**page.form("/import")["fields"], "locations": [BAKERY], "business_id": "9" * 5000}
    assert (await browser.http.post(f"{PAGE}/{number}/import", data=fields)).status_code == 400


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
async def test_connect_link_cannot_skip_the_page_that_shows_who_asks(
    site: str, http: httpx.AsyncClient, alice: httpx.AsyncClient
) -> None:
    link = assert_ok(await alice.post(LINKS))["url"]
    answer = await http.get(f"{link}/start", headers={"Sec-Fetch-Site": site})
    assert (answer.status_code, answer.headers["location"]) == (303, link[link.index(PAGE) :])
    own = await http.get(f"{link}/start", headers={"Sec-Fetch-Site": "same-origin"})
    assert "/o/oauth2/" in own.headers["location"]


async def test_disconnected_location_has_no_new_key_and_its_keys_stay_deactivated(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, services: Services
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice)
    done = await imported(alice, number, locations=[BAKERY], business_name="Roy")
    body = {
        "name": "Website",
        "assigned_location_id": BAKERY,
        "business_id": done["business_id"],
        "permissions": ["business.read"],
    }
    key = assert_ok(await alice.post("/api/v1/developer/credentials", json=body), 201)
    assert_ok(await alice.delete(f"{CONNECTIONS}/{number}"))
    assert (await alice.post("/api/v1/developer/credentials", json=body)).status_code == 404
    reactivated = await alice.post(f"/api/v1/developer/credentials/{key['client_id']}/reactivate")
    assert "Import it again" in reactivated.text
    assert_error(reactivated, 404, "NOT_FOUND")
    secret = {
        "grant_type": "client_credentials",
        "client_id": key["client_id"],
        "client_secret": key["client_secret"],
    }
    assert_error(await alice.post("/api/v1/auth/token", json=secret), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    await services.background.settle()
    await imported(alice, await connected(browser, alice), locations=[BAKERY])
    assert_ok(await alice.post(f"/api/v1/developer/credentials/{key['client_id']}/reactivate"))
    assert_ok(await alice.post("/api/v1/auth/token", json=secret))
