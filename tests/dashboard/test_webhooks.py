"""Webhooks in the dashboard: created, shown with their deliveries, resent, changed, deleted; without a script."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx
import orjson
import pytest
import time_machine
from standardwebhooks import Webhook

from conftest import ON_ONE_DATABASE, Change
from profilesvc.contract.events import QuotaWarning
from profilesvc.delivery.senders import Attempt, Delivered, Due, Failed, Outcome, Retry
from profilesvc.delivery.transport import Transport
from profilesvc.delivery.webhooks import WebhookSender
from profilesvc.delivery.worker import deliver_due
from profilesvc.domain.time import FrozenClock
from profilesvc.operations import operator
from profilesvc.services import events
from profilesvc.services.context import Services
from profilesvc.settings import WebhookSettings
from support.api import ALICE, BOB, assert_ok
from support.browser.dashboard import Browser, SignIn
from support.network.receivers import receiving, responding

WEBHOOKS, API = "/dashboard/webhooks", "/api/v1/webhooks"
URL = "https://hooks.example/profiles"
HOSTILE = "</pre><script>alert(1)</script>"
Happen = Callable[[], Awaitable[None]]


@pytest.fixture
def happen(services: Services) -> Happen:
    """Publish an event of Alice."""

    async def publish() -> None:
        async with services.storage.write() as session:
            warned = QuotaWarning(used=8, limit=10, month="2026-01")
            events.publish(services, session, 1, events.new("quota.warning", warned))

    return publish


async def deliver(services: Services, response: Callable[[Due], Outcome]) -> None:
    """Send what is due by a sender that ends like this."""

    async def send(_services: Services, due: list[Due], _ended: dict[int, Outcome]) -> Outcome:
        return response(due[0])

    await deliver_due(services, {"webhook": send})


async def made(browser: Browser, **changes: Any) -> tuple[str, str]:
    """The path and the secret of a new webhook."""
    await browser.open(WEBHOOKS)
    page = await browser.send("/webhooks", **{"url": URL, **changes})
    [secret] = next(form["fields"]["secret"] for form in page.forms if "secret" in form["fields"])
    return next(link for link in page.links if re.fullmatch(rf"{WEBHOOKS}/\d+", link)), secret


def delivery_links(browser: Browser) -> list[str]:
    return [link for link in browser.page.links if re.fullmatch(rf"{WEBHOOKS}/\d+/deliveries/\d+", link)]


async def test_a_webhook_is_created_and_its_secret_is_shown_once(
    alice_there: Browser, alice: httpx.AsyncClient
) -> None:
    path, secret = await made(alice_there, description="Our shop", types=["connection.offline", "key.rolled"])
    assert secret.startswith("whsec_")
    assert alice_there.answer.headers["cache-control"] == "no-store"
    assert f'data-reload="{path}"' in alice_there.answer.text
    buttons = re.findall(r"<button[^>]*data-copy[^>]*>", alice_there.answer.text)
    assert len(buttons) == 1
    assert " hidden" in buttons[0]
    page = await alice_there.open(WEBHOOKS)
    assert secret not in alice_there.answer.text
    assert f"{URL} Our shop Standard Webhooks 2 Enabled" in page.text
    page = await alice_there.open(path)
    assert secret not in alice_there.answer.text
    assert page.form(path)["fields"]["types"] == ["connection.offline", "key.rolled"]
    [entry] = assert_ok(await alice.get(API))["webhooks"]
    assert (entry["url"], entry["types"]) == (URL, ["connection.offline", "key.rolled"])


async def test_a_chat_has_no_secret(alice_there: Browser) -> None:
    await alice_there.open(WEBHOOKS)
    page = await alice_there.send("/webhooks", url=URL, format="slack")
    assert re.fullmatch(rf"{WEBHOOKS}/\d+", alice_there.answer.url.path)
    assert "Slack" in page.text
    assert not any(form["action"].endswith("/roll") for form in page.forms)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"url": "http://hooks.example/"}, "URL: must start with https://"),
        ({"url": "https://10.0.0.1/"}, "URL: must not lead to a private address"),
        ({"url": "https://x.example/#part"}, "URL: must not contain a fragment (#)"),
        ({"description": "x" * 201}, "Description:"),
        ({"types": ["key.lost"]}, "Events:"),
        ({"format": "irc"}, "Format:"),
    ],
)
@ON_ONE_DATABASE
async def test_a_rejected_webhook_stays_in_its_form(alice_there: Browser, changes: dict[str, Any], said: str) -> None:
    await alice_there.open(WEBHOOKS)
    page = await alice_there.send("/webhooks", 400, **{"url": URL, "description": "Typed", **changes})
    assert said in page.text
    assert 'aria-invalid="true"' in alice_there.answer.text
    assert "<title>Error: " in alice_there.answer.text
    fields = page.form("/webhooks")["fields"]
    assert fields["url"] == [changes.get("url", URL)]
    assert fields["description"] == [changes.get("description", "Typed")]


async def test_the_limit_of_the_plan_is_shown(alice_there: Browser, services: Services) -> None:
    await operator.assign_plan(services, ALICE, "starter")
    limit = services.plans["starter"].webhooks
    for number in range(limit):
        await made(alice_there, url=f"{URL}/{number}")
    page = await alice_there.open(WEBHOOKS)
    assert f"Your plan includes {limit} webhook" in page.text
    assert not any("url" in form["fields"] for form in page.forms)


@pytest.mark.in_process("sends to a receiver of the test")
@pytest.mark.parametrize("database", ["sqlite"])
async def test_the_request_of_a_delivery_is_the_one_that_was_sent(
    alice_there: Browser, services: Services, happen: Happen, change: Change, clock: FrozenClock
) -> None:
    settings = services.settings.model_copy(update={"webhooks": WebhookSettings(deliver=False, allow_private=True)})
    change(settings=settings)
    allowed = replace(services, settings=settings)
    transport = Transport(allow_private=True)
    senders = {"webhook": WebhookSender(transport)}
    async with receiving(responding(200, body=b"internal page")) as receiver:
        path, secret = await made(alice_there, url=receiver.url)
        await happen()
        clock.advance(minutes=1)
        await deliver_due(allowed, senders)
        clock.advance(minutes=1)
        page = await alice_there.open(path)
        assert "The month's posts are almost used up Delivered" in page.text
        page = await alice_there.open(delivery_links(alice_there)[0])
        [got] = receiver.got
        for name in ("webhook-id", "webhook-timestamp", "webhook-signature", "user-agent", "content-type"):
            assert f"{name}: {got.headers[name]}".lower() in page.text.lower()
        shown = alice_there.answer.text.partition("<h3>Body</h3>")[2].partition("</pre>")[0].partition(">")[2]
        body = shown.replace("&#34;", '"').replace("&#39;", "'")
        assert orjson.loads(body) == orjson.loads(got.body)
        with time_machine.travel((clock.now() - 60_000) / 1000, tick=False):
            assert Webhook(secret).verify(got.body, got.headers)
        assert "Status 200" in page.text
        assert "The body of a response from a private address is never shown." in page.text
        assert "internal page" not in alice_there.answer.text
        await alice_there.send("/resend")
        assert "Waiting" in alice_there.page.text
        assert "No attempt yet." in alice_there.page.text
        await deliver_due(allowed, senders)
        assert "Delivered" in (await alice_there.open(alice_there.answer.url.path)).text
        assert len(receiver.got) == 2
        assert receiver.got[1].headers["webhook-id"] == got.headers["webhook-id"]
        await alice_there.open(path)
        await alice_there.send("/roll", sure="on")
        await alice_there.open(path)
        page = await alice_there.open(delivery_links(alice_there)[1])
        assert "The signature is not shown, because the secret was replaced since." in page.text
        assert got.headers["webhook-signature"] not in page.text
    await transport.aclose()


@pytest.mark.in_process("runs the worker itself")
async def test_each_attempt_is_shown_with_its_response(
    alice_there: Browser, services: Services, clock: FrozenClock, happen: Happen
) -> None:
    path, _ = await made(alice_there)
    await happen()
    await deliver(services, lambda due: Retry(Attempt(due.now, 500, "the receiver responded with 500", 12, HOSTILE)))
    clock.advance(seconds=6)
    await deliver(services, lambda due: Retry(Attempt(due.now, None, "no response within 10 seconds", 10_000)))
    page = await alice_there.open(path)
    assert "Failing" in page.text
    assert "The deliveries fail and are repeated." in page.text
    assert "No response within 10 seconds, 2 attempts, next 2026-01-02 03:" in page.text
    page = await alice_there.open(delivery_links(alice_there)[0])
    assert page.text.index("No response within 10 seconds") < page.text.index("Status 500")
    assert HOSTILE in page.text
    assert HOSTILE not in alice_there.answer.text
    assert "data-poll" in alice_there.answer.text
    live = await alice_there.http.get(f"{alice_there.answer.url.path}/live", headers={"X-Fragment": "1"})
    assert "Status 500" in live.text


@pytest.mark.in_process("runs the worker itself")
async def test_deliveries_are_filtered_by_state(
    alice_there: Browser, services: Services, happen: Happen, clock: FrozenClock
) -> None:
    path, _ = await made(alice_there)
    await happen()
    await deliver(services, lambda due: Delivered(Attempt(due.now, 204, None, 3, "")))
    await happen()
    await deliver(services, lambda due: Failed(Attempt(due.now, 400, "no", 3, "")))
    await happen()
    for state, count in (("", 3), ("pending", 1), ("delivered", 1), ("failed", 1), ("skipped", 0), ("lost", 3)):
        await alice_there.open(f"{path}?state={state}")
        assert len(delivery_links(alice_there)) == count, state
    assert "No delivery has this state." in (await alice_there.open(f"{path}/live?state=skipped")).text
    for _ in range(25):
        await happen()
    page = await alice_there.open(path)
    assert len(delivery_links(alice_there)) == 25
    page = await alice_there.open(next(link for link in page.links if "before=" in link))
    assert len(delivery_links(alice_there)) == 3
    assert "data-poll" not in alice_there.answer.text


@pytest.mark.in_process("runs the worker itself")
async def test_a_test_event_is_sent(alice_there: Browser, services: Services) -> None:
    path, _ = await made(alice_there)
    await alice_there.open(path)
    page = await alice_there.send("/test")
    assert "<h1>Test</h1>" in alice_there.answer.text
    assert "Waiting" in page.text
    await deliver(services, lambda due: Delivered(Attempt(due.now, 200, None, 3, "thanks")))
    page = await alice_there.open(alice_there.answer.url.path)
    assert '"type": "webhook.test"' in page.text
    assert "thanks" in page.text


async def test_missed_events_are_sent(alice_there: Browser, happen: Happen, clock: FrozenClock) -> None:
    path, _ = await made(alice_there)
    await alice_there.open(path)
    await alice_there.send("/switch")
    assert "You disabled the webhook." in alice_there.page.text
    assert not any(form["action"].endswith(("/test", "/recover")) for form in alice_there.page.forms)
    await happen()
    clock.advance(hours=1)
    page = await alice_there.send("/switch")
    assert "Nothing was sent yet." in page.text
    assert page.form("/recover")["fields"]["since"] == ["2026-01-01T04:04"]
    page = await alice_there.send("/recover")
    assert "1 event is on its way." in page.text
    page = await alice_there.send("/recover", since="2026-01-02T03:00:00")
    assert "No event was missed since then." in page.text
    for wrong in ("", "yesterday", "\x00", "2027-01-01T00:00"):
        page = await alice_there.send("/recover", 400, since=wrong)
        assert "Since: must " in page.text
        assert 'href="#recover-since"' in alice_there.answer.text
        assert " open>" in alice_there.answer.text


async def test_the_settings_are_changed(alice_there: Browser, alice: httpx.AsyncClient) -> None:
    path, _ = await made(alice_there, types=["key.rolled"])
    await alice_there.open(path)
    page = await alice_there.send(path, url=f"{URL}/2", description="New", types=None)
    assert "The settings are saved." in page.text
    assert "<h1>New</h1>" in alice_there.answer.text
    [entry] = assert_ok(await alice.get(API))["webhooks"]
    assert (entry["url"], entry["description"], entry["types"]) == (f"{URL}/2", "New", [])
    page = await alice_there.send(path, 400, url="ftp://hooks.example/", types=["key.created"])
    assert "URL: must start with https://" in page.text
    fields = page.form(path)["fields"]
    assert (fields["url"], fields["types"]) == (["ftp://hooks.example/"], ["key.created"])


async def test_a_secret_is_replaced_and_a_webhook_deleted_after_a_confirmation(
    alice_there: Browser, alice: httpx.AsyncClient
) -> None:
    path, first = await made(alice_there)
    for action in ("roll", "delete"):
        await alice_there.open(path)
        page = await alice_there.send(f"/{action}", 400)
        assert "Confirmation: tick the box to confirm" in page.text
        assert f'href="#{action}-sure"' in alice_there.answer.text
    page = await alice_there.send("/roll", sure="on")
    [secret] = next(form["fields"]["secret"] for form in page.forms if "secret" in form["fields"])
    assert secret != first
    assert "Until 2026-01-03 03:04 UTC each request has two signatures" in page.text
    assert "Old secret valid until 2026-01-03 03:04 UTC" in (await alice_there.open(path)).text
    await alice_there.send("/delete", sure="on")
    assert "You have no webhooks yet." in alice_there.page.text
    assert assert_ok(await alice.get(API))["webhooks"] == []
    await alice_there.open(path, 404)


async def test_another_users_webhook_is_neither_shown_nor_changed(
    alice_there: Browser, signed_in: SignIn, alice: httpx.AsyncClient, happen: Happen
) -> None:
    path, _ = await made(alice_there)
    await happen()
    await alice_there.open(path)
    [delivery] = delivery_links(alice_there)
    before = assert_ok(await alice.get(f"/api/v1/webhooks/{path.rpartition('/')[2]}/deliveries"))
    bob = await signed_in(BOB)
    assert URL not in (await bob.open(WEBHOOKS)).text
    own, _ = await made(bob, url=f"{URL}/bob")
    across = f"{own}/deliveries/{delivery.rpartition('/')[2]}"  # a delivery of another webhook
    for page in (path, f"{path}/live", delivery, f"{delivery}/live", across, f"{across}/live", f"{path}/deliveries/x"):
        await bob.open(page, 404)
        assert URL not in bob.answer.text
    await bob.open(WEBHOOKS)
    csrf = bob.page.form("/sign-out")["fields"]["csrf"][0]
    form = {"csrf": csrf, "sure": "on", "enabled": "off", "url": f"{URL}/x", "since": "2026-01-02T00:00"}
    actions = [path, *(f"{path}/{name}" for name in ("switch", "test", "recover", "roll", "delete"))]
    for action in (*actions, f"{delivery}/resend", f"{across}/resend"):
        answer = await bob.http.post(action, data=form)
        assert answer.status_code == 404, action
        assert "hooks.example" not in answer.text
    assert assert_ok(await alice.get(f"/api/v1/webhooks/{path.rpartition('/')[2]}/deliveries")) == before


async def test_a_form_of_another_page_is_rejected(
    alice_there: Browser, alice: httpx.AsyncClient, happen: Happen
) -> None:
    path, _ = await made(alice_there)
    await happen()
    await alice_there.open(path)
    [delivery] = delivery_links(alice_there)
    before = assert_ok(await alice.get(API))
    form = {"sure": "on", "enabled": "off", "url": f"{URL}/x", "format": "standard"}
    actions = [WEBHOOKS, path, *(f"{path}/{name}" for name in ("switch", "test", "recover", "roll", "delete"))]
    for action in (*actions, f"{delivery}/resend"):
        assert (await alice_there.http.post(action, data=form)).status_code == 403, action
    assert assert_ok(await alice.get(API)) == before


async def test_a_disabled_webhook_is_not_resent(alice_there: Browser, happen: Happen) -> None:
    path, _ = await made(alice_there)
    await happen()
    await alice_there.open(path)
    page = await alice_there.open(delivery_links(alice_there)[0])
    kept = alice_there.page, alice_there.answer
    await alice_there.open(path)
    await alice_there.send("/switch")
    alice_there.page, alice_there.answer = kept
    page = await alice_there.send("/resend", 409)
    assert "The webhook is disabled. Enable it first." in page.text
    assert not any(form["action"].endswith("/resend") for form in page.forms)
