"""How much a test tries: much in `make fuzz`, little elsewhere."""

import os
from typing import TypeVar

Amount = TypeVar("Amount")
FULL = os.environ.get("PROFILESVC_FUZZ") == "1"


def effort(short: Amount, full: Amount) -> Amount:
    """The second in `make fuzz`, else the first."""
    return full if FULL else short
