"""The files of `data/fixtures`, from the installed wheel or a source checkout."""

import functools
import json
from pathlib import Path
from typing import Any

# The kids of signing_key.pem and refresh_key.pem. Production rejects these keys, because they are published.
TEST_KEY_IDS = frozenset({"IyO9Z-a1eBwiZrd3KvarpiDGwxKu80PEVdHaPyHNYrg", "O5VJYYhAbajymh2bnKNUfiLY77AlKDgHndtTbc1W99U"})
_PACKAGE = Path(__file__).parent
_FOLDERS = (_PACKAGE / "fixtures", _PACKAGE.parents[1] / "data" / "fixtures")


def how_to_install(extra: str) -> str:
    """Return the command that adds an extra to this installation: a checkout, or a wheel."""
    if (Path(__file__).parents[2] / "pyproject.toml").is_file():
        return f"pip install '.[{extra}]' in the checkout"
    return f"pip install '{__name__.partition('.')[0]}[{extra}] @ file:///PATH/TO/THE/WHEEL'"


def fixture_path(name: str) -> Path:
    """Return the path of a fixture file.

    The wheel has the folder inside the package (force-include in pyproject.toml), a checkout has it in `data`.

    Raises:
        FileNotFoundError: The file exists in neither place.
    """
    for folder in _FOLDERS:
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(f"fixture {name} is neither in the package nor in data/fixtures of a checkout")


@functools.cache
def load_world() -> dict[str, Any]:
    """Return the demo data: users, businesses, accounts, and locations with their provider documents.

    It is read once for all callers, so do not change it.

    A location's `profile` is the service's data. `provider_profile` has the fields that differ at the provider,
    `last_sync` the fields that were last sent (null: never synced), and `last_synced_at` the time.
    """
    world: dict[str, Any] = json.loads(fixture_path("world.json").read_text(encoding="utf-8"))
    return world
