"""The pages of connections: connect, import with search and select-all, disconnect, the banner; without a script."""

from typing import Any

import httpx
import pytest

from conftest import ON_ONE_DATABASE, AsUser
from profilesvc.settings import ProviderSettings, Settings
from support.api import BOB, assert_error, assert_ok
from support.browser.dashboard import Browser, SignIn
from support.browser.key_pages import shown_problems
from support.provider.consent import (
    BAKERY,
    CAFE,
    CONNECTIONS,
    DANA,
    LINKS,
    PAGE,
    SCOPES,
    SHOP,
    add_dana,
    connect,
    connected,
)
from support.provider.drive import drift, fail, heal

LINK = f"{PAGE}/link"
pytestmark = pytest.mark.in_process("the emulator's logins")


async def test_owner_connects_imports_and_disconnects_without_a_script(
    alice_there: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    page = await alice_there.open(PAGE)
    assert "not connected a login yet" in page.text
    assert f"{PAGE}/start" in page.links
    await connect(alice_there)
    page = await alice_there.open(PAGE)
    assert "dana@example.com Connected 0" in page.text
    page = await alice_there.open(
        next(link for link in page.links if link.startswith(f"{PAGE}/") and link[-1].isdigit())
    )
    assert page.text.index("Dana's Shop") < page.text.index("Roy Bakery") < page.text.index("Roy Cafe")
    page = await alice_there.open(f"{alice_there.answer.url.path}?search=roy&all")
    assert page.form("/import")["fields"]["locations"] == [BAKERY, CAFE]
    await alice_there.send("/import", business_name="Roy")
    assert "Imported: 2." in alice_there.page.text
    assert "Roy Bakery 1 Pier, Yokohama (imported)" in alice_there.page.text
    await alice_there.open("/dashboard")
    assert "Roy Bakery" in alice_there.page.text
    number = assert_ok(await alice.get(CONNECTIONS))["connections"][0]["id"]
    await alice_there.open(f"{PAGE}/{number}")
    await alice_there.send("/disconnect", 400)
    assert "tick the box" in alice_there.page.text
    await alice_there.send("/disconnect", sure="on")
    assert "not connected a login yet" in alice_there.page.text
    await alice_there.open("/dashboard")
    assert "Roy Bakery" not in alice_there.page.text


async def test_nothing_is_imported_without_a_choice(
    alice_there: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    number = await connected(alice_there, alice)
    await alice_there.open(f"{PAGE}/{number}")
    await alice_there.send("/import", 400)
    assert assert_ok(await alice.get(CONNECTIONS))["connections"][0]["locations"] == 0
    await alice_there.open(f"{PAGE}/{number}?search=nothing")
    assert "No location matches your search" in alice_there.page.text


async def test_rejected_import_stays_in_its_form(
    alice_there: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    number = await connected(alice_there, alice)
    await alice_there.open(f"{PAGE}/{number}")
    page = await alice_there.send("/import", 400, locations=[CAFE], business_id="11", business_name="x" * 201)
    assert shown_problems(alice_there) == ["New business: must have at most 200 characters"]
    fields = page.form("/import")["fields"]
    assert (fields["locations"], fields["business_id"], fields["business_name"]) == ([CAFE], ["11"], ["x" * 201])
    page = await alice_there.send("/import", 400, locations=None, business_name="Roy")
    assert page.form("/import")["fields"]["business_name"] == ["Roy"]


async def test_location_of_another_owner_cannot_be_chosen(
    alice_there: Browser, signed_in: SignIn, alice: httpx.AsyncClient, as_user: AsUser, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    number = await connected(alice_there, alice)
    assert_ok(await alice.post(f"{CONNECTIONS}/{number}/import", json={"locations": [BAKERY]}))
    bob = await signed_in(BOB)
    of_bob = await connected(bob, await as_user(BOB))
    page = await bob.open(f"{PAGE}/{of_bob}?all")
    assert "Roy Bakery 1 Pier, Yokohama (not available)" in page.text
    assert page.form("/import")["fields"]["locations"] == [SHOP, CAFE]
    for path in (f"{PAGE}/{number}", f"{PAGE}/999", f"{PAGE}/x"):
        await bob.open(path, 404)
    csrf = page.form("/import")["fields"]["csrf"][0]
    for action in ("import", "disconnect"):
        form = {"csrf": csrf, "sure": "on", "locations": BAKERY}
        assert (await bob.http.post(f"{PAGE}/{number}/{action}", data=form)).status_code == 404
    await bob.open(f"{PAGE}/{of_bob}")
    page = await bob.send("/import", locations=[BAKERY, "locations/999"])
    assert "Imported: 0. locations/999: the login does not see it Roy Bakery: not available Locations" in page.text


async def test_banner_until_the_login_is_connected_again(
    alice_there: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    number = await connected(alice_there, alice)
    await drift(emulator, logins={DANA: {"email": "dana@example.com", "accounts": ["accounts/4"], "revoked": True}})
    page = await alice_there.open(f"{PAGE}/{number}")
    assert "The provider has ended this login" in page.text
    page = await alice_there.open("/dashboard")
    assert "The provider has ended the login dana@example.com" in page.text
    page = await alice_there.open(PAGE)
    assert "Ended by the provider Connect it again" in page.text
    assert "invalid_grant" in page.text
    await connect(alice_there)
    page = await alice_there.open("/dashboard")
    assert "has ended" not in page.text


async def test_page_is_shown_while_the_provider_is_down(
    alice_there: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    number = await connected(alice_there, alice)
    await fail(emulator, status=503)
    page = await alice_there.open(f"{PAGE}/{number}")
    assert "The locations are not available" in page.text
    await heal(emulator)


async def test_link_is_shown_once(alice_there: Browser, emulator: httpx.AsyncClient) -> None:
    await alice_there.open(PAGE)
    page = await alice_there.send("/links")
    assert f"{PAGE}/link/" in page.text
    page = await alice_there.open(PAGE)
    assert f"{PAGE}/link/" not in page.text


@pytest.mark.parametrize("link", ["x", "a%0D%0AX-Made%3A%20up", "%E8%AA%9E", "x%3Fy%23z"])
@ON_ONE_DATABASE
async def test_link_that_another_site_opens_leads_to_its_page(visitor: Browser, link: str) -> None:
    answer = await visitor.http.get(f"{LINK}/{link}/start", headers={"Sec-Fetch-Site": "cross-site"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"{LINK}/{link}")
    await visitor.open(f"{LINK}/{link}", 401)


@pytest.mark.parametrize("form", [{"granted": SCOPES[:2]}, {"decision": "deny"}])
async def test_refused_consent_is_a_page_with_advice(
    form: dict[str, Any], alice_there: Browser, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    answer = await connect(alice_there, **form)
    assert answer.status_code == 400
    assert answer.headers["content-type"].startswith("text/html")
    assert "Start again" in answer.text


class TestWithoutAnOAuthClient:
    """An installation of before: a login of its own at the provider, and no consent page."""

    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        origin = "http://127.0.0.1:9"
        login = {"client_id": "client", "client_secret": "secret", "refresh_token": "own"}
        provider = ProviderSettings.model_validate({"url": origin, "token_url": f"{origin}/token", **login})
        return settings.model_copy(update={"provider": provider})

    async def test_an_owner_reads_why_no_login_can_be_connected(
        self, alice_there: Browser, alice: httpx.AsyncClient
    ) -> None:
        page = await alice_there.open(PAGE)
        assert "Ask the operator of this service" in page.text
        assert f"{PAGE}/start" not in page.links
        assert not [form for form in page.forms if form["action"].endswith("/links")]
        page = await alice_there.open(f"{PAGE}/start", 503)
        assert "Ask the operator of this service" in page.text
        for path in (CONNECTIONS, LINKS):
            answer = await alice.post(path)
            assert "OAuth client" in answer.text
            assert_error(answer, 503, "SERVICE_UNAVAILABLE")
