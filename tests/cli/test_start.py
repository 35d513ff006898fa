"""`serve` and `demo` open their services once."""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from profilesvc import bootstrap
from profilesvc.database.engine import Storage
from profilesvc.telemetry.observer import Observer
from support.command_line import Run


@pytest.mark.parametrize("words", [["serve"], ["serve", "--demo"], ["demo"]])
def test_the_database_and_the_provider_are_opened_once(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """The first SIGTERM arrives when the server is ready."""
    opened: list[str] = []

    def counted(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any, **named: Any) -> Any:
            opened.append(name)
            return original(*values, **named)

        return call

    def announce(*_: object) -> Callable[[], None]:
        return lambda: os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Observer, "storage", counted("database", Observer.storage))
    monkeypatch.setattr("profilesvc.bootstrap._open_provider", counted("provider", bootstrap._open_provider))
    monkeypatch.setattr(Storage, "close", counted("closed", Storage.close))
    monkeypatch.setattr("profilesvc.server.serving.freeze_heap", lambda: None)
    monkeypatch.setattr(f"profilesvc.cli.{words[0]}.announce", announce)
    result = run(*words, "--port", "0")
    assert (result.exit_code, result.stderr) == (0, "")
    assert opened == ["database", "provider", "closed"]
