"""An owner and a silent site, in a real Chromium: alerts on, 25 hours without a heartbeat, mail, a resent delivery."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from profilesvc.bootstrap import Runtime, create_app
from profilesvc.domain.time import ShiftedClock
from profilesvc.fixtures import fixture_path, load_world
from profilesvc.operations import seeding
from profilesvc.operations.notify import sweep
from profilesvc.server.serving import EmbeddedServer
from profilesvc.services.context import Services
from profilesvc.settings import Settings, TokenSettings, WebhookSettings
from support.browser.tab import DESK, PICTURES, Tab
from support.program import environment

NARROW = {"width": 320, "height": 640}
ALICE = "alice@example.com"
WAITS = 40


class MovedService:
    """The service on a thread, with the clock of a demo. It may send webhooks to this machine."""

    def __init__(self, folder: Path) -> None:
        self._server = EmbeddedServer(self)
        self.url = self._server.base_url
        tokens = TokenSettings(
            signing_key_file=fixture_path("signing_key.pem"), refresh_key_file=fixture_path("refresh_key.pem")
        )
        settings = Settings(
            _env_file=None,
            data_dir=folder,
            base_url=self.url,
            tokens=tokens,
            webhooks=WebhookSettings(allow_private=True),
        )
        self._app = create_app(settings, Runtime(ShiftedClock()))
        self._app.before_serving(self._remember_loop)
        self._server.start()
        services: Services = self._app.extensions["profilesvc"]
        self._services = services
        self.run(seeding.load(services, load_world()))
        self.run(sweep.run_once(services))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)

    async def _remember_loop(self) -> None:
        self._loop = asyncio.get_running_loop()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def sweep(self) -> None:
        self.run(sweep.catch_up(self._services))

    def stop(self) -> None:
        self._server.stop()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[MovedService]:
    made = MovedService(tmp_path / "var")
    yield made
    made.stop()


Got = list[tuple[dict[str, str], bytes]]


@pytest.fixture
def receiver() -> Iterator[tuple[str, Got]]:
    """The address of an endpoint of the owner, and the requests that it got."""
    got: Got = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name in the base class
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook", got
    server.shutdown()
    thread.join()
    server.server_close()


class Owner:
    """Alice in a browser, with or without a script."""

    def __init__(self, tab: Tab, *, script: bool) -> None:
        self.tab, self.page, self.script = tab, tab.page, script

    def open(self, path: str) -> None:
        self.page.goto(f"{self.tab.url}{path}")

    def button(self, name: str) -> None:
        self.page.get_by_role("button", name=name).click()

    def expect(self, text: str, *, renews_itself: bool = False) -> None:
        """Wait for a text; without a script, or on a page that does not renew itself, by reloading the page."""
        found = self.page.get_by_text(text).first
        if self.script and renews_itself:
            found.wait_for()
            return
        for _ in range(WAITS):
            if found.is_visible():
                return
            self.page.wait_for_timeout(500)
            self.page.reload()
        raise AssertionError(f"{text!r} is not on {self.page.url}: {self.page.locator('main').inner_text()}")

    def check(self, picture: str) -> None:
        """No finding of axe at two widths, and a picture of each."""
        for width, viewport in (("desk", DESK), ("narrow", NARROW)) if self.script else ():
            self.page.set_viewport_size(viewport)
            self.tab.assert_accessible()
            self.page.screenshot(path=PICTURES / f"alerts-{picture}-{width}.png", full_page=True)
        self.page.set_viewport_size(DESK)


@pytest.fixture(params=[True, False], ids=["script", "no-script"])
def alice(request: pytest.FixtureRequest, chromium: Any, service: MovedService) -> Iterator[Owner]:
    tab = Tab(chromium, service.url, java_script_enabled=request.param, timezone_id="Europe/Berlin")
    tab.sign_in("Alice Ito")
    yield Owner(tab, script=request.param)
    tab.context.close()
    assert (tab.outside, tab.console) == ([], [])


def new_key(alice: Owner) -> list[str]:
    alice.open("/dashboard/keys")
    alice.page.get_by_label("Name").fill("Station site")
    alice.page.locator("select[name=location]").select_option("locations/112")
    alice.button("Create the key")
    pair = [alice.page.get_by_label(label).input_value() for label in ("Client id", "Client secret")]
    return ["--client-id", pair[0], "--client-secret", pair[1]]


def new_webhook(alice: Owner, url: str) -> str:
    """The secret of a new webhook, whose page is open."""
    alice.open("/dashboard/webhooks")
    alice.page.get_by_label("URL").fill(url)
    alice.page.get_by_text("Only some kinds of event…").click()
    alice.page.get_by_label("A site is offline").check()
    alice.check("webhooks")
    alice.button("Create the webhook")
    secret = str(alice.page.get_by_label("Secret").input_value())
    copy = alice.page.get_by_role("button", name="Copy the secret")
    if alice.script:
        copy.wait_for()  # a script adds it
    assert copy.count() == alice.script
    alice.check("secret")
    alice.page.get_by_role("link", name="I have copied it").click()
    assert secret not in alice.page.content()
    return secret


def is_signed(request: tuple[dict[str, str], bytes], secret: str) -> bool:
    headers, body = request
    at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
    return Webhook(secret).sign(headers["webhook-id"], at, body.decode()) == headers["webhook-signature"]


def test_an_owner_hears_of_a_silent_site(
    alice: Owner, service: MovedService, receiver: tuple[str, Got], tmp_path: Path
) -> None:
    url, got = receiver
    credentials = new_key(alice)
    command = [sys.executable, "-m", "profilesvc", "simulate", "plugin", "--url", service.url, "--every", "3"]
    site = subprocess.Popen([*command, *credentials], cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL)
    try:
        alice.open("/dashboard/sites/112")
        alice.expect("heartbeat just now", renews_itself=True)
        service.sweep()
        alice.open("/dashboard/alerts")
        alice.check("off")
        alice.button(f"Send alerts to {ALICE}")
        alice.expect(f"Alerts to {ALICE} are on.")
        alice.expect("Europe/Berlin" if alice.script else "UTC")
        secret = new_webhook(alice, url)
        alice.button("Send a test event")
        alice.expect("Delivered", renews_itself=True)
        assert is_signed(got[0], secret)
    finally:
        site.terminate()
        site.wait(timeout=60)

    alice.open("/dashboard/mail")
    alice.expect("There is no message yet.")
    alice.button("Move the clock on by 25 hours")
    alice.expect("is offline: no heartbeat since")
    alice.check("mail")
    alice.open("/dashboard/sites/112")
    alice.expect("The site is offline: no heartbeat since")
    alice.expect("heartbeat 1 day ago")
    alice.check("site")
    resend_a_delivery(alice, got, secret)
    unsubscribe(alice)


def resend_a_delivery(alice: Owner, got: Got, secret: str) -> None:
    alice.open("/dashboard/webhooks")
    alice.page.get_by_role("link", name="http://127.0.0.1").click()
    alice.page.get_by_role("link", name="A site is offline").click()
    alice.expect("Delivered", renews_itself=True)
    alice.check("delivery")
    first = alice.page.url
    alice.button("Resend")
    alice.page.wait_for_url(lambda there: there != first)
    alice.expect("Delivered", renews_itself=True)
    assert [json.loads(body)["type"] for _, body in got] == ["webhook.test", *["connection.offline"] * 2]
    assert got[1][0]["webhook-id"] == got[2][0]["webhook-id"]
    assert all(is_signed(each, secret) for each in got)
    assert got[2][0]["webhook-signature"] in alice.page.locator("#delivery").inner_text()


def unsubscribe(alice: Owner) -> None:
    """By the link of the message, which needs no sign-in."""
    alice.open("/dashboard/mail")
    link = alice.page.locator("pre a[href*='/alerts/unsubscribe/']").first.get_attribute("href")
    alice.page.context.clear_cookies()
    alice.page.goto(link)
    alice.button("Stop all alerts")
    alice.expect("receives no more alerts.")
    alice.tab.sign_in("Alice Ito")
    alice.open("/dashboard/alerts")
    alice.expect("The reader stopped the alerts by the link in a message.")
    alice.check("stopped")
    alice.page.get_by_role("link", name="Settings").click()
    alice.check("settings")
    alice.button("Switch the address on")
    alice.expect("Active")
