"""A location whose metadata says that it cannot have posts (`canOperateLocalPost`)."""

import httpx
import pytest

from profilesvc.domain.time import FrozenClock
from support.api import assert_error, assert_ok
from support.browser.dashboard import Browser
from support.posts import PATH
from support.provider.drive import calls, drift, forget_calls
from support.syncs import PIER

pytestmark = pytest.mark.in_process("the emulator's locations")
LOCATION = "/api/v1/external-business/locations/111"
POST = {"summary": "Open late tonight"}


async def switch(emulator: httpx.AsyncClient, value: object) -> None:
    await drift(emulator, locations={PIER: {"metadata": {"canOperateLocalPost": value}}})


async def create(alice: httpx.AsyncClient) -> httpx.Response:
    return await alice.post(PATH, params={"locationId": "111"}, json=POST)


async def test_provider_decides_while_the_stored_profile_is_older(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await switch(emulator, False)
    details = assert_error(await create(alice), 502, "PROVIDER_API_ERROR")
    assert (details["reason"], details["retryable"], details["provider_status"]) == ("rejected", False, 400)


async def test_post_is_rejected_before_the_provider(
    alice: httpx.AsyncClient, browser: Browser, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    assert "metadata" not in assert_ok(await alice.get(LOCATION))
    await switch(emulator, False)
    clock.advance(hours=2)
    assert assert_ok(await alice.get(LOCATION))["metadata"] == {"canOperateLocalPost": False}
    await forget_calls(emulator)
    response = await create(alice)
    details = assert_error(response, 502, "PROVIDER_API_ERROR")
    assert (details["reason"], details["retryable"]) == ("rejected", False)
    assert "cannot have posts" in response.json()["error"]["message"]
    assert [call["method"] for call in await calls(emulator) if call["path"] != "/token"] == ["GET"]
    for path in ("/dashboard", "/dashboard/sites/111"):
        assert "The provider does not accept posts for this location." in (await browser.http.get(path)).text, path
    await switch(emulator, True)
    assert_ok(await create(alice), 201)  # it was read again
    assert "metadata" not in assert_ok(await alice.get(LOCATION))


@pytest.mark.parametrize("value", [True, None])
async def test_only_the_value_false_rejects_posts(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock, value: object
) -> None:
    await switch(emulator, value)
    clock.advance(hours=2)
    assert_ok(await alice.get(LOCATION))
    assert_ok(await create(alice), 201)
