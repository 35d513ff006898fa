"""An operation under an idempotency key: when it runs, what a repeat gets, what is kept of a failure (D-40)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import delete, select, update

from conftest import START
from profilesvc.api.parsing import idempotency_key
from profilesvc.contract.errors import (
    IDEMPOTENCY_IN_PROGRESS,
    IDEMPOTENCY_KEY_REUSED,
    INTERNAL_ERROR,
    PROVIDER_API_ERROR,
    SERVICE_UNAVAILABLE,
    SYNC_DISABLED,
    VALIDATION_ERROR,
    ErrorKind,
)
from profilesvc.database.engine import Storage
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.plans import load_catalogue
from profilesvc.domain.time import FrozenClock
from profilesvc.provider.port import ProviderError
from profilesvc.services.context import AllowedLocation, Caller, Rendered
from profilesvc.services.idempotency import RETENTION, Claim, run_once
from profilesvc.services.provider_errors import provider_failure
from profilesvc.settings import ProviderSettings, Settings
from profilesvc.storage.tables import idempotency as rows

PLAN = next(iter(load_catalogue(None).values()))
ALICE, HERE = Caller(1, PLAN, frozenset()), AllowedLocation("locations/111", 1, PLAN, "accounts/1", None)


@dataclass
class Desk:
    """The parts of the services that `run_once` needs, and one request after another."""

    storage: Storage
    clock: FrozenClock
    settings: Settings
    runs: int = 0
    claim: Claim | None = None

    async def ask(self, request: Any = 1, failing: BaseException | None = None, **other: Any) -> Rendered:
        """Ask for the operation `push`; it answers with the number of its run, or fails."""

        async def run(claim: Claim | None) -> Rendered:
            self.runs, self.claim = self.runs + 1, claim
            if failing is not None:
                raise failing
            answer = Rendered(b"%d" % self.runs)
            if claim is not None:
                async with self.storage.write() as session:
                    await claim.finish(session, 200, answer.data)
            return answer

        caller, target = other.get("caller", ALICE), other.get("target", ("push", HERE))
        key = idempotency_key([[value] for value in other.get("values", ["k"])], request)
        return await run_once(self, caller, target, key, run)  # type: ignore[arg-type]  # a part of the services

    async def fails(self, kind: ErrorKind, request: Any = 1, failing: BaseException | None = None) -> ServiceError:
        with pytest.raises(ServiceError) as refusal:
            await self.ask(request, failing)
        assert refusal.value.kind is kind
        return refusal.value

    async def scopes(self) -> int:
        async with self.storage.read() as session:
            return len((await session.execute(select(rows.c.scope))).all())


@pytest.fixture
async def desk(settings: Settings) -> AsyncIterator[Desk]:
    storage = Storage(settings.effective_database_url)
    yield Desk(storage, FrozenClock(START), settings.model_copy(update={"provider": ProviderSettings()}))
    await storage.close()


def provider_says(reason: Any, *, retryable: bool, **said: Any) -> ServiceError:
    cause = ProviderError(reason, retryable=retryable, **said)
    failure = provider_failure(cause)
    failure.__cause__ = cause
    return failure


async def test_a_retry_gets_the_first_response(desk: Desk) -> None:
    assert (await desk.ask({"a": 1, "b": 2})).data == b"1"
    again = await desk.ask({"b": 2, "a": 1}, values=["k", "k"])
    assert (again.data, again.replayed) == (b"1", True)
    await desk.fails(IDEMPOTENCY_KEY_REUSED, request={"a": 1})
    assert desk.runs == 1


async def test_callers_operations_locations_and_values_are_independent(desk: Desk) -> None:
    other = AllowedLocation("locations/112", 1, PLAN, "accounts/1", None)
    for different in (
        {},
        {"caller": Caller(2, PLAN, frozenset())},
        {"target": ("post", HERE)},
        {"target": ("push", other)},
        {"values": ["l"]},
    ):
        before = desk.runs
        await desk.ask(**different)
        assert desk.runs == before + 1, different
    assert [(await desk.ask(values=[])).data for _ in range(2)] == [b"6", b"7"]
    assert desk.claim is None
    assert await desk.scopes() == 5


@pytest.mark.parametrize("given", [[["a", "a"]], [["a"], ["b"]], [[""]], [["x" * 256]], [["a b"]], [["a\n"]], [["é"]]])
async def test_A129_invalid_keys_are_rejected(given: list[list[str]]) -> None:
    with pytest.raises(ServiceError) as refusal:
        idempotency_key(given, 1)
    assert refusal.value.kind is VALIDATION_ERROR
    assert refusal.value.details["errors"][0]["field"] == "X-Idempotency-Key"


async def test_A135_is_deleted_after_a_day(desk: Desk) -> None:
    await desk.ask()
    desk.clock.advance(milliseconds=RETENTION - 1)
    assert (await desk.ask()).data == b"1"
    desk.clock.advance(milliseconds=1)
    assert (await desk.ask(request=2)).data == b"2"
    assert desk.claim is not None
    assert (desk.claim.fence, desk.claim.since) == (2, desk.clock.now())
    assert (await desk.ask(request=2)).data == b"2"


async def test_A135_an_attempt_of_unknown_effect_is_deleted_too_and_its_successor_is_kept_for_a_day(
    desk: Desk,
) -> None:
    await desk.fails(SERVICE_UNAVAILABLE, failing=ServiceError(SERVICE_UNAVAILABLE))
    desk.clock.advance(milliseconds=RETENTION)
    assert (await desk.ask(request=2)).data == b"2"
    assert desk.claim is not None
    assert (desk.claim.fence, desk.claim.since) == (2, desk.clock.now())
    desk.clock.advance(milliseconds=RETENTION - 1)
    assert (await desk.ask(request=2)).data == b"2"


async def test_an_ended_holder_is_replaced_after_its_lease(desk: Desk) -> None:
    """A process that was killed lets nothing go: here the holder asks again from within."""
    seen: list[Claim | None] = []

    async def slow(first: Claim | None) -> Rendered:
        refusal = await desk.fails(IDEMPOTENCY_IN_PROGRESS)
        assert refusal.retry_after == 1
        desk.clock.advance(milliseconds=59_999)
        await desk.fails(IDEMPOTENCY_IN_PROGRESS)
        desk.clock.advance(milliseconds=1)
        assert (await desk.ask()).data == b"1"
        seen.extend((first, desk.claim))
        async with desk.storage.write() as session:
            assert first is not None
            await first.finish(session, 200, b"late")
        raise AssertionError("an overtaken holder has stored its answer")

    with pytest.raises(ServiceError) as refusal:
        await run_once(desk, ALICE, ("push", HERE), idempotency_key([["k"]], 1), slow)  # type: ignore[arg-type]
    assert refusal.value.kind is IDEMPOTENCY_IN_PROGRESS
    first, second = seen
    assert first is not None
    assert second is not None
    assert (first.fence, second.fence) == (1, 2)
    assert first.since == second.since == START
    assert (await desk.ask()).data == b"1"


class Interrupted:
    """A storage in which somebody else gets in a word after so many statements of a write."""

    def __init__(self, storage: Storage, after: int, word: Any) -> None:
        self._storage, self._left, self._word = storage, after, word

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Any]:
        async with self._storage.write() as self._session:
            yield self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def execute(self, *statement: Any) -> Any:
        result = await self._session.execute(*statement)
        self._left -= 1
        if self._left == 0:
            await self._session.execute(self._word)
        return result


@pytest.mark.parametrize(("after", "word"), [(1, delete(rows)), (2, update(rows).values(fence=rows.c.fence + 1))])
async def test_a_claim_between_two_statements_of_another_has_no_effect(desk: Desk, after: int, word: Any) -> None:
    """The attempt is released between the insert and the look at it; or its end is seen, and another takes it over."""
    with pytest.raises(RuntimeError):
        await desk.ask(failing=RuntimeError())
    whole, desk.storage = desk.storage, Interrupted(desk.storage, after, word)  # type: ignore[assignment]
    refusal = await desk.fails(IDEMPOTENCY_IN_PROGRESS)
    assert refusal.retry_after == 1
    desk.storage = whole
    assert desk.runs == 1
    assert (await desk.ask()).data == b"2"


async def test_A131_a_correctable_error_is_not_stored(desk: Desk) -> None:
    await desk.fails(SYNC_DISABLED, failing=ServiceError(SYNC_DISABLED))
    assert await desk.scopes() == 0
    assert (await desk.ask(request=2)).data == b"2"


async def test_a_final_rejection_of_the_provider_is_kept(desk: Desk) -> None:
    said = {"http_status": 400, "provider_code": "INVALID_ARGUMENT"}
    first = await desk.fails(PROVIDER_API_ERROR, failing=provider_says("rejected", retryable=False, **said))
    again = await desk.fails(PROVIDER_API_ERROR)
    assert (again.message, again.details) == (first.message, first.details)
    assert again.replayed
    assert desk.runs == 1


FAILED = [
    (PROVIDER_API_ERROR, provider_says("rejected", retryable=True, http_status=409)),
    (PROVIDER_API_ERROR, provider_says("unavailable", retryable=True, reached=False)),
]


@pytest.mark.parametrize(("kind", "failing"), FAILED)
async def test_after_a_temporary_rejection_the_request_may_change(
    desk: Desk, kind: ErrorKind, failing: ServiceError
) -> None:
    await desk.fails(kind, failing=failing)
    assert await desk.scopes() == 1
    assert (await desk.ask(request=2)).data == b"2"
    await desk.fails(IDEMPOTENCY_KEY_REUSED)


UNKNOWN = [
    (PROVIDER_API_ERROR, provider_says("timeout", retryable=True)),
    (PROVIDER_API_ERROR, provider_says("unavailable", retryable=True, http_status=503)),
    (SERVICE_UNAVAILABLE, ServiceError(SERVICE_UNAVAILABLE)),
    (INTERNAL_ERROR, ServiceError(INTERNAL_ERROR)),
]


@pytest.mark.parametrize(("kind", "failing"), UNKNOWN)
async def test_an_attempt_of_unknown_effect_keeps_its_request(
    desk: Desk, kind: ErrorKind, failing: ServiceError
) -> None:
    await desk.fails(kind, failing=failing)
    await desk.fails(IDEMPOTENCY_KEY_REUSED, request=2)
    desk.clock.advance(seconds=1)
    # Nor does it become another one when the repeat comes to nothing.
    await desk.fails(SYNC_DISABLED, failing=ServiceError(SYNC_DISABLED))
    await desk.fails(PROVIDER_API_ERROR, failing=FAILED[0][1])
    await desk.fails(IDEMPOTENCY_KEY_REUSED, request=2)
    assert (await desk.ask()).data == b"4"
    assert desk.claim is not None
    assert (desk.claim.fence, desk.claim.since) == (4, START)


async def test_a_defect_releases_the_claim_at_once(desk: Desk) -> None:
    with pytest.raises(RuntimeError):
        await desk.ask(failing=RuntimeError())
    await desk.fails(IDEMPOTENCY_KEY_REUSED, request=2)
    assert (await desk.ask()).data == b"2"


async def test_a_rejection_after_a_takeover_is_not_the_response(desk: Desk) -> None:
    """The response of the request is the other holder's; the caller of this one repeats and gets it."""
    rejected = provider_says("rejected", retryable=False, http_status=400, provider_code="INVALID_ARGUMENT")

    async def slow(claim: Claim | None) -> Rendered:
        desk.clock.advance(milliseconds=60_000)
        assert (await desk.ask()).data == b"1"
        raise rejected

    with pytest.raises(ServiceError) as conflict:
        await run_once(desk, ALICE, ("push", HERE), idempotency_key([["k"]], 1), slow)  # type: ignore[arg-type]
    assert conflict.value.kind is IDEMPOTENCY_IN_PROGRESS
    assert (await desk.ask()).data == b"1"
