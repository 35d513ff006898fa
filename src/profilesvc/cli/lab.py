"""`profilesvc lab`: open the notebooks in JupyterLab."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from profilesvc.fixtures import how_to_install
from profilesvc.settings import load

_CHECKOUT = Path(__file__).parents[3] / "notebooks"


def lab(
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 selects a free port.")] = 8888,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Open the notebooks in JupyterLab."""
    if find_spec("jupyterlab") is None:
        raise OSError(f"JupyterLab is not installed: {how_to_install('notebooks')}")
    folder = next((path for path in (Path("notebooks"), _CHECKOUT) if path.is_dir()), None)
    if folder is None:
        raise FileNotFoundError("there is no directory notebooks; run this command in a checkout of profilesvc")
    from profilesvc.lab.jupyter import options, trust_committed, without_news

    folder, data_dir = folder.resolve(), (load().data_dir / "jupyter").resolve()
    if not trust_committed(folder, data_dir):
        typer.echo(
            "the notebooks are not committed in git, so Jupyter shows their outputs only after you trust them", err=True
        )
    command = [sys.executable, "-m", "jupyter", "lab", f"--port={port}", *options(folder, data_dir)]
    if not browser:
        command.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    os.execve(sys.executable, command, without_news(data_dir, os.environ))  # noqa: S606  Jupyter replaces this process, so signals and exit code are its own
