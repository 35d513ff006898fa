"""D-122: the provider's own spelling is no difference, no drift, and costs no edit."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from profilesvc.client import verdicts
from profilesvc.contract.sync import SyncComparison
from profilesvc.domain import meaning, profiles
from profilesvc.domain.time import FrozenClock
from profilesvc.emulator.rewriting import rewritten
from support.api import assert_ok
from support.provider.drive import calls, document, drift, forget_calls
from support.syncs import COMPARISON, PIER, SYNC

CASES = json.loads((Path(__file__).parents[2] / "data/fixtures/meaning_cases.json").read_text("utf-8"))
MONDAY = {"openDay": "MONDAY", "openTime": {"hours": 9}, "closeDay": "MONDAY", "closeTime": {"hours": 24}}
FRIDAY = {"openDay": "FRIDAY", "openTime": {"hours": 17}, "closeDay": "SATURDAY", "closeTime": {"hours": 1}}
EVE = {"year": 2026, "month": 12, "day": 24}
# Every kind of value, spelled as an owner may do.
PROFILE: dict[str, Any] = {
    "title": "Cafe\u0301 am Hafen ",
    "phoneNumbers": {"primaryPhone": "+81 45-555-0170", "additionalPhones": ["+81455550172", "+81 45 555 0171"]},
    "websiteUri": "HTTPS://Harbour.example",
    "profile": {"description": "First line\nsecond line\n"},
    "regularHours": {"periods": [FRIDAY, MONDAY]},
    "moreHours": [{"hoursTypeId": "TAKEOUT", "periods": [FRIDAY]}, {"hoursTypeId": "DELIVERY", "periods": [MONDAY]}],
    "specialHours": {
        "specialHourPeriods": [
            {"startDate": EVE, "openTime": {"hours": 9}, "closeTime": {"hours": 24}},
            {"startDate": {**EVE, "day": 26}, "closed": True},
        ]
    },
    "storefrontAddress": {"regionCode": "jp", "addressLines": [" 海岸通2丁目1"], "locality": "横浜市 "},
    "categories": {
        "primaryCategory": {"name": "categories/gcid:cafe"},
        "additionalCategories": [{"name": "categories/gcid:coffee_shop"}, {"name": "categories/gcid:bakery"}],
    },
    "labels": ["pier", "harbour"],
    "adWordsLocationExtensions": {"adPhone": "+81455550173"},
    "openInfo": {"status": "OPEN", "openingDate": {"year": 2020, "month": 5}},
    "storeCode": "H-1",
}


@pytest.mark.parametrize("field", PROFILE)
async def test_a_repeated_sync_spends_no_edit(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, field: str, clock: FrozenClock
) -> None:
    await drift(emulator, switches={"rewrites": True})
    body = {field: PROFILE[field]}
    assert assert_ok(await alice.post(f"{SYNC}/111", json=body))["fieldsUpdated"]
    stored = await document(emulator, PIER)
    await forget_calls(emulator)
    again = assert_ok(await alice.post(f"{SYNC}/111", json=body))
    assert again["fieldsUpdated"] == []
    compared = assert_ok(await alice.get(f"{COMPARISON}/111"))
    assert compared["differences"] == []
    assert compared["source"][field] == profiles.merge(compared["source"], body)[field], "stored as written"
    assert await calls(emulator, "PATCH") == []
    clock.advance(minutes=5)
    assert_ok(await alice.get("/api/v1/external-business/locations/111"))
    events = assert_ok(await alice.get("/api/v1/events"))["events"]
    assert [event for event in events if event["type"] == "profile.drifted"] == []
    assert stored == await document(emulator, PIER)


async def test_the_provider_spells_values_in_its_own_way(alice: httpx.AsyncClient, emulator: httpx.AsyncClient) -> None:
    await drift(emulator, switches={"rewrites": True})
    assert_ok(await alice.post(f"{SYNC}/111", json=PROFILE))
    stored = await document(emulator, PIER)
    assert stored["phoneNumbers"]["primaryPhone"] == "045-555-0170"
    assert stored["websiteUri"] == "https://harbour.example/"
    assert stored["profile"]["description"] == "First line\r\nsecond line"
    assert stored["labels"] == ["harbour", "pier"]
    assert [period["closeDay"] for period in stored["regularHours"]["periods"]] == ["TUESDAY", "SATURDAY"]
    unchanged = [path for path, value in profiles.leaves(PROFILE) if profiles.at(stored, path) == value]
    others = [
        "categories.primaryCategory",
        "openInfo.status",
        "openInfo.openingDate",
        "openInfo.openingDate",
        "storeCode",
    ]
    assert [path.removesuffix(".name").removesuffix(".year").removesuffix(".month") for path in unchanged] == others


async def test_another_spelling_of_a_difference_is_not_reported_again(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    assert_ok(await alice.post(f"{SYNC}/111", json={"phoneNumbers": {"primaryPhone": "+81 45-555-0170"}}))
    for phone in ("+81 45-555-0199", "045-555-0199", "+81455550199"):
        await drift(emulator, locations={PIER: {"phoneNumbers": {"primaryPhone": phone}}})
        assert_ok(await alice.get(f"{COMPARISON}/111"))
    events = assert_ok(await alice.get("/api/v1/events"))["events"]
    assert len([event for event in events if event["type"] == "profile.drifted"]) == 1


async def test_another_spelling_that_consumers_see_is_not_reported(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    own = (await document(emulator, PIER))["websiteUri"]
    await drift(emulator, google_updated={PIER: {"websiteUri": own.replace("https", "HTTPS")}})
    for _ in range(2):
        clock.advance(minutes=5)
        assert_ok(await alice.get("/api/v1/external-business/locations/111"))
    events = assert_ok(await alice.get("/api/v1/events"))["events"]
    assert [event for event in events if event["type"] == "profile.drifted"] == []
    assert len([call for call in await calls(emulator) if "getGoogleUpdated" in call["path"]]) == 1


def test_the_client_names_the_side_by_meaning() -> None:
    def phone(text: str) -> dict[str, Any]:
        return {"phoneNumbers": {"primaryPhone": text}}

    provider = phone("045-555-0170") | {"storefrontAddress": {"regionCode": "JP"}}
    source, last = phone("+81 45-555-0199"), phone("+81 45-555-0170")
    compared = {"source": source, "provider": provider, "lastSync": last, "filtered": []}
    found = profiles.differences(source, provider, [])
    readings = verdicts(SyncComparison.model_validate({**compared, "differences": found}))
    assert [one.verdict for one in readings] == ["changed_here"]


@pytest.mark.parametrize("case", CASES, ids=[f"{case['field']}-{at}" for at, case in enumerate(CASES)])
def test_the_emulator_keeps_the_meaning(case: dict[str, Any]) -> None:
    field, value = case["field"], case["one"]
    if not case["same"] or case["field"] == "a.b" or case["region"] == "Japan":
        return
    document: dict[str, Any] = {"storefrontAddress": {"regionCode": case["region"]}} if case["region"] else {}
    wrapped: Any = value
    for name in reversed(field.split(".")):
        wrapped = {name: wrapped}
    document = profiles.merge(document, wrapped)
    spelled = rewritten(document, [(field.split(".")[0],)])
    region = meaning.region_of(document)
    assert meaning.same(field, profiles.at(spelled, field), value, (region, region))
