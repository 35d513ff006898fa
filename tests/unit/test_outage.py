"""The log of an outage of the database: a line at each change and one a minute, however many requests are refused."""

import logging
from typing import Any

import asyncpg
import pytest
import sqlalchemy.exc

from profilesvc.database.outage import Outage
from profilesvc.database.unavailable import as_unavailable
from profilesvc.domain.errors import ServiceError

LOST = asyncpg.InvalidPasswordError('password authentication failed for user "x"')
BUSY = asyncpg.LockNotAvailableError("canceling statement due to lock timeout")
READ_ONLY = asyncpg.ReadOnlySQLTransactionError("cannot execute INSERT in a read-only transaction")


class Log:
    """An outage on a clock that the test moves, and what it has logged."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.now = 1_000.0
        self.outage = Outage(lambda: self.now)
        self._caplog = caplog
        caplog.set_level(logging.WARNING, logger="profilesvc")

    def request(self, error: Exception, took: float = 0.0) -> None:
        """One that is refused."""
        begun, self.now = self.now, self.now + took
        self.outage.failed(error, begun)
        refused = as_unavailable(error)
        assert isinstance(refused, ServiceError)
        refused.__cause__ = error
        assert self.outage.count_rejected(refused)

    def lines(self) -> list[str]:
        found = [record.getMessage() for record in self._caplog.records]
        self._caplog.clear()
        return found


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Log:
    return Log(caplog)


def test_lost_and_back_are_one_line_each(log: Log) -> None:
    for _ in range(400):
        log.request(LOST)
        log.now += 0.125
    assert log.lines() == [f"database lost: {LOST}"]
    log.now += 1
    log.outage.worked(wrote=False)
    log.outage.worked(wrote=True)
    assert log.lines() == ["database back after 51 s, 400 requests rejected"]
    log.request(LOST)
    log.now += 2
    log.outage.worked(wrote=True)
    assert log.lines() == [f"database lost: {LOST}", "database back after 2 s, 1 request rejected"]


def test_a_long_outage_is_one_line_a_minute(log: Log) -> None:
    for _ in range(1_200):
        log.request(LOST)
        log.now += 0.125
    assert log.lines() == [
        f"database lost: {LOST}",
        f"database still lost after 60 s: {LOST}; 481 requests rejected",
        f"database still lost after 120 s: {LOST}; 961 requests rejected",
    ]


def test_idle_connections_that_still_work_do_not_count_as_back(log: Log) -> None:
    for _ in range(100):
        log.request(LOST)
        log.outage.worked(wrote=True)
        log.now += 0.2
    assert log.lines() == [f"database lost: {LOST}"]


def test_only_a_write_ends_a_read_only_server(log: Log) -> None:
    log.request(READ_ONLY)
    log.now += 5
    log.outage.worked(wrote=False)
    assert log.lines() == [f"database lost: {READ_ONLY}"]
    log.outage.worked(wrote=True)
    assert log.lines() == ["database back after 5 s, 1 request rejected"]


def test_a_busy_database_is_not_lost_and_one_line_a_minute(log: Log) -> None:
    for _ in range(700):
        log.request(BUSY)
        log.outage.worked(wrote=True)
        log.now += 0.125
    assert log.lines() == [
        f"database busy: {BUSY}; 1 request rejected",
        f"database busy: {BUSY}; 480 requests rejected",
    ]


@pytest.mark.parametrize("others_work", [True, False])
def test_no_response_in_time_is_lost_unless_others_have_one(log: Log, others_work: bool) -> None:
    log.now += 1
    if others_work:
        log.now += 4
        log.outage.worked(wrote=False)
        log.now -= 4
    log.request(TimeoutError(), took=4.5)
    first = "database busy: no response in time; 1 request rejected"
    assert log.lines() == [first if others_work else "database lost: no response in time"]


@pytest.mark.parametrize("cause", [None, ValueError("x"), sqlalchemy.exc.ProgrammingError("SELECT", {}, Exception())])
def test_other_errors_are_not_counted(log: Log, cause: Any) -> None:
    from profilesvc.contract.errors import SERVICE_UNAVAILABLE

    error = ServiceError(SERVICE_UNAVAILABLE)
    error.__cause__ = cause
    assert not log.outage.count_rejected(error)
    assert log.lines() == []


def test_background_work_is_no_request(log: Log) -> None:
    error = as_unavailable(BUSY)
    assert error is not None
    error.__cause__ = BUSY
    for _ in range(40):
        assert log.outage.count_rejected(error, requests=0)
    assert log.lines() == [f"database busy: {BUSY}; 0 requests rejected"]
