"""Users, businesses and plans for the operator; the downgrade rule (D-27, D-90)."""

import asyncio

import httpx
import pytest
from sqlalchemy import update

from conftest import ON_ONE_DATABASE, AsService, AsUser
from profilesvc.contract.keys import KeyListQuery
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import FrozenClock
from profilesvc.operations import operator
from profilesvc.services import keys, tokens
from profilesvc.services.context import Services
from profilesvc.storage.tables import locations
from support.api import ALICE, BUSINESSES, CAROL, Site, assert_error, assert_ok

KEYS = "/api/v1/developer/credentials"


def key_body(location: str) -> dict[str, object]:
    return {"name": "Site", "business_id": BUSINESSES[location], "assigned_location_id": location}


async def status_of(services: Services, client_id: str) -> tuple[str, str | None]:
    listed = await keys.list_all(services, None, KeyListQuery(include_revoked="true"))
    return next((key.status, key.deactivation_reason) for key in listed.credentials if key.client_id == client_id)


async def refusal(work: object) -> str:
    with pytest.raises(ServiceError) as caught:
        await work  # type: ignore[misc]
    return f"{caught.value.kind.code}: {caught.value.message}"


async def test_a_user_is_added_on_the_first_plan_and_may_call_at_once(services: Services) -> None:
    user = await operator.add_user(services, " Zoe@Example.com ")
    assert (user.email, user.name, user.plan, user.suspended_at) == ("zoe@example.com", "zoe", "starter", None)
    assert user in await operator.list_users(services)
    assert await tokens.user_token(services, "ZOE@example.com")


@pytest.mark.parametrize("email", ["", "zoe", "@example.com", "zoe@", "zoe@host", "a b@c.de", "a@b@c.de", "a\n@b.c"])
@ON_ONE_DATABASE
async def test_a_bad_address_of_a_new_user_is_rejected(services: Services, email: str) -> None:
    assert (await refusal(operator.add_user(services, email))).startswith("VALIDATION_ERROR")


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, "a\x00b", "\udcff"])
@ON_ONE_DATABASE
async def test_a_bad_name_of_a_new_user_is_rejected(services: Services, name: str) -> None:
    assert (await refusal(operator.add_user(services, "zoe@example.com", name))).startswith("VALIDATION_ERROR")


async def test_an_address_that_is_in_use_is_rejected(services: Services) -> None:
    refused = await refusal(operator.add_user(services, "ALICE@example.com"))
    assert refused == "CONFLICT: The user alice@example.com already exists."


async def test_an_unknown_plan_is_rejected_and_the_plans_are_listed(services: Services) -> None:
    refused = await refusal(operator.add_user(services, "zoe@example.com", plan="gold"))
    assert refused == "NOT_FOUND: There is no plan gold; the catalogue has starter, growth, pro, agency."


async def test_an_unknown_user_is_named(services: Services) -> None:
    for work in (operator.suspend, operator.resume, operator.logout, operator.act_for, operator.list_businesses):
        assert await refusal(work(services, "no@example.com")) == "NOT_FOUND: There is no user no@example.com."


async def test_a_suspended_user_and_their_keys_are_rejected_until_resumed(
    services: Services, alice: httpx.AsyncClient, plugin: Site
) -> None:
    assert (await operator.suspend(services, ALICE)).suspended_at is not None
    for caller in (alice, plugin.http):
        assert_error(await caller.get("/api/v1/external-business/locations"), 401, "AUTH_INVALID_TOKEN")
    assert (await operator.resume(services, ALICE)).suspended_at is None
    for caller in (alice, plugin.http):
        assert_ok(await caller.get("/api/v1/external-business/locations"))


async def test_a_second_suspension_does_not_change_its_time(services: Services, clock: FrozenClock) -> None:
    first = await operator.suspend(services, ALICE)
    clock.advance(hours=1)
    assert await operator.suspend(services, ALICE) == first
    assert first in await operator.list_users(services)


async def test_a_logout_ends_user_tokens_and_no_key(services: Services, alice: httpx.AsyncClient, plugin: Site) -> None:
    await operator.logout(services, ALICE)
    assert_error(await alice.get(KEYS), 401, "AUTH_INVALID_TOKEN")
    assert_ok(await plugin.http.get("/api/v1/external-business/locations"))


async def test_a_business_belongs_to_its_owner(services: Services) -> None:
    added = await operator.add_business(services, CAROL, " Diaz Labs ")
    assert (added, 3, "Diaz Labs") in await operator.list_businesses(services)
    assert [name for _, _, name in await operator.list_businesses(services, CAROL)] == ["Diaz Dental", "Diaz Labs"]


async def test_a_downgrade_holds_keys_of_locations_assigned_last_until_an_upgrade(
    services: Services, clock: FrozenClock, as_service: AsService
) -> None:
    first = await as_service("locations/111")
    clock.advance(seconds=1)
    last = await as_service("locations/119")  # assigned by this creation, after all others

    change = await operator.assign_plan(services, ALICE, "growth")
    assert (change.held, change.lifted) == ([last.key["client_id"]], [])
    assert await status_of(services, last.key["client_id"]) == ("deactivated", "plan_downgrade")
    assert_error(await last.http.get("/api/v1/external-business/locations"), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert_ok(await first.http.get("/api/v1/external-business/locations"))

    assert (await operator.assign_plan(services, ALICE, "growth")).held == []
    change = await operator.assign_plan(services, ALICE, "pro")
    assert (change.held, change.lifted) == ([], [last.key["client_id"]])
    assert_ok(await last.http.get("/api/v1/external-business/locations"))  # its token works again


async def test_a_downgrade_does_not_change_other_holds_and_revoked_keys(
    services: Services, clock: FrozenClock, as_service: AsService, alice: httpx.AsyncClient
) -> None:
    clock.advance(seconds=1)
    unpaid, dead = await as_service("locations/119"), await as_service("locations/119")
    await keys.deactivate(services, unpaid.key["client_id"], "billing_issue")
    assert_ok(await alice.delete(f"{KEYS}/{dead.key['client_id']}"))

    change = await operator.assign_plan(services, ALICE, "starter")
    assert unpaid.key["client_id"] in change.held
    assert dead.key["client_id"] not in change.held
    assert await status_of(services, unpaid.key["client_id"]) == ("deactivated", "billing_issue")
    await operator.assign_plan(services, ALICE, "pro")
    assert await status_of(services, unpaid.key["client_id"]) == ("deactivated", "billing_issue")


async def test_a_location_beyond_the_plan_gets_no_new_key(
    services: Services, clock: FrozenClock, as_service: AsService, alice: httpx.AsyncClient
) -> None:
    clock.advance(seconds=1)
    await as_service("locations/119")
    await operator.assign_plan(services, ALICE, "growth")
    details = assert_error(await alice.post(KEYS, json=key_body("locations/119")), 403, "PLAN_RESTRICTION")
    assert details == {"limit": 3}
    assert_ok(await alice.post(KEYS, json=key_body("locations/111")), 201)


async def test_only_one_of_two_simultaneous_creations_gets_the_last_slot(services: Services, as_user: AsUser) -> None:
    """The plan is counted under a lock of the owner."""
    zoe = await operator.add_user(services, "zoe@example.com", plan="starter")
    business = await operator.add_business(services, zoe.email, "Shop")
    names = ["locations/119", "locations/219"]
    async with services.storage.write() as session:
        for name in names:
            await session.execute(update(locations).where(locations.c.name == name).values(owner_id=zoe.id))
    client = await as_user(zoe.email)
    bodies = [{"name": "Site", "business_id": business, "assigned_location_id": name} for name in names]
    answers = await asyncio.gather(*(client.post(KEYS, json=body) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [201, 403]


async def test_an_unknown_plan_changes_nothing(services: Services) -> None:
    assert (await refusal(operator.assign_plan(services, ALICE, "gold"))).startswith("NOT_FOUND")
    assert {user.email: user.plan for user in await operator.list_users(services)}[ALICE] == "pro"
