"""Keys of locations that were disconnected and imported again: they are active only within the plan."""

from typing import Any

import httpx
import pytest

from conftest import Dial
from profilesvc.domain.time import FrozenClock
from profilesvc.operations import operator
from profilesvc.services import tokens
from profilesvc.services.context import Services
from support.api import assert_error, assert_ok
from support.provider.consent import BAKERY, CAFE, CONNECTIONS, DANA, SHOP, add_dana, connect_by_token, imported

KEYS = "/api/v1/developer/credentials"
ZOE = "zoe@example.com"
pytestmark = pytest.mark.in_process("the emulator's logins")


async def key_of(zoe: httpx.AsyncClient, number: str, name: str) -> dict[str, Any]:
    """Import a location into a business, and create a key for it."""
    done = await imported(zoe, int(number), locations=[name], business_name="Roy")
    assert done["refused"] == []
    body = {"name": name, "business_id": done["business_id"], "assigned_location_id": name}
    return dict[str, Any](assert_ok(await zoe.post(KEYS, json=body), 201))


async def disconnect(zoe: httpx.AsyncClient, number: str, services: Services) -> None:
    """Disconnect a login, and wait until its consent is withdrawn: that would end the next one, too."""
    assert_ok(await zoe.delete(f"{CONNECTIONS}/{number}"))
    await services.background.settle()


async def test_are_not_reactivated_beyond_the_plan(
    http: httpx.AsyncClient, dial: Dial, services: Services, emulator: httpx.AsyncClient
) -> None:
    await add_dana(emulator)
    await operator.add_user(services, ZOE, "Zoe", "starter")  # one location
    token = await tokens.user_token(services, ZOE)
    async with dial(token) as zoe:
        keys = []
        for name in (BAKERY, CAFE, SHOP):
            number = await connect_by_token(http, token, DANA)
            keys.append(await key_of(zoe, number, name))
            if name != SHOP:
                await disconnect(zoe, number, services)
        await imported(zoe, int(number), title_contains="roy")
        for key in keys[:2]:
            assert_error(await zoe.post(f"{KEYS}/{key['client_id']}/reactivate"), 403, "PLAN_RESTRICTION")
        await operator.assign_plan(services, ZOE, "growth")
        for key in keys[:2]:
            assert assert_ok(await zoe.post(f"{KEYS}/{key['client_id']}/reactivate"))["status"] == "active"
        listed = assert_ok(await zoe.get("/api/v1/external-business/locations"))["locations"]
        assert all(location["businessId"] for location in listed)


@pytest.mark.parametrize("business", [{}, {"business_name": "Roy"}])
async def test_lose_the_hold_of_the_plan_once_they_are_within_it(
    http: httpx.AsyncClient,
    dial: Dial,
    services: Services,
    emulator: httpx.AsyncClient,
    clock: FrozenClock,
    business: dict[str, str],
) -> None:
    await add_dana(emulator)
    await operator.add_user(services, ZOE, "Zoe", "growth")
    token = await tokens.user_token(services, ZOE)
    async with dial(token) as zoe:
        number, keys = await connect_by_token(http, token, DANA), []
        for name in (BAKERY, CAFE):
            keys.append(await key_of(zoe, number, name))
            clock.advance(seconds=1)
        assert (await operator.assign_plan(services, ZOE, "starter")).held == [keys[1]["client_id"]]
        await disconnect(zoe, number, services)
        await operator.assign_plan(services, ZOE, "growth")
        number = await connect_by_token(http, token, DANA)
        await imported(zoe, int(number), title_contains="roy", **business)
        for key in keys:
            assert assert_ok(await zoe.post(f"{KEYS}/{key['client_id']}/reactivate"))["status"] == "active"
