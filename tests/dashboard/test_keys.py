"""Keys: made, shown once, rolled, paused, revoked; by forms, without a script."""

import re
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
from sqlalchemy import insert, select, update

from conftest import ON_ONE_DATABASE, AsService
from profilesvc.contract.keys import KeyChange, KeyCreate
from profilesvc.dashboard.words import problems
from profilesvc.domain.time import FrozenClock
from profilesvc.operations import operator
from profilesvc.services import keys
from profilesvc.services.context import Services
from profilesvc.storage import tables
from support.api import ALICE, BOB, assert_ok
from support.browser.dashboard import Browser, SignIn, as_agency
from support.browser.key_pages import made, secret_of, shown_problems, token_of


async def test_a_key_is_made_and_its_secret_shown_once(alice_there: Browser, http: httpx.AsyncClient) -> None:
    pair = await made(alice_there, primary_domain="harbour.example")
    assert alice_there.answer.headers["cache-control"] == "no-store"
    assert "cannot be shown again" in alice_there.page.text
    granted = assert_ok(await token_of(http, pair))
    assert granted["permissions"] == ["business.read", "business.write"]
    for path in ("/dashboard", "/dashboard/keys", f"/dashboard/keys/{pair['client_id']}"):
        await alice_there.open(path)
        assert pair["client_secret"] not in alice_there.answer.text
    assert "Key created" in alice_there.page.text
    assert "Token issued" in alice_there.page.text


async def test_the_form_accepts_fewer_permissions_and_an_expiry(alice_there: Browser, http: httpx.AsyncClient) -> None:
    pair = await made(alice_there, permissions="business.read", expires_on="2026-02-01")
    assert assert_ok(await token_of(http, pair))["permissions"] == ["business.read"]
    await alice_there.open(f"/dashboard/keys/{pair['client_id']}")
    assert "2026-02-01" in alice_there.page.text


async def test_a_form_that_is_sent_again_leads_to_its_key(alice_there: Browser) -> None:
    page = await alice_there.open("/dashboard/keys")
    await alice_there.send("/keys", name="Once")
    pair = secret_of(alice_there)
    for name in ("Once", "Changed after Back"):
        alice_there.page = page
        await alice_there.send("/keys", name=name)
        assert alice_there.answer.url.path == f"/dashboard/keys/{pair['client_id']}"
        assert "This form has created this key before." in alice_there.page.text
        assert pair["client_secret"] not in alice_there.answer.text
    page = await alice_there.open("/dashboard/keys")
    assert page.text.count("Once") == 1
    await alice_there.send("/keys", name="Another")
    assert secret_of(alice_there)["client_id"] != pair["client_id"]


async def test_a_key_form_that_failed_may_be_corrected(alice_there: Browser) -> None:
    await alice_there.open("/dashboard/keys")
    await alice_there.send("/keys", 404, name="Typed", location="locations/211")
    await alice_there.send("/keys", 400, name=" ", location="locations/111")
    await alice_there.send("/keys", name="Corrected")
    assert secret_of(alice_there)["client_secret"]


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"name": " "}, 400, "Name: must have 1 to 100 characters"),
        ({"primary_domain": "not a domain"}, 400, "Domain of the site:"),
        ({"permissions": None}, 400, "Permissions:"),
        ({"location": "locations/211"}, 404, "There is no such business or location."),
        ({"location": "../111"}, 400, "Location:"),
        ({"expires_on": "2020-01-01"}, 400, "Valid until: must be in the future"),
    ],
)
@ON_ONE_DATABASE
async def test_an_error_is_shown_in_the_form_with_the_users_input(
    alice_there: Browser, changes: dict[str, Any], status: int, said: str
) -> None:
    await alice_there.open("/dashboard/keys")
    await alice_there.send("/keys", status, **{"name": "Typed", "allowed_domains": "typed.example", **changes})
    assert said in alice_there.page.text
    assert alice_there.page.form("/keys")["fields"]["allowed_domains"] == ["typed.example"]


async def test_locations_that_cannot_be_chosen_show_the_reason(alice_there: Browser, services: Services) -> None:
    assert "beyond" not in (await alice_there.open("/dashboard/keys")).text
    await operator.assign_plan(services, ALICE, "starter")
    page = await alice_there.open("/dashboard/keys")
    assert page.text.count("beyond the locations of the plan Starter") == 4
    assert page.form("/keys")["fields"]["location"] == ["locations/111"]


async def test_a_roll_shows_the_new_secret_once(alice_there: Browser, http: httpx.AsyncClient) -> None:
    pair = await made(alice_there)
    await alice_there.open(f"/dashboard/keys/{pair['client_id']}")
    await alice_there.send("/roll", overlap_seconds="3600")
    rolled = secret_of(alice_there)
    assert rolled["client_secret"] != pair["client_secret"]
    for good in (pair, rolled):
        assert_ok(await token_of(http, good))
    await alice_there.open(f"/dashboard/keys/{pair['client_id']}")
    await alice_there.send("/roll", 409)
    assert "still valid" in alice_there.page.text
    await alice_there.open(f"/dashboard/keys/{pair['client_id']}")
    await alice_there.send("/roll", overlap_seconds="0", sure="on")
    assert (await token_of(http, pair)).status_code == 401


async def test_a_key_is_deactivated_and_reactivated(alice_there: Browser, http: httpx.AsyncClient) -> None:
    pair = await made(alice_there)
    await alice_there.open(f"/dashboard/keys/{pair['client_id']}")
    await alice_there.send("/deactivate", sure="on")
    assert "You deactivated the key." in alice_there.page.text
    refused = (await token_of(http, pair)).json()["error"]
    assert refused["details"]["deactivation_reason"] == "user_requested"
    await alice_there.open("/dashboard")
    assert "You deactivated the key." in alice_there.page.text
    await alice_there.open(f"/dashboard/keys/{pair['client_id']}")
    await alice_there.send("/reactivate")
    assert_ok(await token_of(http, pair))


async def test_a_key_is_revoked_after_a_confirmation(alice_there: Browser, http: httpx.AsyncClient) -> None:
    pair = await made(alice_there)
    page = await alice_there.open(f"/dashboard/keys/{pair['client_id']}")
    assert not any(form["action"].endswith("/revoke") for form in page.forms)
    await alice_there.open(next(link for link in page.links if link.endswith("/revoke")))
    await alice_there.send("/revoke")
    assert (await token_of(http, pair)).status_code == 401
    assert pair["client_id"] not in alice_there.answer.text
    await alice_there.open("/dashboard/keys?state=all")
    assert pair["client_id"] in alice_there.answer.text
    await alice_there.open(f"/dashboard/keys/{pair['client_id']}")
    assert "Revoked" in alice_there.page.text


async def badge_of(browser: Browser, client_id: str) -> str:
    await browser.open(f"/dashboard/keys/{client_id}")
    await browser.send("/badge", sure="on")
    fields = next(form["fields"] for form in browser.page.forms if "svg" in form["fields"])
    return str(fields["svg"][0]).removesuffix(".svg")


async def test_a_badge_shows_name_and_state_to_anyone_with_the_link(
    alice_there: Browser, http: httpx.AsyncClient, as_service: AsService
) -> None:
    site = await as_service(name="<b>Site</b>")
    link = await badge_of(alice_there, site.key["client_id"])
    assert (await http.get(f"{link}.json")).json()["message"] == "Offline"
    assert_ok(await site.http.post("/api/v1/api-keys/heartbeat", json={}))
    told = (await http.get(f"{link}.json")).json()
    assert set(told) == {"schemaVersion", "label", "message", "color", "name", "state", "last_heartbeat_at"}
    assert (told["state"], told["last_heartbeat_at"]) == ("online", "2026-01-02T03:04:05.678Z")
    picture = await http.get(f"{link}.svg")
    assert picture.headers["content-type"] == "image/svg+xml"
    assert "Online" in picture.text
    assert "<b>" not in picture.text
    assert (await http.get(link)).status_code == 404
    assert (await http.get("/dashboard/badge/nobody.svg")).status_code == 404


async def test_a_badge_is_xml_whatever_the_name_is(
    alice_there: Browser, http: httpx.AsyncClient, as_service: AsService
) -> None:
    site = await as_service(name="a\x01\x1b\x7f\ufffe\uffff&<\t🙂")
    link = await badge_of(alice_there, site.key["client_id"])
    picture = ElementTree.fromstring((await http.get(f"{link}.svg")).content)
    assert picture.findtext("{http://www.w3.org/2000/svg}title") == "a\ufffd\ufffd\x7f\ufffd\ufffd&<\t🙂: Offline"


async def test_a_badge_ends_with_its_switch_its_link_and_its_key(alice_there: Browser, http: httpx.AsyncClient) -> None:
    pair = await made(alice_there)
    first = await badge_of(alice_there, pair["client_id"])
    second = await badge_of(alice_there, pair["client_id"])
    assert [(await http.get(f"{link}.svg")).status_code for link in (first, second)] == [404, 200]
    await alice_there.open(f"/dashboard/keys/{pair['client_id']}")
    assert second not in alice_there.answer.text
    await alice_there.send("/badge", shown="off", sure="on")
    assert (await http.get(f"{second}.svg")).status_code == 404
    third = await badge_of(alice_there, pair["client_id"])
    await alice_there.open(f"/dashboard/keys/{pair['client_id']}/revoke")
    await alice_there.send("/revoke")
    assert (await http.get(f"{third}.svg")).status_code == 404


async def test_another_users_key_is_neither_shown_nor_changed(
    alice_there: Browser, signed_in: SignIn, http: httpx.AsyncClient
) -> None:
    pair = await made(alice_there)
    bob = await signed_in(BOB)
    client_id = pair["client_id"]
    for path in (f"/dashboard/keys/{client_id}", f"/dashboard/keys/{client_id}/revoke"):
        await bob.open(path, 404)
    await bob.open("/dashboard")
    csrf = bob.page.form("/sign-out")["fields"]["csrf"][0]
    for action in ("roll", "deactivate", "reactivate", "revoke", "badge"):
        form = {"csrf": csrf, "overlap_seconds": "0", "shown": "on"}
        answer = await bob.http.post(f"/dashboard/keys/{client_id}/{action}", data=form)
        assert answer.status_code == 404, action
        assert "no such API key" in answer.text
    assert_ok(await token_of(http, pair))
    assert ALICE not in bob.answer.text


async def test_wrong_secrets_are_listed_in_order_of_time(
    alice_there: Browser, http: httpx.AsyncClient, clock: FrozenClock
) -> None:
    pair = await made(alice_there)  # at 03:04
    for minutes in (2, 3):
        clock.advance(minutes=minutes)
        assert (await token_of(http, {**pair, "client_secret": "A" * 64})).status_code == 401
    await alice_there.open(f"/dashboard/keys/{pair['client_id']}")
    text = alice_there.page.text
    assert "2026-01-02 03:06 UTC Wrong secret , 2 times, last 2026-01-02 03:09 UTC" in text.replace(
        "secret,", "secret ,"
    )
    assert text.index("Wrong secret") < text.index("Key created")


async def test_all_problems_of_a_form_are_shown_at_the_top_and_at_their_fields(
    alice_there: Browser,
) -> None:
    assert shown_problems(alice_there) == []
    await alice_there.open("/dashboard/keys")
    bad = {"name": " ", "primary_domain": "not a domain", "allowed_domains": "good.example b_c", "permissions": None}
    await alice_there.send("/keys", 400, **bad, location="../111", expires_on="2020-01-01")
    fields = [text.partition(":")[0] for text in shown_problems(alice_there)]
    labels = ["Name", "Location", "Domain of the site", "Additional domains", "Permissions", "Valid until"]
    assert fields == labels
    html = alice_there.answer.text
    assert html.index('id="problems"') < html.index("<h1>")
    assert "<title>Error: " in html
    summary = html.partition('id="problems"')[2].partition(">")[0]
    assert {"autofocus", 'tabindex="-1"', 'role="alert"'} <= set(summary.split())
    await alice_there.send("/keys", 400, **bad, expires_on="tomorrow")
    assert "Valid until: must be a date such as 2027-01-02" in shown_problems(alice_there)
    await alice_there.send(
        "/keys", name="Right", allowed_domains="", primary_domain="", expires_on="", permissions="business.read"
    )


@pytest.mark.parametrize("action", ["deactivate", "roll", "badge"])
@ON_ONE_DATABASE
async def test_irreversible_actions_need_a_confirmation(
    alice_there: Browser, http: httpx.AsyncClient, action: str
) -> None:
    pair = await made(alice_there)
    badge = await badge_of(alice_there, pair["client_id"])
    await alice_there.open(f"/dashboard/keys/{pair['client_id']}")
    form = {"overlap_seconds": "0", "shown": "off"}
    await alice_there.send(f"/{action}", 400, **form)
    assert shown_problems(alice_there) == ["Confirmation: tick the box to confirm"]
    assert "<h1>Website</h1>" in alice_there.answer.text
    assert_ok(await token_of(http, pair))
    assert (await http.get(f"{badge}.svg")).status_code == 200
    await alice_there.send(f"/{action}", **form, sure="on")


async def test_a_rejected_action_shows_the_page_again(alice_there: Browser) -> None:
    pair = await made(alice_there)
    for status in (200, 409):
        await alice_there.open(f"/dashboard/keys/{pair['client_id']}")
        await alice_there.send("/roll", status, overlap_seconds="3600")
    assert len(shown_problems(alice_there)) == 1
    assert "History When What" in alice_there.page.text


async def test_without_a_script_there_are_no_buttons_that_need_one(alice_there: Browser) -> None:
    await made(alice_there)
    buttons = re.findall(r"<button[^>]*data-copy[^>]*>", alice_there.answer.text)
    assert len(buttons) == 2
    assert all(" hidden" in button for button in buttons)
    style = (await alice_there.http.get("/dashboard/static/dashboard.css")).text
    assert "[hidden] { display: none !important; }" in style  # or `.plain` would show them


@pytest.fixture
async def agency(alice_there: Browser, services: Services) -> Browser:
    """Somebody with 60 sites and their keys."""
    await as_agency(alice_there, services, 60)
    return alice_there


async def test_many_keys_are_found_by_search_filter_and_order(agency: Browser, services: Services) -> None:
    page = await agency.open("/dashboard/keys")
    assert "1 to 50 of 60" in page.text
    numbers = [int(text) for text in re.findall(r"Site (\d+)", page.text)]
    assert numbers == sorted(numbers, reverse=True)
    assert "51 to 60 of 60" in (await agency.open("/dashboard/keys?page=2")).text
    one = numbers[20]
    for query, found in ((f"q=site+{one}", [one]), (f"q=SHOP+{one}", [one]), ("state=unused", []), ("q=evil", [])):
        page = await agency.open(f"/dashboard/keys?{query}")
        assert [int(text) for text in re.findall(r"Site (\d+)", page.text)] == found
        assert ("No key matches." in page.text) is (not found)
    await agency.open(f"/dashboard/keys?q=site+{one}")
    client_id = re.findall(r"keys/(svcid_[^\"]+)", agency.answer.text)[0]
    await keys.deactivate(services, client_id, "user_requested")
    page = await agency.open("/dashboard/keys/live?state=deactivated&sort=name")
    assert "1 to 1 of 1" in page.text
    assert "1 to 50 of 59" in (await agency.open("/dashboard/keys?state=active")).text


async def test_the_location_of_a_key_is_found_by_a_search(agency: Browser) -> None:
    page = await agency.open("/dashboard/keys")
    assert "<select" not in agency.answer.text.partition('id="create"')[2]
    fields = {"name": "Second", "primary_domain": "second.example"}
    page = await agency.send("POST /keys", **fields, find="shop 42", intent="find")
    form = page.form("POST /keys")["fields"]
    assert (form["name"], form["primary_domain"]) == (["Second"], ["second.example"])
    found = re.findall(r'name="location" value="([^"]+)"', agency.answer.text)
    assert len(found) == 1
    await agency.send("POST /keys", 400, **fields)
    assert "Location:" in agency.page.text
    assert shown_problems(agency)
    await agency.send("POST /keys", **fields, location=found[0], intent=None)
    assert secret_of(agency)["client_id"]
    await agency.open(f"/dashboard/keys?location={found[0].removeprefix('locations/')}")
    assert agency.page.form("POST /keys")["fields"]["location"] == found
    part = await agency.http.get("/dashboard/keys/locations?find=shop+4")
    assert part.text.count('type="radio"') == 10
    assert " more. Enter more of the name." in part.text


async def test_one_of_many_businesses_is_entered_by_its_name(agency: Browser, services: Services) -> None:
    owner = await as_owner_of_businesses(agency, services, 30)
    page = await agency.open("/dashboard/keys")
    assert "<select" not in agency.answer.text.partition('id="create"')[2]
    assert agency.answer.text.count('<option value="Branch ') == 30
    location = f"locations/{owner}"
    await agency.send("POST /keys", 400, name="Third", location=location, business_name="Branch", intent=None)
    assert "Business:" in agency.page.text
    assert shown_problems(agency)
    await agency.send("POST /keys", name="Third", location=location, business_name=" branch 7", intent=None)
    assert page.forms
    assert secret_of(agency)["client_id"]


async def as_owner_of_businesses(browser: Browser, services: Services, count: int) -> str:
    """Add businesses to the owner of the page, and take one location out of its business; return the location."""
    await browser.open("/dashboard?sort=name")
    bare = str(re.findall(r'id="card-(\d+)"', browser.answer.text)[0])
    async with services.storage.write() as session:
        place = tables.locations.c.name == f"locations/{bare}"
        owner = (await session.execute(select(tables.locations.c.owner_id).where(place))).scalar_one()
        rows = [{"owner_id": owner, "name": f"Branch {number}", "created_at": 0} for number in range(count)]
        await session.execute(insert(tables.businesses), rows)
        of_owner = (tables.locations.c.owner_id == owner, place)
        await session.execute(update(tables.locations).where(*of_owner).values(business_id=None, assigned_at=None))
    return bare


def test_each_field_of_a_key_has_a_label_on_the_form() -> None:
    """A problem of another field names the field as the API does, and is not translated."""
    fields = KeyCreate.model_fields.keys() | KeyChange.model_fields.keys()
    assert fields - problems.INPUTS.keys() == set(), "add these to INPUTS in dashboard/words/problems.py"
