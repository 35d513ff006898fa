"""The audit trail of the account, and files for spreadsheets."""

import csv
import io

import httpx
import pytest

from conftest import ON_ONE_DATABASE, AsService
from profilesvc.dashboard.exports import cell
from profilesvc.domain.time import FrozenClock
from profilesvc.services.context import Services
from support.api import BOB, Site
from support.browser.dashboard import Browser, SignIn, as_agency

WRONG = {"grant_type": "client_credentials", "client_secret": "A" * 64}


async def refused(http: httpx.AsyncClient, site: Site) -> None:
    answer = await http.post("/api/v1/auth/token", json={**WRONG, "client_id": site.key["client_id"]})
    assert answer.status_code == 401


async def table(browser: Browser, path: str) -> list[dict[str, str]]:
    answer = await browser.http.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"].startswith('attachment; filename="')
    assert answer.headers["cache-control"] == "no-store"
    return list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"))))


async def test_the_trail_has_the_times_of_the_events(
    alice_there: Browser, as_service: AsService, http: httpx.AsyncClient, clock: FrozenClock
) -> None:
    """The events of an hour are one row, which has the time of the first and not that of the hour."""
    clock.advance(minutes=15)
    site = await as_service(name="Late")  # at 03:19
    for minutes in (1, 20):
        clock.advance(minutes=minutes)
        await refused(http, site)
    page = await alice_there.open("/dashboard/audit")
    assert "2026-01-02 03:20 UTC Wrong secret, 2 times, last 2026-01-02 03:40 UTC" in page.text.replace(" ,", ",")
    assert page.text.index("Wrong secret") < page.text.index("Key created")
    assert "03:00" not in page.text
    row = next(row for row in await table(alice_there, "/dashboard/audit.csv") if row["Event"] == "Wrong secret")
    assert (row["Time"], row["Last time"]) == ("2026-01-02T03:20:05.678Z", "2026-01-02T03:40:05.678Z")
    assert (row["Times"], row["Key"], row["Site"]) == ("2", "Late", "Harbour Coffee, Pier")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {"One", "Two"}),
        ("key=one", {"One"}),
        ("site=pier", {"One"}),
        ("site=no+such+site", set()),
        ("kind=keys", {"One", "Two"}),
        ("kind=secrets", {"Two"}),
        ("kind=webhooks", set()),
        ("kind=evil&key=%00two", set()),
        ("from=2026-01-03", {"Two"}),
        ("to=2026-01-02", {"One"}),
        ("to=2026-01-03&from=2026-01-02", {"One", "Two"}),
        ("from=2026-01-03&zone=Asia/Tokyo", {"Two"}),
        ("to=2026-01-02&zone=Pacific/Kiritimati", {"One"}),
        ("from=2026-01-04&zone=../evil", set()),
        ("from=tomorrow&to=9999-12-31", {"One", "Two"}),
    ],
)
async def test_events_are_found_by_kind_key_site_and_time(
    alice_there: Browser,
    as_service: AsService,
    http: httpx.AsyncClient,
    clock: FrozenClock,
    query: str,
    found: set[str],
) -> None:
    await as_service(name="One")
    clock.advance(hours=24)
    await refused(http, await as_service("locations/112", name="Two"))
    await alice_there.open(f"/dashboard/audit?{query}")
    rows = alice_there.answer.text.partition("<tbody>")[2]
    assert {name for name in ("One", "Two") if f">{name}</a>" in rows} == found
    names = {row["Key"] for row in await table(alice_there, f"/dashboard/audit.csv?{query}")}
    assert names - {""} == found
    assert ("No event matches." in alice_there.page.text) is (not rows)


async def test_older_events_are_on_further_pages(alice_there: Browser, services: Services) -> None:
    await as_agency(alice_there, services, 30)  # with 150 events
    seen = 0
    path: str | None = "/dashboard/audit?kind=tokens"
    while path is not None:
        page = await alice_there.open(path)
        seen += alice_there.answer.text.count('data-label="What"')
        assert alice_there.answer.text.count("Token issued") == alice_there.answer.text.count('data-label="What"')
        path = next((link for link in page.links if "before=" in link), None)
        assert path is None or "kind=tokens" in path
    assert seen == 120
    assert len(await table(alice_there, "/dashboard/audit.csv?kind=tokens")) == 120
    await alice_there.open("/dashboard/audit?before=evil", 400)


async def test_another_users_events_are_not_shown(
    alice_there: Browser, signed_in: SignIn, plugin: Site, as_service: AsService
) -> None:
    bob = await signed_in(BOB)
    for path in ("/dashboard/audit", f"/dashboard/audit?key={plugin.key['client_id']}"):
        await bob.open(path)
        assert plugin.key["client_id"] not in bob.answer.text.partition("<table")[2]
    for name in ("audit", "keys", "sites"):
        text = (await bob.http.get(f"/dashboard/{name}.csv")).text
        assert plugin.key["client_id"] not in text
        assert "Harbour" not in text


async def test_sites_and_keys_are_files(alice_there: Browser, plugin: Site) -> None:
    rows = await table(alice_there, "/dashboard/sites.csv")
    assert len(rows) == 5
    mine = next(row for row in rows if row["Location"] == "locations/111")
    assert (mine["Name"], mine["State"], mine["Sync"]) == ("Harbour Coffee, Pier", "Offline", "on")
    assert len(await table(alice_there, "/dashboard/sites.csv?q=pier")) == 1
    keys = await table(alice_there, "/dashboard/keys.csv")
    assert [row["Client id"] for row in keys] == [plugin.key["client_id"]]
    assert plugin.credentials["client_secret"] not in str(keys)
    assert await table(alice_there, "/dashboard/keys.csv?state=revoked") == []


async def test_a_file_needs_a_session(visitor: Browser) -> None:
    for name in ("audit", "keys", "sites"):
        answer = await visitor.http.get(f"/dashboard/{name}.csv")
        assert (answer.status_code, answer.text) == (303, "")


@pytest.mark.parametrize("gap", ["", " ", '"', "\N{NO-BREAK SPACE}"])
@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\N{FULLWIDTH EQUALS SIGN}"])
@pytest.mark.parametrize("separator", [";", "\t", "\n"])
def test_formulas_stay_text_where_another_character_separates_cells(separator: str, sign: str, gap: str) -> None:
    assert cell(f"a{separator}{gap}{sign}1") == f"a{separator}{gap}'{sign}1"
    assert cell(f"a{separator}b{sign}1") == f"a{separator}b{sign}1"


def test_no_cell_of_a_file_that_is_read_by_semicolons_is_a_formula() -> None:
    text = io.StringIO()
    csv.writer(text).writerow([cell(value) for value in ("a;=1", 'b;"=1', ";;@x", "=1;+1", "c;\n=1")])
    for row in csv.reader(io.StringIO(text.getvalue()), delimiter=";"):
        assert not any(found.lstrip().startswith(("=", "+", "@")) for found in row)


@ON_ONE_DATABASE
async def test_a_name_that_changes_the_direction_of_text_does_not_turn_a_page_over(
    alice_there: Browser, as_service: AsService
) -> None:
    made = await as_service(name="Plugin \u202egnp.exe")
    page = await alice_there.open("/dashboard/keys")
    assert "Plugin gnp.exe" in page.text
    assert "\u202e" not in alice_there.answer.text
    assert (await table(alice_there, "/dashboard/keys.csv"))[0]["Name"] == "Plugin gnp.exe"
    page = await alice_there.open(f"/dashboard/keys/{made.key['client_id']}")
    assert page.form("/change")["fields"]["name"] == ["Plugin \u202egnp.exe"]  # as it is stored
    assert "\u202e" not in page.text


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t1", "\r1", "  =1", "\N{FULLWIDTH EQUALS SIGN}1"])
@ON_ONE_DATABASE
async def test_formulas_stay_text(alice_there: Browser, as_service: AsService, text: str) -> None:
    assert cell(text) == f"'{text}"
    if text.isprintable() and text == text.strip():
        await as_service(name=text)
        assert (await table(alice_there, "/dashboard/keys.csv"))[0]["Name"] == f"'{text}"
    assert cell("a=1") == "a=1"
    assert cell(-1) == -1
