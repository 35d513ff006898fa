"""`profilesvc openapi`: print the OpenAPI document without a server."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, cast

import typer


def openapi(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file instead of stdout.")] = None,
) -> None:
    """Print the OpenAPI document."""
    import orjson

    from profilesvc.api.app import build
    from profilesvc.domain.entropy import SystemEntropy

    app = build(lambda: nullcontext(cast(Any, None)), SystemEntropy())  # never started, so it opens nothing
    document = app.extensions["QUART_SCHEMA"].openapi_provider.schema()
    text = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, "utf-8")
