"""The copy of an owner's data: a ZIP file that is whole, has no secret, and needs little memory."""

import io
import json
import tracemalloc
import zipfile
from typing import Any

import httpx
import pytest
from sqlalchemy import insert, select

from profilesvc.contract.alerts import AlertCreate
from profilesvc.database.schema import metadata
from profilesvc.operations import operator
from profilesvc.services import access
from profilesvc.services.accounts import export as account_export
from profilesvc.services.context import Services
from profilesvc.services.drafts import drafts, photos
from profilesvc.services.notify import alerts
from profilesvc.services.reviews import reply_templates
from profilesvc.storage import tables
from support.api import ALICE, Site, assert_ok
from support.browser.dashboard import Browser
from support.browser.key_pages import made
from support.database.owner_rows import of_owners
from support.pictures import png

PATH = "/dashboard/account/data.zip"


def unpacked(answer: httpx.Response) -> tuple[dict[str, Any], zipfile.ZipFile]:
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/zip")
    file = zipfile.ZipFile(io.BytesIO(answer.content))
    assert file.testzip() is None
    return json.loads(file.read("data.json")), file


def test_every_table_of_an_owner_is_in_the_copy_or_left_out_for_a_reason() -> None:
    exported = {section.table for section in account_export.SECTIONS.values()}
    for table in of_owners():
        assert table.name in exported | set(account_export.LEFT_OUT), (
            f"The table {table.name} has an owner_id and is not in services/accounts/export.py. Add it to SECTIONS, or "
            "to LEFT_OUT with the reason."
        )
    assert not exported & set(account_export.LEFT_OUT)


# Columns of the tables in the copy that are not in it, by table.
COLUMNS_LEFT_OUT = {
    "locations": "checked_at connection_id drift posts_read_at sync_lease sync_lease_until",  # read and computed again
    "keys": "badge_digest billing_version epoch",  # a secret's digest, and counters of changes
    "holds": "severity",  # follows from the reason
    "connections": "other_site_host other_site_host_at",  # of a site that may be another person's
    "request_log": "id",
    "watches": "expiry_announced",
    "post_usage": "held held_until warned",
    "mirrors": "query",
    "syncs": "id",
    "drafts": "next_at started_at",
    "reply_templates": "id",
    "photos": "content",  # a file of its own
    "provider_connections": "refresh_token revoke_at revoke_tries subject",
    "events": "key_id",
    "sessions": "epoch id",
    "audit": "id month once",
}


@pytest.mark.parametrize("name", account_export.SECTIONS)
def test_every_column_of_a_table_in_the_copy_is_there_or_left_out(name: str) -> None:
    section = account_export.SECTIONS[name]
    named = {*section.columns.split(), *COLUMNS_LEFT_OUT.get(section.table, "").split(), "owner_id"}
    columns = {column.name for column in metadata.tables[section.table].columns}
    assert columns - named == set(), "add these to SECTIONS in services/accounts/export.py, or to COLUMNS_LEFT_OUT"


async def test_the_copy_is_whole_and_has_no_secret(alice_there: Browser, services: Services, plugin: Site) -> None:
    pair = await made(alice_there, primary_domain="harbour.example", location="locations/112")
    url = "https://hooks.slack.com/services/T000/B000/token"
    await alice_there.open("/dashboard/webhooks")
    await alice_there.send("/webhooks", url=url, format="slack")
    assert_ok(await plugin.http.get("/api/v1/posts?locationId=locations/111"))
    assert_ok(await plugin.http.post("/api/v1/api-keys/heartbeat", json={}))
    alice = await operator.act_for(services, ALICE)
    location = await access.require_location(services, alice, "locations/111")
    await drafts.save(services, location, {"summary": "Soon"}, {"topicType": "STANDARD", "summary": "Soon"}, None)
    await photos.store(services, alice, png())
    await reply_templates.save(services, alice, "Thanks", "Thank you.")
    quiet = {"from": "22:00", "to": "07:00"}
    await alerts.create(services, alice, AlertCreate.model_validate({"quiet_time": quiet}))
    answer = await alice_there.http.get(PATH)
    assert answer.headers["content-disposition"] == 'attachment; filename="my-data-2026-01-02.zip"'
    assert answer.headers["cache-control"] == "no-store"
    data, file = unpacked(answer)
    assert data["user"] == {"id": 1, "name": "Alice Ito", "email": ALICE, "plan": "pro"}
    assert {key["client_id"] for key in data["keys"]} == {pair["client_id"], plugin.key["client_id"]}
    assert {site["name"] for site in data["sites"]} >= {"locations/111"}
    assert data["sites"][0]["profile"]["title"]
    assert [hook["host"] for hook in data["webhooks"]] == ["hooks.slack.com"]
    assert {post["location_name"] for post in data["posts"]} == {"locations/111"}
    assert [draft["fields"]["summary"] for draft in data["drafts"]] == ["Soon"]
    assert [alert["quiet_time"] for alert in data["alerts"]] == [quiet]
    assert data["reply_templates"] == [{"name": "Thanks", "text": "Thank you."}]
    assert len(data["heartbeats"]) == 1
    assert "user.login" in {entry["event"] for entry in data["audit"]}
    assert file.read(data["photos"][0]["file"]) == png()
    async with services.storage.read() as session:
        digests = [row[0] for row in await session.execute(select(tables.secrets.c.digest))]
    text = file.read("data.json").decode()
    for secret in (pair["client_secret"], "B000", alice_there.token, *digests):
        assert secret not in text
    assert "Marsh" not in text
    await alice_there.open("/dashboard/audit")
    assert "Data downloaded" in alice_there.page.text


async def test_pages_of_rows_are_joined(alice_there: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, _ = unpacked(await alice_there.http.get(PATH))
    monkeypatch.setattr(account_export, "_PAGE", 2)
    monkeypatch.setattr(account_export, "_CHUNK", 10)
    data, _ = unpacked(await alice_there.http.get(PATH))
    for title in ("sites", "businesses", "posts", "photos"):
        assert data[title] == expected[title]
    assert len(data["sites"]) == 5
    assert len(data["audit"]) == len(expected["audit"]) + 1  # the first download


async def test_the_memory_does_not_grow_with_the_account(services: Services) -> None:
    """20 MB of posts are sent in pieces."""
    document = json.dumps({"summary": "x" * 10_000})
    post = {"owner_id": 1, "location_name": "locations/111", "state": "LIVE", "read_at": 1, "document": document}
    async with services.storage.write() as session:
        for start in range(0, 2_000, 200):
            rows = [{**post, "post_id": str(900_000 + start + each), "created_at": 1} for each in range(200)]
            await session.execute(insert(tables.posts), rows)
    alice = await operator.act_for(services, ALICE)
    async for _ in account_export.archive(services, alice):
        pass  # the first one imports and compiles
    tracemalloc.start()
    sizes = [len(piece) async for piece in account_export.archive(services, alice)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert max(sizes) < 1_000_000
    assert peak < 12_000_000
