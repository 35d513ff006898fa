"""The end of a process that pytest-timeout cannot end: its exception may be caught, and it sees only tests.

The stacks of all threads are written to stderr.
"""

import faulthandler
import os
import time
from collections.abc import Generator

import pytest


class Watchdog:
    """A plugin. It ends the process if a test, or all tests, take `grace` seconds longer than pytest-timeout allows."""

    def __init__(self, config: pytest.Config, grace: float = 60) -> None:
        session = config.getoption("session_timeout") or float(config.getini("session_timeout"))
        self._end, self._grace = time.monotonic() + float(session) + grace, grace
        self._stderr = os.dup(2)  # before pytest captures it
        self._limit = float(config.getini("timeout"))
        self._watch(self._end - time.monotonic())
        if hasattr(config.option, "maxworkerrestart"):
            config.option.maxworkerrestart = "0"  # xdist would give the test that hangs to other processes, one by one

    def _watch(self, seconds: float) -> None:
        faulthandler.dump_traceback_later(max(seconds, self._grace), exit=True, file=self._stderr)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Watch a test."""
        mark = item.get_closest_marker("timeout")
        self._watch((float(mark.args[0]) if mark else self._limit) + self._grace)
        try:
            return (yield)
        finally:
            self._watch(self._end - time.monotonic())

    def pytest_enter_pdb(self) -> None:
        """Wait for someone who debugs a test."""
        faulthandler.cancel_dump_traceback_later()

    def pytest_unconfigure(self) -> None:
        """Watch the end of the process, which waits for its threads."""
        self._watch(self._grace)
