"""Shared parts of the commands: settings, services, and files in DATA_DIR."""

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from profilesvc.settings import Settings, load

if TYPE_CHECKING:
    from profilesvc.services.context import Services

Result = TypeVar("Result")
BASE_URL_FILE = "base_url"
LARGEST = 2**63 - 1  # number that the database can store
Id = Annotated[int, typer.Argument(min=1, max=LARGEST)]
DEFAULT_BASE_URL = "http://127.0.0.1:8000"


def command_settings() -> Settings:
    """Return the settings with the base URL that `serve` or `demo` published last, which tokens must contain."""
    settings = load()
    if settings.base_url:
        return settings
    try:
        published = (settings.data_dir / BASE_URL_FILE).read_text("utf-8").strip()
    except FileNotFoundError:
        published = DEFAULT_BASE_URL
    return settings.model_copy(update={"base_url": published})


def run(
    work: "Callable[[Services], Awaitable[Result]]", *, provider: bool = False, accepts_new_pepper: bool = False
) -> Result:
    """Open the services, without periodic work, run `work` with them and close them; the provider if `provider`."""
    from profilesvc.bootstrap import Runtime, open_services

    async def opened() -> Result:
        runtime = Runtime(accepts_new_pepper=accepts_new_pepper)
        async with open_services(command_settings(), runtime, provider=provider, jobs=False) as services:
            return await work(services)

    return asyncio.run(opened())


def write_private(path: Path, text: str) -> None:
    """Replace a file atomically. Only its owner can read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)  # mode 0600
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
