"""Every kind of failure at every operation that reaches the provider: the right error, in time, nothing half done."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from profilesvc.domain.time import FrozenClock
from profilesvc.provider import transport
from profilesvc.provider.port import ProviderError
from profilesvc.provider.remote import RemoteProvider
from support.provider.rig import START, Rig, _adapter, emulator_at, in_process, served
from support.waiting import deadline

ALICE, PIER = "accounts/1", "locations/111"
POST = {"topicType": "STANDARD", "summary": "once"}
Operation = Callable[[RemoteProvider], Awaitable[Any]]
READS: dict[str, Operation] = {
    "accounts": lambda provider: provider.accounts(),
    "locations": lambda provider: provider.locations(ALICE),
    "location": lambda provider: provider.location(PIER),
    "categories": lambda provider: provider.categories("JP", "en", "Bak"),
    "categories_of": lambda provider: provider.categories_of(["categories/gcid:bakery"], "JP", "en"),
    "google_updated": lambda provider: provider.google_updated(PIER),
    "verification": lambda provider: provider.verification(PIER),
    "posts": lambda provider: provider.posts(ALICE, PIER),
    "reviews": lambda provider: provider.reviews(ALICE, PIER),
    "review": lambda provider: provider.review(ALICE, PIER, "111001"),
    "notification_setting": lambda provider: provider.notification_setting(ALICE),
}
WRITES: dict[str, Operation] = {
    "validate_location": lambda provider: provider.validate_location(PIER, {"title": "New"}, ["title"]),
    "patch_location": lambda provider: provider.patch_location(PIER, {"title": "New"}, ["title"]),
    "patch_post": lambda provider: provider.patch_post(ALICE, PIER, "11101", {"summary": "New"}, ["summary"]),
    "delete_post": lambda provider: provider.delete_post(ALICE, PIER, "11101"),
    "reply": lambda provider: provider.reply(ALICE, PIER, "111002", "Thanks"),
    "delete_reply": lambda provider: provider.delete_reply(ALICE, PIER, "111001"),
    "set_notifications": lambda provider: provider.set_notifications(ALICE, "projects/p/topics/t", ["NEW_REVIEW"]),
}
CREATE: dict[str, Operation] = {"create_post": lambda provider: provider.create_post(ALICE, PIER, POST)}
OPERATIONS = READS | WRITES | CREATE
RETRYABLE = {
    "status": True,
    "broken_body": True,
    "truncated": True,
    "disconnect": True,
    "huge": False,
    "redirect": False,
}
BUDGET_SECONDS = 8 * transport.WRITE + 1


def test_every_operation_of_the_port_is_in_the_matrix() -> None:
    assert set(OPERATIONS) == {name for name in vars(RemoteProvider) if not name.startswith("_")} - {
        "aclose",
        "load",
        "for_owner",
        "quota",
        "signed_in",
    }


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(emulator_at(tmp_path_factory.mktemp("matrix"), FrozenClock(START))) as origin:
        yield origin


@pytest.fixture
async def remote(origin: str, clock: FrozenClock) -> AsyncIterator[Rig]:
    """The emulator behind a socket, as it was in the beginning."""
    async with httpx.AsyncClient(base_url=origin, timeout=60) as client:
        await client.post("/__emulator/reset")
        yield Rig(_adapter(client, clock), client, clock)


async def documents(rig: Rig) -> dict[str, Any]:
    state = (await rig.http.get("/__emulator/state")).json()
    return {kind: state[kind] for kind in ("locations", "posts", "reviews")}


async def refused(rig: Rig, operation: str) -> ProviderError:
    """The error, which came in time and left everything as it was."""
    before = await documents(rig)
    async with deadline(BUDGET_SECONDS, "an error"):
        with pytest.raises(ProviderError) as caught:
            await OPERATIONS[operation](rig.provider)
    assert await documents(rig) == before
    return caught.value


@pytest.mark.parametrize("kind", RETRYABLE)
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_failure_that_stays_is_unavailable_and_leaves_nothing(remote: Rig, operation: str, kind: str) -> None:
    await remote.fault(kind, times=20)
    error = await refused(remote, operation)
    assert (error.reason, error.retryable) == ("unavailable", RETRYABLE[kind])
    await remote.http.delete("/__emulator/faults")
    await OPERATIONS[operation](remote.provider)


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_slow_responses_are_a_timeout(tmp_path: Path, clock: FrozenClock, operation: str) -> None:
    async with in_process(tmp_path, clock) as rig:
        await rig.provider.accounts()  # the token, and the first run of everything, take their time
        rig.provider = rig.adapter(timeout_seconds=0.5)
        await rig.fault("delay", times=20, seconds=5)
        error = await refused(rig, operation)
        assert (error.reason, error.retryable) == ("timeout", True)
        await rig.http.delete("/__emulator/faults")
        await OPERATIONS[operation](rig.adapter())


@pytest.mark.parametrize("operation", READS | WRITES)
async def test_short_faults_are_retried(remote: Rig, operation: str) -> None:
    await remote.fault("flapping", times=20)
    await OPERATIONS[operation](remote.provider)


async def test_short_faults_end_a_creation(remote: Rig) -> None:
    await remote.fault("flapping", times=20)
    assert (await refused(remote, "create_post")).http_status == 503
    await OPERATIONS["create_post"](remote.provider)


@pytest.mark.parametrize("kind", RETRYABLE)
@pytest.mark.parametrize("operation", WRITES)
async def test_write_whose_response_was_lost_has_its_effect_once(remote: Rig, operation: str, kind: str) -> None:
    await WRITES[operation](remote.provider)
    wanted = await documents(remote)
    await remote.http.post("/__emulator/reset")
    await remote.fault(kind, after=True)
    if RETRYABLE[kind]:
        await WRITES[operation](remote.provider)
    else:
        with pytest.raises(ProviderError):
            await WRITES[operation](remote.provider)
    assert await documents(remote) == wanted


@pytest.mark.parametrize("kind", RETRYABLE)
async def test_creation_whose_response_was_lost_is_not_repeated(remote: Rig, kind: str) -> None:
    await remote.fault(kind, after=True)
    with pytest.raises(ProviderError) as caught:
        await OPERATIONS["create_post"](remote.provider)
    assert caught.value.reached
    summaries = [post["summary"] for post in await remote.provider.posts(ALICE, PIER)]
    assert summaries.count("once") == 1
