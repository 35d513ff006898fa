"""The lab's side of a deployed service: what guards it, and who undoes what the pages have made there."""

import os
from pathlib import Path
from typing import Any

import httpx

from profilesvc.lab.guard import Guard, Guarded
from profilesvc.lab.journal import FOLDER, Journal, name_of
from profilesvc.lab.preflight import look
from profilesvc.lab.undo import Undo
from profilesvc.lab.waiting import Waiting
from profilesvc.settings import LabSettings, load


def location_of(settings: LabSettings) -> str:
    """The location that was named, as `locations/…`."""
    return f"locations/{settings.location.removeprefix('locations/')}"


def target_of(settings: LabSettings) -> str:
    """The deployment's address, without a slash at the end."""
    return settings.target.rstrip("/")


def client_of(settings: LabSettings) -> httpx.Client:
    """A client with the user's token, next to those of the pages."""
    headers = {"Authorization": f"Bearer {settings.user_token.get_secret_value()}"}
    return httpx.Client(
        base_url=target_of(settings), headers=headers, timeout=30, transport=Waiting(httpx.HTTPTransport())
    )


def journal_path(settings: LabSettings, folder: Path, suffix: object = "") -> Path:
    """The journal of the location at the deployment; `suffix` for one that another process does not share."""
    return folder / FOLDER / f"{name_of(target_of(settings), location_of(settings))}{suffix}.jsonl"


class Attached:
    """A deployed service in use. `close` undoes everything, unless the runner that gave the journal does so itself."""

    def __init__(self, settings: LabSettings) -> None:
        self._settings, self._waiting = settings, list[Waiting]()
        self._given = settings.journal is not None
        self._client = client_of(settings)
        try:
            self._journal = Journal(settings.journal) if settings.journal else self._begun()
        except BaseException:
            self._client.close()
            raise
        self._baseline: dict[str, Any] = self._journal.entries()[0]["baseline"]
        self._guard = Guard(self._journal, settings.write, self._client.get)

    def _begun(self) -> Journal:
        """A journal of this process, for a page that somebody runs by hand."""
        settings = self._settings
        found = look(self._client, target_of(settings), location_of(settings), settings.write)
        journal = Journal(journal_path(settings, load().data_dir, f"-{os.getpid()}-{id(self)}"))
        journal.lock()
        journal.write(baseline=found.baseline)
        return journal

    @property
    def business_id(self) -> int:
        """The business that the location belongs to."""
        return int(self._baseline["entry"]["businessId"])

    @property
    def waited(self) -> float:
        """Seconds that the pages have waited for rate limits."""
        return sum(transport.waited for transport in self._waiting)

    def transport(self, inner: httpx.BaseTransport) -> httpx.BaseTransport:
        """Connections that wait for rate limits, and on which nothing is sent that could not be undone."""
        waiting = Waiting(inner)
        self._waiting.append(waiting)
        return Guarded(waiting, self._guard)

    def close(self) -> list[str]:
        """Undo what was made; what is left, and how to remove it."""
        self._client.close()
        problems: list[str] = []
        if not self._given:
            settings = self._settings
            problems = Undo(self._journal, settings.user_token.get_secret_value(), settings.patience_seconds).run()
            if not problems:
                self._journal.remove()
        self._journal.close()
        return problems
