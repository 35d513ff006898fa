"""The forms of a key that change its name and domains, and that end its previous secret."""

import httpx

from conftest import Change
from profilesvc.services.context import Services
from support.api import ALICE, BOB, assert_ok
from support.browser.dashboard import Browser, SignIn
from support.browser.key_pages import made, secret_of, shown_problems, token_of


async def test_name_and_domains_are_changed(alice_there: Browser) -> None:
    pair = await made(alice_there, primary_domain="harbour.example", allowed_domains="shop.example")
    page = await alice_there.open(f"/dashboard/keys/{pair['client_id']}")
    shown = page.form("/change")["fields"]
    assert (shown["primary_domain"], shown["allowed_domains"]) == (["harbour.example"], ["shop.example"])
    await alice_there.send("/change", name="Our <b>shop</b>", allowed_domains="Shop.example, blog.example")
    assert "<h1>Our &lt;b&gt;shop&lt;/b&gt;</h1>" in alice_there.answer.text
    assert "harbour.example, www.harbour.example, shop.example, blog.example" in alice_there.page.text
    assert "Key changed" in alice_there.page.text
    await alice_there.send("/change", primary_domain="", allowed_domains="")
    assert "Domains every site" in alice_there.page.text


async def test_the_problems_of_a_change_are_next_to_what_was_typed(alice_there: Browser) -> None:
    pair = await made(alice_there)
    await alice_there.open(f"/dashboard/keys/{pair['client_id']}")
    await alice_there.send("/change", 400, name=" ", primary_domain="b_c", allowed_domains="10.0.0.1 ok.example")
    labels = [text.partition(":")[0] for text in shown_problems(alice_there)]
    assert labels == ["Name", "Domain of the site", "Additional domains"]
    fields = alice_there.page.form("/change")["fields"]
    assert (fields["primary_domain"], fields["allowed_domains"]) == (["b_c"], ["10.0.0.1 ok.example"])


async def test_a_key_for_localhost_is_changed_in_production(
    alice_there: Browser, services: Services, change: Change
) -> None:
    pair = await made(alice_there, primary_domain="localhost", allowed_domains="shop.example")
    change(settings=services.settings.model_copy(update={"environment": "production"}))
    page = await alice_there.open(f"/dashboard/keys/{pair['client_id']}")
    shown = page.form("/change")["fields"]
    assert (shown["primary_domain"], shown["allowed_domains"]) == (["localhost"], ["shop.example"])
    await alice_there.send("/change", name="Our shop")
    assert "localhost, shop.example" in alice_there.page.text
    await alice_there.send("/change", primary_domain="harbour.example")
    assert "harbour.example, www.harbour.example, shop.example" in alice_there.page.text


async def test_the_previous_secret_is_shown_with_its_end_and_ends_now(
    alice_there: Browser, http: httpx.AsyncClient
) -> None:
    pair = await made(alice_there)
    path = f"/dashboard/keys/{pair['client_id']}"
    assert "Two secrets are valid" not in (await alice_there.open(path)).text
    await alice_there.send("/roll", overlap_seconds="3600")
    rolled = secret_of(alice_there)
    assert "The previous secret ends 2026-01-02 04:04 UTC" in (await alice_there.open(path)).text
    await alice_there.open(f"{path}/end-secret")
    assert_ok(await token_of(http, pair))
    await alice_there.send("/end-secret")
    assert "Two secrets are valid" not in alice_there.page.text
    assert "Previous secret ended" in alice_there.page.text
    assert (await token_of(http, pair)).status_code == 401
    assert_ok(await token_of(http, rolled))
    assert "has ended already" in (await alice_there.open(f"{path}/end-secret")).text


async def test_the_location_is_named_as_the_site(alice_there: Browser, services: Services) -> None:
    pair = await made(alice_there)
    assert "Location Harbour Coffee" in (await alice_there.open(f"/dashboard/keys/{pair['client_id']}")).text


async def test_another_user_changes_nothing(alice_there: Browser, signed_in: SignIn, http: httpx.AsyncClient) -> None:
    pair = await made(alice_there)
    await alice_there.open(f"/dashboard/keys/{pair['client_id']}")
    await alice_there.send("/roll", overlap_seconds="3600")
    bob = await signed_in(BOB)
    await bob.open(f"/dashboard/keys/{pair['client_id']}/end-secret", 404)
    await bob.open("/dashboard")
    csrf = bob.page.form("/sign-out")["fields"]["csrf"][0]
    for action in ("change", "end-secret"):
        form = {"csrf": csrf, "name": "Bob was here"}
        answer = await bob.http.post(f"/dashboard/keys/{pair['client_id']}/{action}", data=form)
        assert answer.status_code == 404, action
        assert ALICE not in answer.text
    assert_ok(await token_of(http, pair))
    assert "Bob was here" not in (await alice_there.open(f"/dashboard/keys/{pair['client_id']}")).text
