"""How often the costliest requests ask the database, on both databases: each statement is a round trip."""

from typing import Any

import httpx
import pytest

from conftest import AsService
from profilesvc.services.context import Services
from support.api import assert_error, assert_ok
from support.database.statement_counts import Sent, sent_by
from support.provider.drive import fail

POSTS = "/api/v1/posts?locationId=111", {"languageCode": "en", "summary": "Fresh beans", "topicType": "STANDARD"}
SYNC = "/api/v1/sync/111", {"title": "Harbour Coffee, Pier 9"}
KEY = {"X-Idempotency-Key": "once"}

pytestmark = pytest.mark.in_process("records the statements of the process")


@pytest.fixture(params=["user", "key"])
async def client(request: pytest.FixtureRequest, alice: httpx.AsyncClient, as_service: AsService) -> httpx.AsyncClient:
    """A caller whose last use was noted just now: that is written once a minute, after the response."""
    caller = alice if request.param == "user" else (await as_service()).http
    assert_ok(await caller.get("/api/v1/sync/history/111"))
    return caller


async def sent_for(
    services: Services, client: httpx.AsyncClient, request: tuple[str, dict[str, Any]], headers: dict[str, str]
) -> tuple[Sent, httpx.Response]:
    """The statements of one request."""
    await services.background.drain()
    with sent_by(services) as sent:
        response = await client.post(request[0], json=request[1], headers=headers)
        await services.background.drain()
    return sent, response


EVENT = 3  # its number, its row, its deliveries


def own_reads(request: pytest.FixtureRequest) -> int:
    """The caller; for a user the location, too, which the statement that finds a key brings with it."""
    return 2 if request.node.callspec.params["client"] == "user" else 1


@pytest.mark.parametrize(("headers", "claims"), [({}, 0), (KEY, 1)])
async def test_a_post_reads_its_caller_and_the_profile(
    services: Services,
    client: httpx.AsyncClient,
    headers: dict[str, str],
    claims: int,
    request: pytest.FixtureRequest,
) -> None:
    """Two transactions: a place of the quota before the provider is asked, its use and the post after it.

    A claim is one transaction more.
    The statements of a claim: it is made, it gets the month in which the post is counted, and the response.
    """
    sent, response = await sent_for(services, client, POSTS, headers)
    assert response.status_code == 201
    assert len(sent.reads) == own_reads(request) + 1, sent.reads
    assert len(sent.statements) == own_reads(request) + 5 + EVENT + 3 * claims, sent.statements
    assert sent.transactions == 2 + claims


@pytest.mark.parametrize(("headers", "claims"), [({}, 0), (KEY, 1)])
async def test_a_sync_is_two_transactions(
    services: Services,
    client: httpx.AsyncClient,
    headers: dict[str, str],
    claims: int,
    request: pytest.FixtureRequest,
) -> None:
    """Claim and lease, which brings the location's row; then result, end of the lease and response for the key."""
    sent, response = await sent_for(services, client, SYNC, headers)
    assert_ok(response)
    assert len(sent.reads) == own_reads(request), sent.reads
    assert len(sent.statements) == own_reads(request) + 3 + EVENT + 2 * claims, sent.statements
    assert sent.transactions == 2


@pytest.mark.parametrize(("headers", "claims"), [({}, 0), (KEY, 1)])
async def test_a_sync_that_fails_is_two_transactions(
    services: Services,
    client: httpx.AsyncClient,
    emulator: httpx.AsyncClient,
    headers: dict[str, str],
    claims: int,
    request: pytest.FixtureRequest,
) -> None:
    await fail(emulator)
    sent, response = await sent_for(services, client, SYNC, headers)
    assert_error(response, 502, "PROVIDER_API_ERROR")
    assert len(sent.statements) == own_reads(request) + 3 + EVENT + 2 * claims, sent.statements
    assert sent.transactions == 2


async def test_a_replay_writes_nothing(
    services: Services, client: httpx.AsyncClient, request: pytest.FixtureRequest
) -> None:
    _, first = await sent_for(services, client, SYNC, KEY)
    sent, response = await sent_for(services, client, SYNC, KEY)
    assert response.content == first.content
    inserted, *_ = (each for each in sent.statements if each.startswith("INSERT"))
    assert "ON CONFLICT DO NOTHING" in inserted
    assert len(sent.statements) == own_reads(request) + 2, sent.statements
