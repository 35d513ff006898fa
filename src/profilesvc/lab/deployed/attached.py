"""The lab's access to a deployed service, which protects it and undoes the changes of the notebooks."""

import os
from pathlib import Path

import httpx

from profilesvc.client.auth import BearerAuth
from profilesvc.client.sending import secure_url
from profilesvc.contract.json import JsonObject
from profilesvc.lab.deployed.journal import FOLDER, Journal, name_of
from profilesvc.lab.deployed.preflight import PreflightError, read_baseline
from profilesvc.lab.deployed.safeguard import Safeguard, SafeTransport
from profilesvc.lab.deployed.undo import Undo
from profilesvc.lab.deployed.waiting import Waiting
from profilesvc.settings import LabSettings, load


def location_of(settings: LabSettings) -> str:
    """Return the configured location as `locations/…`."""
    return f"locations/{settings.location.removeprefix('locations/')}"


def target_of(settings: LabSettings) -> str:
    """Return the deployment's address without a trailing slash."""
    return settings.target.rstrip("/")


def client_of(settings: LabSettings) -> httpx.Client:
    """Return a client with the user's token, separate from those of the notebooks.

    Raises:
        PreflightError: The token or the address cannot be used. An error of httpx would quote the token.
    """
    transport = Waiting(httpx.HTTPTransport())
    try:
        auth = BearerAuth(settings.user_token.get_secret_value())
    except ValueError as error:
        raise PreflightError(f"PROFILESVC_LAB__USER_TOKEN: {error}") from None
    try:
        return httpx.Client(base_url=secure_url(target_of(settings)), auth=auth, timeout=30, transport=transport)
    except ValueError as error:
        raise PreflightError(f"PROFILESVC_LAB__TARGET: {error}") from None


def journal_path(settings: LabSettings, folder: Path, suffix: object = "") -> Path:
    """Return the path of the location's journal. A `suffix` makes it the journal of one process."""
    return folder / FOLDER / f"{name_of(target_of(settings), location_of(settings))}{suffix}.jsonl"


class Attached:
    """A deployed service in use. `close` undoes all changes, unless the runner that provided the journal does so."""

    def __init__(self, settings: LabSettings) -> None:
        self._settings, self._waiting = settings, list[Waiting]()
        self._has_runner = settings.journal is not None
        self._client = client_of(settings)
        try:
            self._journal = Journal(settings.journal) if settings.journal else self._own_journal()
        except BaseException:
            self._client.close()
            raise
        self._baseline: JsonObject = self._journal.entries()[0]["baseline"]
        self._safeguard = Safeguard(self._journal, settings.write, self._client.get)

    def _own_journal(self) -> Journal:
        """Create a journal of this process, for a notebook that a person runs."""
        settings = self._settings
        state = read_baseline(self._client, target_of(settings), location_of(settings), settings.write)
        journal = Journal(journal_path(settings, load().data_dir, f"-{os.getpid()}-{id(self)}"))
        journal.lock()
        journal.write(baseline=state.baseline)
        return journal

    @property
    def business_id(self) -> int:
        return int(self._baseline["entry"]["businessId"])

    @property
    def waited(self) -> float:
        """The seconds that the notebooks have waited for rate limits."""
        return sum(transport.waited for transport in self._waiting)

    def transport(self, inner: httpx.BaseTransport) -> httpx.BaseTransport:
        """Return connections that wait for rate limits and reject requests that cannot be undone."""
        waiting = Waiting(inner)
        self._waiting.append(waiting)
        return SafeTransport(waiting, self._safeguard)

    def close(self) -> list[str]:
        """Undo the changes. Return a sentence for each that is left, with the command that removes it."""
        self._client.close()
        problems: list[str] = []
        if not self._has_runner:
            problems = Undo(self._journal, self._settings).run()
            if not problems:
                self._journal.remove()
        self._journal.close()
        return problems
