"""Comparison and history of syncs over HTTP (D-84 to D-86)."""

from typing import Any

import httpx
from benchmarks import bulk

from conftest import AsUser
from profilesvc.services.context import Services
from profilesvc.services.logins import importing
from profilesvc.storage import sync
from profilesvc.storage.sync import SyncRow
from profilesvc.storage.tables import syncs
from support.api import CAROL, assert_error, assert_ok
from support.provider.drive import drift, fail
from support.syncs import COMPARISON, HISTORY, PIER, SAMPLE, SYNC, history


async def test_a_comparison_returns_every_field_of_the_contract(alice: httpx.AsyncClient) -> None:
    data = assert_ok(await alice.get(f"{COMPARISON}/114"))
    assert set(data) == {"source", "provider", "lastSync", "differences", "filtered"}
    assert data["source"]["title"] == data["provider"]["title"] == "Harbour Books"
    assert data["source"]["phoneNumbers"]["primaryPhone"] == "+81 45-555-0114"
    assert data["provider"]["phoneNumbers"]["primaryPhone"] == "+81 45-555-0199"
    assert data["lastSync"]["phoneNumbers"]["primaryPhone"] == "+81 45-555-0114"
    assert data["differences"] == [
        {
            "field": "phoneNumbers.primaryPhone",
            "source": "+81 45-555-0114",
            "provider": "+81 45-555-0199",
            "editStatus": "live",
        }
    ]
    assert data["filtered"] == []


async def test_a_sync_of_a_reported_difference_removes_it(alice: httpx.AsyncClient) -> None:
    (difference,) = assert_ok(await alice.get(f"{COMPARISON}/114"))["differences"]
    body = {"phoneNumbers": {"primaryPhone": difference["source"]}}
    assert assert_ok(await alice.post(f"{SYNC}/114", json=body))["fieldsUpdated"] == [difference["field"]]
    assert assert_ok(await alice.get(f"{COMPARISON}/114"))["differences"] == []


async def test_a_location_without_a_sync_has_no_differences(alice: httpx.AsyncClient) -> None:
    data = assert_ok(await alice.get(f"{COMPARISON}/112"))
    assert data["lastSync"] == {}
    assert data["source"]["title"] == "Harbour Coffee, Station"
    assert data["differences"] == []


async def test_a_comparison_reads_the_provider_live(alice: httpx.AsyncClient, emulator: httpx.AsyncClient) -> None:
    changes = {"title": "Other hands", "websiteUri": None, "labels": ["横浜"]}
    await drift(emulator, locations={PIER: changes})
    data = assert_ok(await alice.get(f"{COMPARISON}/111"))
    differences: list[dict[str, Any]] = [
        {"field": "title", "source": "Harbour Coffee, Pier", "provider": "Other hands"},
        {"field": "websiteUri", "source": "https://harbour.example/pier", "provider": None},
        {"field": "labels", "source": ["pier", "roastery", "横浜"], "provider": ["横浜"]},
    ]
    assert data["differences"] == [each | {"editStatus": "live"} for each in differences]
    assert assert_ok(await alice.get(f"{COMPARISON}/111")) == data  # deterministic
    await fail(emulator)
    details = assert_error(await alice.get(f"{COMPARISON}/111"), 502, "PROVIDER_API_ERROR")
    assert details["retryable"] is True


async def test_a_comparison_names_filtered_fields_but_not_as_differences(as_user: AsUser) -> None:
    carol = await as_user(CAROL)
    body = {"title": "T", "labels": ["x"], "attributes": {"wifi": True}}
    assert_ok(await carol.post(f"{SYNC}/311", json=body))
    data = assert_ok(await carol.get(f"{COMPARISON}/311"))
    assert data["source"]["labels"] == ["x"]
    assert "labels" in data["filtered"]
    assert data["differences"] == []


async def test_fields_that_no_sync_sends_are_not_stored(alice: httpx.AsyncClient) -> None:
    """What a plan leaves out may be sent in another one; an unknown or read-only field never is (D-84)."""
    before = assert_ok(await alice.get(f"{COMPARISON}/114"))["source"]
    body = {"name": "locations/211", "metadata": {"canDelete": True}, "languageCode": "fr", "a": {"b": 1}}
    service_area = {"serviceArea": {"regionCode": "US", "businessType": "CUSTOMER_AND_BUSINESS_LOCATION"}}
    for sent in (body, {**body, "title": "T"}, service_area):
        dropped = assert_ok(await alice.post(f"{SYNC}/114", json=sent))["fieldsFiltered"]
        assert dropped
        data = assert_ok(await alice.get(f"{COMPARISON}/114"))
        assert data["filtered"] == []
        assert not {"name", "metadata", "languageCode", "a"} & set(data["source"])
    expected = {**before, "title": "T", "serviceArea": {"businessType": "CUSTOMER_AND_BUSINESS_LOCATION"}}
    assert data["source"] == expected


async def test_the_history_returns_every_field_of_the_contract(alice: httpx.AsyncClient) -> None:
    made = assert_ok(await alice.post(f"{SYNC}/111", json=SAMPLE))
    first, imported = await history(alice)
    assert first == {
        "syncId": made["syncId"],
        "timestamp": made["timestamp"],
        "status": "success",
        "fieldsUpdated": len(made["fieldsUpdated"]),
        "direction": "push",
    }
    assert set(imported) == set(first)
    assert imported["timestamp"] == "2025-12-30T03:00:00.000Z"
    response = await alice.get(f"{HISTORY}/111")
    assert set(assert_ok(response)) == {"history"}


async def test_the_history_is_newest_first_in_pages_of_twenty(alice: httpx.AsyncClient, services: Services) -> None:
    async with services.storage.write() as session:
        for number in range(130):
            row = SyncRow(f"sync_{number:03d}", 1_800_000_000_000 + number, "success", "push", 1)
            await sync.add(session, 1, PIER, row)
    assert [e["syncId"] for e in await history(alice)] == [f"sync_{n:03d}" for n in range(129, 109, -1)]
    seen: list[str] = []
    for page in range(1, 6):
        seen += [e["syncId"] for e in await history(alice, page=page, limit=30)]
    assert seen[:130] == [f"sync_{n:03d}" for n in range(129, -1, -1)]
    assert len(seen) == len(set(seen)) == 131
    for limit, count in [(100, 100), (101, 100), (100_000, 100), (1, 1)]:
        assert len(await history(alice, limit=limit)) == count
    assert await history(alice, page=50) == []


async def test_the_history_reaches_ten_thousand_entries_and_no_further(
    alice: httpx.AsyncClient, services: Services
) -> None:
    """So that the last page costs what a page may cost, however long a history is."""
    rows = ((1, f"s{n:05d}", PIER, 1_800_000_000_000 + n, "success", "push", 1) for n in range(10_050))
    columns = ("owner_id", "sync_id", "location_name", "created_at", "status", "direction", "fields_updated")
    await bulk.load(services.storage, syncs, columns, rows)
    assert [entry["syncId"] for entry in await history(alice, page=100, limit=100)][-1] == "s00050"
    assert await history(alice, page=101, limit=100) == []
    assert len(await history(alice, page=112, limit=90)) == 10
    assert await history(alice, page=999_999_999, limit=100) == []


async def test_the_history_separates_pulls_and_pushes(services: Services, alice: httpx.AsyncClient) -> None:
    await importing.import_account(services, "alice@example.com", "accounts/1")
    newest = (await history(alice))[0]
    assert (newest["status"], newest["direction"]) == ("success", "pull")
