"""Opening hours over HTTP: wrong ones are refused with the field and the rule, and what is stored can be read."""

from typing import Any

import httpx
import pytest

from profilesvc.contract.json import JsonObject
from support.api import assert_error, assert_ok
from support.provider.drive import calls, document, drift
from support.provider.rig import LOGIN
from support.syncs import COMPARISON, PIER, SYNC

NINE, FIVE = {"hours": 9}, {"hours": 17}
EVE = {"year": 2026, "month": 12, "day": 24}


def week(*periods: tuple[str, JsonObject, str, JsonObject]) -> JsonObject:
    names = ("openDay", "openTime", "closeDay", "closeTime")
    return {"regularHours": {"periods": [dict(zip(names, one, strict=True)) for one in periods]}}


def special(**one: Any) -> JsonObject:
    return {"specialHours": {"specialHourPeriods": [{"startDate": EVE, **one}]}}


FRIDAY = ("FRIDAY", FIVE, "FRIDAY", {"hours": 1})
OVERLAPPING = [("MONDAY", NINE, "MONDAY", FIVE), ("MONDAY", {"hours": 12}, "MONDAY", {"hours": 20})]
WRONG: list[tuple[JsonObject, str, str, str]] = [
    (week(FRIDAY), "regularHours.periods.0.closeTime", "must be after openTime", "INVALID_TIME_SCHEDULE"),
    (week(*OVERLAPPING), "regularHours.periods.1", "must not overlap", "INVALID_TIME_SCHEDULE"),
    (special(openTime=NINE), "specialHours.specialHourPeriods.0.closeTime", "is required", "INVALID_HOURS_VALUE"),
    (
        special(openTime=NINE, closeTime=NINE, endDate={**EVE, "day": 28}),
        "specialHours.specialHourPeriods.0.endDate",
        "must be startDate or the day after it",
        "INVALID_TIME_SCHEDULE",
    ),
    (
        special(startDate={"year": 2027, "month": 2, "day": 30}, closed=True),
        "specialHours.specialHourPeriods.0.startDate",
        "must be a date that exists",
        "INVALID_HOURS_VALUE",
    ),
    (
        special(startDate={"month": 12, "day": 24}, closed=True),
        "specialHours.specialHourPeriods.0.startDate",
        "must have a year",
        "INVALID_HOURS_VALUE",
    ),
    (
        {"specialHours": {"specialHourPeriods": [{"startDate": EVE, "closed": True}] * 2}},
        "specialHours.specialHourPeriods.1",
        "must not overlap",
        "OVERLAPPED_SPECIAL_HOURS",
    ),
]


@pytest.mark.parametrize(("body", "field", "rule", "reason"), WRONG)
async def test_the_api_the_preview_and_the_strict_emulator_refuse(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, body: JsonObject, field: str, rule: str, reason: str
) -> None:
    await drift(emulator, switches={"strict": True})
    before = await document(emulator, PIER)
    for query in ({}, {"validateOnly": "true"}):
        details = assert_error(await alice.post(f"{SYNC}/111", params=query, json=body), 400, "VALIDATION_ERROR")
        ((name, problem),) = [(one["field"], one["problem"]) for one in details["errors"]]
        assert name == field
        assert rule in problem
    assert await calls(emulator) == []
    (mask,) = body
    token = (await emulator.post("/token", data=LOGIN)).json()["access_token"]
    emulator.headers["Authorization"] = f"Bearer {token}"
    answer = await emulator.patch(f"/v1/{PIER}", params={"updateMask": mask}, json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["details"][0]["reason"] == reason
    assert await document(emulator, PIER) == before
    await drift(emulator, switches={"strict": False})
    assert (await emulator.patch(f"/v1/{PIER}", params={"updateMask": mask}, json=body)).status_code == 200


STORED = [
    *(body for body, *_ in WRONG),
    week(("MONDAY", {"hours": 30}, "MONDAY", {"minutes": 99})),
    {"regularHours": {"periods": [{}]}},
    {"specialHours": {"specialHourPeriods": [{}]}},
    {"moreHours": [{}, {"hoursTypeId": "DELIVERY", "periods": [{"openDay": "MONDAY"}]}]},
    {"openInfo": {"openingDate": {"month": 13}}},
]


@pytest.mark.parametrize("stored", STORED)
async def test_stored_hours_stay_readable(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, stored: JsonObject
) -> None:
    """Hours that another client has written do not block an edit of another field either."""
    hours = {"regularHours": week(("MONDAY", NINE, "MONDAY", FIVE))["regularHours"]}
    assert_ok(await alice.post(f"{SYNC}/111", json=hours))
    await drift(emulator, locations={PIER: stored}, switches={"strict": True})
    assert_ok(await alice.get("/api/v1/external-business/locations/111"))
    assert_ok(await alice.get(f"{COMPARISON}/111"))
    assert_ok(await alice.post(f"{SYNC}/111", params={"validateOnly": "true"}, json={"title": "Pier"}))
    assert_ok(await alice.post(f"{SYNC}/111", json={"title": "Pier"}))
