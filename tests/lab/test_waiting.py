"""Waiting for a deployed service: for its limits always, for an outage only with patience."""

from typing import Any

import httpx
import pytest

from profilesvc.lab.deployed.waiting import LONGEST_WAIT_SECONDS, Waiting

Answer = tuple[int, dict[str, str], dict[str, Any]]
FINE: Answer = (200, {}, {})
LIMITED = (429, {"Retry-After": "7"}, {"code": "RATE_LIMITED"})
EDITS = (502, {"Retry-After": "41"}, {"code": "PROVIDER_API_ERROR", "details": {"reason": "rate_limited"}})
EDITS_BY_THE_PROVIDER: Answer = (502, {}, {"code": "PROVIDER_API_ERROR", "details": {"reason": "rate_limited"}})
QUOTA = (429, {"Retry-After": "9"}, {"code": "QUOTA_EXCEEDED"})
DOWN: Answer = (502, {}, {"code": "PROVIDER_API_ERROR", "details": {"reason": "unavailable", "retryable": True}})
REJECTED: Answer = (502, {}, {"code": "PROVIDER_API_ERROR", "details": {"reason": "rejected", "retryable": False}})
FULL = (503, {"Retry-After": "1"}, {"code": "SERVICE_UNAVAILABLE"})


def run(answers: list[Answer], patience: float = 0) -> tuple[int, list[float], int]:
    """The status that the caller sees, the pauses, and how many answers were not asked for."""
    left, pauses = list(answers), list[float]()

    def answer(_: httpx.Request) -> httpx.Response:
        status, headers, error = left.pop(0)
        return httpx.Response(status, headers=headers, json={"error": error} if error else {})

    with httpx.Client(transport=Waiting(httpx.MockTransport(answer), patience, pauses.append)) as client:
        return client.post("http://service/", json={"a": 1}).status_code, pauses, len(left)


@pytest.mark.parametrize(
    ("answers", "status", "pauses"),
    [
        ([LIMITED, EDITS, FINE], 200, [7, 41]),
        ([EDITS_BY_THE_PROVIDER, FINE], 200, [5]),
        ([QUOTA], 429, []),
        ([DOWN], 502, []),
        ([FULL], 503, []),
        ([LIMITED, REJECTED], 502, [7]),
    ],
)
def test_limits_are_waited_for_and_nothing_else(answers: list[Answer], status: int, pauses: list[float]) -> None:
    assert run(answers) == (status, pauses, 0)


def test_an_endless_limit_is_given_up() -> None:
    status, pauses, _ = run([EDITS] * 100)
    assert status == 502
    assert LONGEST_WAIT_SECONDS - 41 < sum(pauses) <= LONGEST_WAIT_SECONDS


def test_an_outage_is_waited_for_within_the_limit() -> None:
    assert run([DOWN, FULL, EDITS, FINE], patience=60) == (200, [5, 5, 41], 0)
    assert run([DOWN] * 100, patience=12) == (502, [5, 5, 2], 96)
    assert run([REJECTED], patience=12) == (502, [], 0)


def test_a_service_that_does_not_respond_is_called_again_and_then_reported() -> None:
    asked, pauses = list[str](), list[float]()

    def refuse(request: httpx.Request) -> httpx.Response:
        asked.append(request.method)
        raise httpx.ConnectError("refused")

    waiting = Waiting(httpx.MockTransport(refuse), 9.9, pauses.append)
    with httpx.Client(transport=waiting) as client, pytest.raises(httpx.ConnectError):
        client.get("http://service/")
    assert len(asked) == len(pauses) + 1 == 3
