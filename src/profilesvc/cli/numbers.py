"""Numbers that name rows of the database, with the range that it can store."""

from typing import Annotated

import typer

LARGEST = 2**63 - 1
Id = Annotated[int, typer.Argument(min=1, max=LARGEST)]
