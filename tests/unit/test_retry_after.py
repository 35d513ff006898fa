"""The header Retry-After, by one rule for the client, the provider's client and the sender of webhooks."""

from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilesvc.contract.retry_after import LONGEST, retry_after
from profilesvc.delivery.senders import Retry
from profilesvc.delivery.transport import Response
from profilesvc.delivery.webhooks import WebhookSender
from profilesvc.domain.time import DAY, SECOND, FrozenClock
from profilesvc.provider.responses import read_response
from support.cases.retry_after import CASES, NOW


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case["value"]))
async def test_each_row_of_the_table_holds(case: dict[str, Any]) -> None:
    """The rule itself, and the provider's client, which waits a day at most."""
    assert retry_after(case["value"], NOW) == case["seconds"]
    response = httpx.Response(503, headers=[(b"Retry-After", case["value"].encode())])
    received = await read_response(response, FrozenClock(round(NOW * SECOND)))
    bounded = None if case["seconds"] is None else min(case["seconds"], DAY / SECOND)
    assert received.retry_after == bounded


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case["value"]))
async def test_the_table_at_a_receiver_of_webhooks(case: dict[str, Any]) -> None:
    class Busy:
        async def post(self, *_: object) -> Response:
            return Response(429, case["value"], "")

    now = round(NOW * SECOND)
    settings = SimpleNamespace(webhooks=SimpleNamespace(allow_private=False))
    services: Any = SimpleNamespace(settings=settings, clock=FrozenClock(now))
    channel = SimpleNamespace(target="https://hooks.example/", kind="slack")
    due: Any = SimpleNamespace(channel=channel, event=None, now=now, created_at=now, owner_id=1, id=1)
    busy: Any = Busy()
    outcome = await WebhookSender(busy)(services, [due], {})
    assert isinstance(outcome, Retry)
    assert outcome.not_before == (0 if case["seconds"] is None else now + case["seconds"] * SECOND)


def test_a_missing_header_is_no_delay() -> None:
    assert retry_after(None, NOW) is None


@given(st.text(max_size=40), st.floats(0, 4e9))
def test_any_text_is_ignored_or_bounded(text: str, now: float) -> None:
    found = retry_after(text, now)
    assert found is None or 0 <= found <= LONGEST
