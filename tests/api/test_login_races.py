"""Logins at the provider that several processes use, or that are connected and disconnected at once."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest
from sqlalchemy import select

from conftest import ON_POSTGRES, Dial
from profilesvc.bootstrap import Runtime, open_services
from profilesvc.delivery.kinds import open_senders
from profilesvc.delivery.worker import deliver_due
from profilesvc.domain.time import FrozenClock
from profilesvc.operations import operator
from profilesvc.provider.port import ProviderError
from profilesvc.services.accounts import deletion
from profilesvc.services.context import Services
from profilesvc.services.logins import logins
from profilesvc.services.provider_logins import Logins, provider_of
from profilesvc.storage import provider_logins, tables
from profilesvc.storage.accounts import deletions
from support.api import ALICE, assert_ok
from support.browser.dashboard import Browser
from support.provider.consent import CONNECTIONS, DANA, LINKS, add_dana, connected, consent, sent
from support.provider.drive import calls, drift, fail, forget_calls, heal

pytestmark = pytest.mark.in_process("the emulator's logins")
ACCOUNTS = ["accounts/4"]


@pytest.fixture
async def dana(dial: Dial, alice: httpx.AsyncClient, emulator: httpx.AsyncClient) -> AsyncIterator[Browser]:
    """A browser of another person, which `sent_by_link` sends to the provider."""
    await add_dana(emulator)
    async with dial() as client:
        yield Browser(client)


async def sent_by_link(dana: Browser, alice: httpx.AsyncClient) -> str:
    """Consent by a connect link of Alice, and return the address to which the provider redirects."""
    link = assert_ok(await alice.post(LINKS))["url"]
    return await consent(dana.http, await sent(dana, f"{link}/start"))


async def rows(services: Services) -> list[tuple[str, bool]]:
    """The state of each connection, and whether its token is stored."""
    async with services.storage.read() as session:
        found = await session.execute(select(tables.provider_connections))
        return [(row.state, row.refresh_token is not None) for row in found]


async def tokens_asked(emulator: httpx.AsyncClient) -> int:
    return len([call for call in await calls(emulator) if call["path"] == "/token"])


async def errors_of(services: list[Services], number: int) -> list[str]:
    """The reasons with which ten calls of all processes at once are refused."""
    async with services[0].storage.read() as session:
        row = await provider_logins.find(session, 1, number)
    assert row is not None
    providers = [provider_of(each, row) for each in services]
    results = await asyncio.gather(
        *(provider.accounts() for provider in providers for _ in range(5)), return_exceptions=True
    )
    return [result.reason for result in results if isinstance(result, ProviderError)]


@ON_POSTGRES
async def test_ended_login_is_tried_once_by_all_processes(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, services: Services, world: Runtime
) -> None:
    await add_dana(emulator)
    number = await connected(browser, alice)
    login = {"email": "dana@example.com", "accounts": ACCOUNTS, "revoked": True}
    await drift(emulator, logins={DANA: login})
    await forget_calls(emulator)
    async with open_services(services.settings, Runtime(world.clock, world.entropy)) as other:
        processes = [services, replace(other, provider=services.provider)]
        assert await errors_of(processes, number) == ["reauth_required"] * 10
        assert await tokens_asked(emulator) == 1
        [entry] = assert_ok(await alice.get(CONNECTIONS))["connections"]
        assert entry["state"] == "reauth_required"


async def test_revocation_in_flight_ends_no_login_that_is_connected_meanwhile(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, services: Services
) -> None:
    """The provider ends the code of the new consent with the old one, so the owner has to start again."""
    await add_dana(emulator)
    number = await connected(browser, alice)
    await fail(emulator, "hold", times=1, match={"path": "/revoke"})
    assert_ok(await alice.delete(f"{CONNECTIONS}/{number}"))
    for _ in range(1_000):
        if not (await emulator.get("/__emulator/state")).json()["faults"]:  # the revocation has arrived
            break
    else:
        raise AssertionError("it was never revoked")
    again = asyncio.ensure_future(browser.http.get(await consent(browser.http, await sent(browser))))
    await asyncio.wait({again}, timeout=0.3)  # more than enough for a connection that does not wait
    assert not again.done()
    await heal(emulator)
    assert (await again).status_code == 401
    await services.background.settle()
    assert assert_ok(await alice.get(CONNECTIONS)) == {"connections": []}
    number = await connected(browser, alice)
    services.part(Logins)._providers.clear()  # and their access tokens
    assert assert_ok(await alice.get(f"{CONNECTIONS}/{number}"))["state"] == "active"


async def test_login_that_is_connected_again_is_not_revoked_later(
    browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, services: Services, clock: FrozenClock
) -> None:
    await add_dana(emulator)
    await fail(emulator, status=503, match={"path": "/revoke"})
    assert_ok(await alice.delete(f"{CONNECTIONS}/{await connected(browser, alice)}"))
    await services.background.settle()
    await heal(emulator)
    number = await connected(browser, alice)
    clock.advance(minutes=2)
    await forget_calls(emulator)
    await logins.revoke_due(services)
    assert await calls(emulator) == []
    assert assert_ok(await alice.get(f"{CONNECTIONS}/{number}"))["state"] == "active"


@pytest.mark.slow
async def test_consent_that_returns_after_the_deletion_of_the_account_is_withdrawn(
    dana: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, services: Services, clock: FrozenClock
) -> None:
    back = await sent_by_link(dana, alice)
    await deletion.request(services, 1)
    async with open_senders(services) as senders:
        await deliver_due(services, senders)  # the last message
    for _ in range(9):
        clock.advance(minutes=1)
        await deletion.run_once(services)
    page = await dana.open(back, 401)
    assert "the account that it was for is no longer active" in page.text
    assert await rows(services) == [("disconnected", True)]
    await forget_calls(emulator)
    await logins.revoke_due(services)
    assert [(call["path"], call["status"]) for call in await calls(emulator)] == [("/revoke", 200)]
    clock.advance(minutes=6)
    await deletion.run_once(services)
    assert await rows(services) == []
    async with services.storage.read() as session:
        done = await deletions.find(session, 1)
    assert done is not None
    assert done.finished_at == clock.now()


async def test_suspended_owner_gets_no_login_and_keeps_those_connected_before(
    dana: Browser,
    browser: Browser,
    alice: httpx.AsyncClient,
    emulator: httpx.AsyncClient,
    services: Services,
    clock: FrozenClock,
) -> None:
    back = await sent_by_link(dana, alice)
    await operator.suspend(services, ALICE)
    await dana.open(back, 401)
    await logins.revoke_due(services)
    assert await rows(services) == [("disconnected", False)]
    await operator.resume(services, ALICE)
    await connected(browser, alice)
    back = await sent_by_link(dana, alice)
    await operator.suspend(services, ALICE)
    await dana.open(back, 401)
    await forget_calls(emulator)
    clock.advance(days=1)
    await logins.revoke_due(services)
    assert await calls(emulator) == []  # that would end the login of before too
    assert await rows(services) == [("disconnected", False), ("active", True)]
