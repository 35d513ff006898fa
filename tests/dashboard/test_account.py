"""The page of the account: who is signed in, the end of all sessions, and a copy of the data."""

import json

import httpx
import pytest
from sqlalchemy import select

from conftest import AsService
from profilesvc.services import account
from profilesvc.services.context import Services
from profilesvc.storage.tables import secrets
from support.api import ALICE, BOB, assert_error, assert_ok
from support.dashboard_browser import Browser, SignIn
from support.key_pages import made, shown_problems

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


async def test_the_copy_of_the_data_is_whole_and_has_no_secret(alice_there: Browser, services: Services) -> None:
    pair = await made(alice_there, primary_domain="harbour.example")
    url = "https://hooks.slack.com/services/T000/B000/token"
    await alice_there.open("/dashboard/webhooks")
    await alice_there.send("/webhooks", url=url, format="slack")
    answer = await alice_there.http.get(f"{PATH}/data.json")
    assert answer.headers["content-disposition"] == 'attachment; filename="my-data-2026-01-02.json"'
    assert answer.headers["cache-control"] == "no-store"
    data = json.loads(answer.content)
    assert data["user"]["name"] == "Alice Ito"
    assert [key["client_id"] for key in data["keys"]] == [pair["client_id"]]
    assert {site["location"] for site in data["sites"]} >= {"locations/111"}
    assert [hook["host"] for hook in data["webhooks"]] == ["hooks.slack.com"]
    assert (data["audit"][-1]["event"], data["audit_is_whole"]) == ("user.login", True)
    async with services.storage.read() as session:
        digests = [row[0] for row in await session.execute(select(secrets.c.digest))]
    for secret in (pair["client_secret"], "B000", alice_there.token, *digests):
        assert secret not in answer.text
    assert "Marsh" not in answer.text


async def test_the_trail_in_the_copy_is_limited(
    alice_there: Browser, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        await made(alice_there, name=f"Key {number}")
    monkeypatch.setattr(account, "_MOST_EVENTS", 2)
    monkeypatch.setattr(account, "_PIECE", 1)
    data = json.loads((await alice_there.http.get(f"{PATH}/data.json")).content)
    assert ([entry["event"] for entry in data["audit"]], data["audit_is_whole"]) == (["key.created"] * 2, False)
