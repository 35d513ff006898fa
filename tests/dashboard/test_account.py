"""The page of the account: who is signed in, the end of all sessions, and sign-ins."""

import httpx

from conftest import AsService
from support.api import ALICE, BOB, assert_error, assert_ok
from support.browser.dashboard import Browser, SignIn
from support.browser.key_pages import shown_problems

PATH = "/dashboard/account"


async def test_profile_and_sign_ins_are_shown(alice_there: Browser) -> None:
    page = await alice_there.open(PATH)
    assert "Name Alice Ito E-mail" in page.text
    assert "2026-01-02 03:04 UTC" in page.text
    assert "Bob" not in page.text


async def test_sign_out_everywhere_ends_all_sessions_and_no_key(
    signed_in: SignIn, http: httpx.AsyncClient, as_service: AsService
) -> None:
    site = await as_service()
    here, bob = await signed_in(ALICE), await signed_in(BOB)
    token = {"Authorization": f"Bearer {here.token}"}
    other = Browser(here.http)
    assert_ok(await http.get("/api/v1/businesses", headers=token))
    await other.open(PATH)
    await other.send("/account/sign-out", 400)
    assert shown_problems(other) == ["Confirmation: tick the box to confirm"]
    assert_ok(await http.get("/api/v1/businesses", headers=token))
    await other.send("/account/sign-out", sure="on")
    assert other.answer.url.path == "/dashboard/sign-in"
    assert_error(await http.get("/api/v1/businesses", headers=token), 401, "AUTH_INVALID_TOKEN")
    assert_ok(await site.http.post("/api/v1/api-keys/heartbeat", json={}))
    await bob.open(PATH)
    again = await signed_in(ALICE)
    await again.open("/dashboard/audit")
    assert "Signed out everywhere" in again.page.text
