"""The files of `data/fixtures`, in the installed wheel and in a source checkout."""

import json
from pathlib import Path
from typing import Any

# The names of signing_key.pem and refresh_key.pem. They are published, so production refuses them.
TEST_KEY_IDS = frozenset({"IyO9Z-a1eBwiZrd3KvarpiDGwxKu80PEVdHaPyHNYrg", "O5VJYYhAbajymh2bnKNUfiLY77AlKDgHndtTbc1W99U"})
_PACKAGE = Path(__file__).parent
_FOLDERS = (_PACKAGE / "fixtures", _PACKAGE.parents[1] / "data" / "fixtures")


def fixture_path(name: str) -> Path:
    """Return the path of a fixture file.

    The wheel has the folder inside the package (pyproject's force-include), a checkout next to `src`.

    Raises:
        FileNotFoundError: The file exists in neither place.
    """
    for folder in _FOLDERS:
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(f"fixture {name} is neither in the package nor in data/fixtures of a checkout")


def load_world() -> dict[str, Any]:
    """Return the demo data: users, businesses, accounts, and locations with their provider documents.

    A location's `profile` is what the service knows; `provider_profile` has the fields that differ at the provider,
    `last_sync` the fields that were last sent (null: never synced) and `last_synced_at` the time.
    """
    world: dict[str, Any] = json.loads(fixture_path("world.json").read_text(encoding="utf-8"))
    return world
