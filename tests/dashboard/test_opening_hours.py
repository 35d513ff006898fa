"""The hours of a profile as people write them: the next day is named, and hours that look swapped are confirmed."""

from datetime import date
from typing import Any

import httpx
import pytest

from profilesvc.dashboard.profile.form import ProfileForm
from support.api import Site, assert_ok
from support.browser.dashboard import Browser
from support.provider.drive import calls, forget_calls

PROFILE = "/dashboard/sites/111/profile"
FRIDAY = "regularHours-FRIDAY"
WEEK = {"periods": [{"openDay": "MONDAY", "openTime": {"hours": 5}, "closeDay": "TUESDAY", "closeTime": {"hours": 1}}]}


@pytest.fixture(autouse=True)
async def synced(plugin: Site, emulator: httpx.AsyncClient) -> None:
    assert_ok(await plugin.http.post("/api/v1/sync/111", json={"regularHours": WEEK}))
    await forget_calls(emulator)


async def bodies(emulator: httpx.AsyncClient) -> list[Any]:
    return [call["body"] for call in await calls(emulator, "PATCH")]


async def test_people_write_hours_in_their_own_way(alice_there: Browser, emulator: httpx.AsyncClient) -> None:
    await alice_there.open(PROFILE)
    days = {
        "regularHours-MONDAY": "closed",
        "regularHours-TUESDAY": "24 hours",
        "regularHours-WEDNESDAY": "9 bis 17 Uhr",
    }
    await alice_there.send("/profile", **days, **{FRIDAY: "9am-noon, 5pm-1am"})
    [body] = await bodies(emulator)
    assert body["regularHours"]["periods"] == [
        {"openDay": "TUESDAY", "openTime": {}, "closeDay": "TUESDAY", "closeTime": {"hours": 24}},
        {"openDay": "WEDNESDAY", "openTime": {"hours": 9}, "closeDay": "WEDNESDAY", "closeTime": {"hours": 17}},
        {"openDay": "FRIDAY", "openTime": {"hours": 9}, "closeDay": "FRIDAY", "closeTime": {"hours": 12}},
        {"openDay": "FRIDAY", "openTime": {"hours": 17}, "closeDay": "SATURDAY", "closeTime": {"hours": 1}},
    ]
    page = await alice_there.open(PROFILE)
    assert "17:00-01:00 closes on Saturday." in page.text


async def test_hours_that_look_swapped_are_confirmed(alice_there: Browser, emulator: httpx.AsyncClient) -> None:
    """Those of Monday are stored, so they need no confirmation."""
    page = await alice_there.open(PROFILE)
    assert "05:00-01:00 closes on Tuesday." in page.text
    assert "Yes, the long hours are right." not in page.text
    page = await alice_there.send("/profile", 400, **{FRIDAY: "17:00-09:00"})
    assert "Opening hours, Friday: is open for 16:00 hours. Correct the times, or confirm them" in page.text
    assert await bodies(emulator) == []
    await alice_there.send("/profile", long_hours="on")
    [body] = await bodies(emulator)
    assert body["regularHours"]["periods"][1]["closeDay"] == "SATURDAY"


@pytest.mark.parametrize("name", ["specialHours", "moreHours-DELIVERY-FRIDAY"])
async def test_other_hours_are_confirmed_too(alice_there: Browser, emulator: httpx.AsyncClient, name: str) -> None:
    text = "2026-12-24 17:00-09:00" if name == "specialHours" else "5pm-9am"
    await alice_there.open(PROFILE)
    await alice_there.send("/profile", 400, **{name: text})
    assert f'href="#{name}"' in alice_there.answer.text
    await alice_there.send("/profile", long_hours="on")
    assert len(await bodies(emulator)) == 1


@pytest.mark.parametrize(
    ("sent", "name", "problem"),
    [
        ({FRIDAY: "22-2", "regularHours-SATURDAY": "1-9"}, "regularHours-SATURDAY", "must not have times that overlap"),
        ({"regularHours-SUNDAY": "22-7", "regularHours-MONDAY": "6-12"}, "regularHours-SUNDAY", "overlap"),
        ({FRIDAY: "9-13, 12-18"}, FRIDAY, "must not have times that overlap"),
        ({"specialHours": "2026-12-24 closed\n2026-12-24 9-12"}, "specialHours", "must not have times that overlap"),
        ({"specialHours": "2027-02-30 closed"}, "specialHours", "must have dates that exist, with their year"),
        ({"specialHours": "2026-12-24 18-14"}, "specialHours", "must close at 11:59 or earlier on the next day"),
        ({"openingDate": "2027-02-30"}, "openingDate", "must be a date that exists"),
    ],
)
async def test_a_rule_is_shown_next_to_its_input(
    alice_there: Browser, emulator: httpx.AsyncClient, sent: dict[str, str], name: str, problem: str
) -> None:
    await alice_there.open(PROFILE)
    page = await alice_there.send("/profile", 400, **sent)
    assert problem in page.text
    assert f'href="#{name}"' in alice_there.answer.text
    assert await bodies(emulator) == []


async def test_stored_hours_that_overlap_can_be_corrected() -> None:
    """Stored hours that no text can express are only shown."""
    monday = {"openDay": "MONDAY", "closeDay": "MONDAY", "closeTime": {"hours": 17}}
    two = [{**monday, "openTime": {"hours": 9}}, {**monday, "openTime": {"hours": 12}}]
    stored = {
        "moreHours": [{"hoursTypeId": "DELIVERY", "periods": two}],
        "regularHours": {"periods": [{**monday, "openTime": {"hours": 18}}]},
        "specialHours": {"specialHourPeriods": [{}]},
    }
    form = ProfileForm(stored, None)
    assert form.inputs["moreHours-DELIVERY-MONDAY"] == "09:00-17:00, 12:00-17:00"
    assert set(form.readable()) == {"regularHours", "specialHours"}
    form.fill({**form.edit.digests(), **form.inputs, "title": "Pier"})
    assert form.changed(date(2026, 1, 2)) == {"title": "Pier"}
    form = ProfileForm(stored, None)
    form.fill({**form.edit.digests(), **form.inputs, "moreHours-DELIVERY-MONDAY": "9-12, 12-17"})
    assert [one["openTime"] for one in form.changed(date(2026, 1, 2))["moreHours"][0]["periods"]] == [
        {"hours": 9},
        {"hours": 12},
    ]
