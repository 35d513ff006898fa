"""Runs the blocks of a page as its readers do: in an empty folder, from top to bottom."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from support.pages.blocks import Block
from support.program import START_SECONDS, controls, environment
from support.repository import ROOT
from support.waiting import patience

_BETWEEN = "--- next block ---"
_INSTALLED = Path(sys.executable).parent
# `make run` as the page has it, with this test's Python in place of a new environment, and a free port.
_MAKE = f"""#!/bin/sh
[ "$1" = run ] && exec {shutil.which("make")} --no-print-directory -C {ROOT} run RUNTIME= BIN={_INSTALLED} PORT=0
exec {shutil.which("make")} -C {ROOT} --dry-run "$@" >/dev/null
"""
_PYTHON = "import os\nglobals().update({name: os.environ[name] for name in os.environ if name.isupper()})\n"
_PRINT = {"sh": f"echo; echo '{_BETWEEN}'", "python": f"print('\\n{_BETWEEN}')", "php": f'echo "\\n{_BETWEEN}\\n";'}
LANGUAGES = tuple(_PRINT)


def program_of(language: str) -> str | None:
    """Return the program that runs a language, or None where this machine has none."""
    return sys.executable if language == "python" else shutil.which("bash" if language == "sh" else language)


class Folder:
    """A reader's folder. `values` replaces `export NAME=…`; `addresses` maps the ports of the page to the real ones."""

    def __init__(self, path: Path, **variables: str) -> None:
        self.path = path
        self.values: dict[str, str] = {}
        self.addresses: dict[str, str] = {}
        programs = path / ".bin"
        programs.mkdir()
        (programs / "make").write_text(_MAKE)
        (programs / "make").chmod(0o755)
        (path / ".venv").symlink_to(_INSTALLED.parent)
        self.variables = environment() | {"NO_PROXY": "127.0.0.1", **variables}
        self.variables["PROFILESVC_DATA_DIR"] = str(path / "var")  # `make run` changes the directory
        self.variables["PATH"] = os.pathsep.join([str(programs), str(_INSTALLED), os.environ["PATH"]])

    @contextlib.contextmanager
    def serving(self, block: Block) -> Iterator[list[str]]:
        """Run a command that serves. Return the lines that it has printed up to the last one of its introduction."""
        port = found[1] if (found := re.search(r"--port (\d+)", block.text)) else "8000"
        command = re.sub(r"--port \d+", "--port 0", block.text)
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self.path,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        late = threading.Timer(START_SECONDS, os.killpg, (process.pid, signal.SIGKILL))
        late.start()
        try:
            assert process.stdout is not None
            lines: list[str] = []
            last = "/api/v1/sync/" if "make run" in command else "control token"
            while not (lines and last in lines[-1]):
                lines.append(process.stdout.readline())
                assert lines[-1], f"{block} ended: {lines}"
            late.cancel()
            self._learn(port, lines)
            yield [self._as_written(line) for line in lines]
        finally:
            late.cancel()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.communicate(timeout=patience(60))

    def _learn(self, port: str, lines: list[str]) -> None:
        printed = dict(re.findall(r"^(listening on|provider|client id|client secret) +(\S+)", "".join(lines), re.M))
        self.addresses[f"http://127.0.0.1:{port}"] = printed["listening on"]
        if "provider" in printed:
            self.addresses[f"http://127.0.0.1:{int(port) + 1}"] = printed["provider"]
        self.values |= {name.upper().replace(" ", "_"): printed[name] for name in printed if name.startswith("client")}
        self.variables |= self.values | {"BASE_URL": printed["listening on"]}

    def reset_provider(self) -> None:
        """Bring the emulator back to the demo data."""
        if provider := self.addresses.get("http://127.0.0.1:8001"):
            with controls(self.path / "var", provider) as control:
                control.post("reset").raise_for_status()

    def _as_written(self, text: str) -> str:
        for written, real in self.addresses.items():
            text = text.replace(real, written)
        return text

    def _to_run(self, block: Block) -> str:
        text = re.sub(r"^(export (\w+)=)…$", lambda found: found[1] + self.values[found[2]], block.text, flags=re.M)
        for written, real in self.addresses.items():
            text = text.replace(written, real)
        return text

    def run(self, blocks: list[Block]) -> list[str]:
        """Run blocks of one language as one program. Return what each of them has printed."""
        language = blocks[0].language
        program = program_of(language)
        assert program is not None
        parts = [self._to_run(block).removeprefix("<?php\n") + _PRINT[language] + "\n" for block in blocks]
        after = {"sh": "env -0 >.variables\n"}.get(language, "")
        before = {"sh": "set -eauo pipefail\n", "python": _PYTHON, "php": "<?php\n"}[language]
        script = self.path / f"blocks.{language}"
        script.write_text(before + "".join(parts) + after, "utf-8")
        done = subprocess.run(
            [program, str(script)], cwd=self.path, env=self.variables, capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, f"{blocks[0]}: {done.stdout}{done.stderr}"
        if after:
            variables = (self.path / ".variables").read_text("utf-8").split("\0")
            self.variables |= dict(each.split("=", 1) for each in variables if "=" in each)
        return [self._as_written(text) for text in done.stdout.split(_BETWEEN)[: len(blocks)]]
