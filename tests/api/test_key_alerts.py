"""The grace and the snooze of a key."""

from typing import Any

import httpx
import pytest

from conftest import ON_ONE_DATABASE, AsUser
from support.api import BOB, Site, assert_error, assert_ok, fields


def path_of(site: Site) -> str:
    return f"/api/v1/developer/credentials/{site.key['client_id']}/alerts"


async def test_each_field_is_changed_alone(alice: httpx.AsyncClient, plugin: Site) -> None:
    path, none = path_of(plugin), {"client_id": plugin.key["client_id"], "grace_seconds": 0, "snoozed_until": None}
    assert assert_ok(await alice.get(path)) == none
    assert assert_ok(await alice.patch(path, json={"grace_seconds": 60})) == none | {"grace_seconds": 60}
    until = {"snoozed_until": "2026-01-09T08:00:00.000Z"}
    assert assert_ok(await alice.patch(path, json=until)) == none | {"grace_seconds": 60} | until
    assert assert_ok(await alice.patch(path, json={"snoozed_until": None})) == none | {"grace_seconds": 60}
    assert assert_ok(await alice.get(path)) == none | {"grace_seconds": 60}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"grace_seconds": -1}, "grace_seconds"),
        ({"grace_seconds": 30 * 86_400 + 1}, "grace_seconds"),
        ({"grace_seconds": "60"}, "grace_seconds"),
        ({"snoozed_until": "2020-01-01T00:00:00Z"}, "snoozed_until"),
        ({"snoozed_until": "2036-01-01T00:00:00Z"}, "snoozed_until"),
        ({"snoozed_until": "tomorrow"}, "snoozed_until"),
        ({"grace": 60}, "grace"),
    ],
)
@ON_ONE_DATABASE
async def test_other_values_are_rejected(
    alice: httpx.AsyncClient, plugin: Site, body: dict[str, Any], field: str
) -> None:
    response = await alice.patch(path_of(plugin), json=body)
    assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == [field]


async def test_a_revoked_key_and_one_of_another_user_are_missing(
    alice: httpx.AsyncClient, as_user: AsUser, plugin: Site
) -> None:
    bob = await as_user(BOB)
    assert_error(await bob.get(path_of(plugin)), 404, "NOT_FOUND")
    assert_error(await bob.patch(path_of(plugin), json={"grace_seconds": 60}), 404, "NOT_FOUND")
    assert_ok(await alice.delete(path_of(plugin).removesuffix("/alerts")))
    assert_error(await alice.get(path_of(plugin)), 404, "NOT_FOUND")
