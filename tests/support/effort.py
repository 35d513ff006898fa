"""How much a test tries: little in `make test`, much in `make fuzz`."""

import os
from typing import TypeVar

Amount = TypeVar("Amount")
FULL = os.environ.get("PROFILESVC_FUZZ") == "1"


def effort(short: Amount, full: Amount) -> Amount:
    """The first in `make test`, the second in `make fuzz`."""
    return full if FULL else short
