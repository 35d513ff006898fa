"""An owner deletes the account on its page: what is asked first, what is left, and what others notice."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from conftest import ON_ONE_DATABASE
from profilesvc.delivery.kinds import open_senders
from profilesvc.delivery.worker import deliver_due
from profilesvc.domain.time import FrozenClock
from profilesvc.services.accounts import deletion
from profilesvc.services.context import Services
from profilesvc.services.logins import logins
from support.api import ALICE, BOB, Site, assert_ok
from support.browser.dashboard import COOKIE, Browser, SignIn
from support.browser.key_pages import made, shown_problems
from support.provider.consent import BAKERY, add_dana, connected, everything, imported
from support.provider.drive import calls, forget_calls

PATH = "/dashboard/account/delete"


@pytest.fixture
async def browser(signed_in: SignIn) -> Browser:
    return await signed_in(ALICE)


async def delivered(services: Services) -> None:
    async with open_senders(services) as senders:
        await deliver_due(services, senders)


async def test_the_page_says_what_is_deleted_and_asks(alice_there: Browser, http: httpx.AsyncClient) -> None:
    await made(alice_there)
    await alice_there.open("/dashboard/account")
    assert PATH in alice_there.page.links
    page = await alice_there.open(PATH)
    assert "5 sites, 1 API key" in page.text
    assert "What stays, and why" in page.text
    assert any("data" in link for link in page.links)
    for typed in ("", BOB, "alice"):
        await alice_there.send("/account/delete", 400, email=typed)
        assert shown_problems(alice_there) == [f"E-mail address: must be {ALICE}"]
        assert alice_there.page.form("/account/delete")["fields"]["email"] == [typed]
    token = {"Authorization": f"Bearer {alice_there.token}"}
    assert_ok(await http.get("/api/v1/businesses", headers=token))
    answer = await alice_there.http.post(PATH, data={"email": ALICE})
    assert answer.status_code == 403  # not a form of this session


async def test_an_old_session_has_to_sign_in_again(alice_there: Browser, clock: FrozenClock) -> None:
    await alice_there.open(PATH)
    form = alice_there.page.form("/account/delete")["fields"]
    clock.advance(minutes=11)
    data = {name: values[0] for name, values in form.items()} | {"email": ALICE}
    answer = await alice_there.http.post(PATH, data=data)
    assert (answer.status_code, "Sign in again" in answer.text) == (409, True)
    page = await alice_there.open(PATH)
    assert not [form for form in page.forms if form["action"] == PATH]
    again = next(link for link in page.links if "/sign-in/start" in link)
    to_provider = (await alice_there.http.get(again)).headers["location"]
    assert parse_qs(urlsplit(to_provider).query)["prompt"] == ["login"]
    await alice_there.open(to_provider)
    fields = alice_there.page.forms[0]["fields"] | {"subject": "demo-1"}
    back = await alice_there.http.post("/dev/issuer/authorize", data=fields, follow_redirects=True)
    assert back.url.path == PATH
    await alice_there.open(PATH)
    await alice_there.send("/account/delete", email=ALICE)
    assert alice_there.answer.url.path == "/dashboard/account-deleted"


async def test_nothing_of_the_owner_is_left_and_others_go_on(
    browser: Browser,
    signed_in: SignIn,
    alice: httpx.AsyncClient,
    emulator: httpx.AsyncClient,
    services: Services,
    plugin: Site,
    clock: FrozenClock,
) -> None:
    bob = await signed_in(BOB)
    await add_dana(emulator)
    number = await connected(browser, alice)
    await imported(alice, number, locations=[BAKERY], business_name="Roy")
    assert_ok(await alice.post("/api/v1/alerts", json={"address": ALICE}), 201)
    assert_ok(await alice.get("/api/v1/posts?locationId=locations/111"))
    await forget_calls(emulator)
    await browser.open(PATH)
    await browser.send("/account/delete", email="Alice@Example.com ")
    assert "Your account is deleted" in browser.page.text
    assert COOKIE not in browser.http.cookies
    await browser.open("/dashboard")
    assert browser.answer.url.path == "/dashboard/sign-in"
    await delivered(services)
    folder = services.settings.data_dir / "mail"
    last = [path.read_text() for path in folder.iterdir() if "Your account is deleted" in path.read_text()]
    assert [f"To: {ALICE}" in text for text in last] == [True]
    await deletion.run_once(services)
    await logins.revoke_due(services)
    assert "/revoke" in [call["path"] for call in await calls(emulator)]
    clock.advance(minutes=16)
    await deletion.run_once(services)
    left = await everything(services)
    for text in (
        "alice",
        "Alice",
        "Harbour Coffee",
        "Roy Bakery",
        "dana@example.com",
        "locations/111",
        plugin.key["client_id"],
    ):
        assert [line for line in left.splitlines() if text in line] == [], text
    assert "user.deleted" in left
    mails = len(list(folder.iterdir()))
    clock.advance(days=2)
    await delivered(services)
    assert len(list(folder.iterdir())) == mails
    await bob.open("/dashboard")
    assert "Bob" in bob.answer.text


async def test_the_person_is_refused_as_before_the_first_link(alice_there: Browser, visitor: Browser) -> None:
    await alice_there.open(PATH)
    await alice_there.send("/account/delete", email=ALICE)
    page = await visitor.open("/dashboard/sign-in")
    await visitor.open(next(link for link in page.links if "/sign-in/start" in link))
    assert "Alice" not in visitor.answer.text
    assert "Bob" in visitor.answer.text


@ON_ONE_DATABASE
@pytest.mark.in_process("reads the files of the database")
async def test_the_files_of_sqlite_have_no_bytes_of_a_deleted_account(
    browser: Browser, alice: httpx.AsyncClient, services: Services, clock: FrozenClock
) -> None:
    """Neither in free pages nor in the log, which a copy of the disk has."""
    hook = "https://hooks.harbour.example/a-path-of-alice"
    assert_ok(await alice.post("/api/v1/webhooks", json={"url": hook, "description": "x" * 200}), 201)
    assert_ok(await alice.post("/api/v1/alerts", json={"address": ALICE}), 201)
    folder = services.settings.data_dir
    written = (ALICE.encode(), hook.encode())
    assert all(bytes_in(folder, text) for text in written)
    await browser.open(PATH)
    await browser.send("/account/delete", email=ALICE)
    await delivered(services)
    await deletion.run_once(services)
    clock.advance(minutes=16)
    await deletion.run_once(services)
    assert [text for text in written if bytes_in(folder, text)] == []


def bytes_in(folder: Path, text: bytes) -> int:
    """Count a text in the files of the service's database."""
    return sum(path.read_bytes().lower().count(text) for path in folder.glob("profilesvc.db*"))
