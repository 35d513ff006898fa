"""`profilesvc openapi`: print the OpenAPI document without a server."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, cast

import typer


def openapi(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file instead of stdout.")] = None,
) -> None:
    """Print the OpenAPI document."""
    from profilesvc.api.app import build
    from profilesvc.api.openapi.sharing import text_of
    from profilesvc.domain.entropy import SystemEntropy
    from profilesvc.rooms import ROOMS

    endpoints = [blueprint for room in ROOMS if room.name != "dashboard" for blueprint in room.blueprints()]
    app = build(lambda: nullcontext(cast(Any, None)), SystemEntropy(), endpoints)  # never started, so it opens nothing
    document = app.extensions["QUART_SCHEMA"].openapi_provider.schema()
    text = text_of(document) + "\n"
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, "utf-8")
