"""The wheel in new environments: the client without the server, and the server."""

import contextlib
import importlib.metadata
import json
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from package.tools import FOLDER, run, tool
from profilesvc import __version__
from support.program import environment
from support.repository import ROOT

pytestmark = pytest.mark.package

CLIENT = {
    "annotated-types",
    "anyio",
    "certifi",
    "dnspython",
    "email-validator",
    "h11",
    "httpcore",
    "httpx",
    "idna",
    "profilesvc",
    "pydantic",
    "pydantic-core",
    "typing-extensions",
    "typing-inspection",
    "tzdata",
    "phonenumbers",
}
STORY = """
import json, sys
from profilesvc.client import ProfileClient

url, file = sys.argv[1:]
key = json.load(open(file))
with ProfileClient.service(url, key["client_id"], key["client_secret"]) as profiles:
    print(profiles.heartbeat(plugin_version="2.4.1").received)
"""


IMPORTS = """
import importlib, pkgutil
import profilesvc

for module in pkgutil.walk_packages(profilesvc.__path__, "profilesvc."):
    if not module.name.startswith("profilesvc.storage.migrations."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            print(module.name, error.name)
"""


def canonical(name: str) -> str:
    """Return the name of a package as PEP 503 writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def packages(python: Path) -> set[str]:
    """Return the names of the packages in an environment."""
    (folder,) = python.parents[1].glob("lib/python*/site-packages")
    return {canonical(each.metadata["Name"]) for each in importlib.metadata.distributions(path=[str(folder)])}


@contextlib.contextmanager
def demo(python: Path, folder: Path) -> Iterator[str]:
    """The demo of an installed server in a folder of its own, which ends with 0 on SIGTERM."""
    words = [str(python.with_name("profilesvc")), "demo", "--port", "0"]
    with subprocess.Popen(words, cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert first.startswith("listening on http://127.0.0.1:"), first
            yield first.removeprefix("listening on ").strip()
            process.send_signal(signal.SIGTERM)
            process.stdout.read()
            assert process.wait(60) == 0
        finally:
            process.kill()


def components(python: Path) -> list[dict[str, Any]]:
    """Return what an environment consists of, and write it to build/package/sbom.json."""
    file = FOLDER / "sbom.json"
    options = ("--pyproject", ROOT / "pyproject.toml", "--output-reproducible", "--validate", "--output-file", file)
    run(tool("cyclonedx-py"), "environment", *options, python)
    document = json.loads(file.read_text("utf-8"))
    assert document["metadata"]["component"]["name"] == "profilesvc"
    return list(document["components"])


def test_the_client_needs_no_package_of_the_server(client_python: Path) -> None:
    assert packages(client_python) == CLIENT


def test_without_the_server_the_command_names_the_extra(client_python: Path) -> None:
    hint = "profilesvc: the commands need the server, which is not installed (no package typer): "
    for words in ([client_python.with_name("profilesvc")], [client_python, "-m", "profilesvc", "--version"]):
        assert run(*words, status=1).stderr == f"{hint}pip install 'profilesvc[server] @ file:///PATH/TO/THE/WHEEL'\n"


def test_the_server_serves_the_client_and_stops_with_0(
    client_python: Path, server_python: Path, tmp_path: Path
) -> None:
    with demo(server_python, tmp_path) as url:
        said = run(client_python, "-c", STORY, url, tmp_path / "var" / "demo.json", cwd=tmp_path)
    assert said.stdout == "True\n"


def test_the_server_has_all_packages_that_it_imports(server_python: Path) -> None:
    """Except for notebooks and traces, which have an extra each."""
    missing = dict(line.split() for line in run(server_python, "-c", IMPORTS).stdout.splitlines())
    assert set(missing.values()) == {"nbclient", "nbformat", "opentelemetry"}
    assert all(name.startswith(("profilesvc.lab.", "profilesvc.telemetry.tracing")) for name in missing)


def test_the_version_is_the_same_everywhere(server_python: Path) -> None:
    for words in ([server_python.with_name("profilesvc")], [server_python, "-m", "profilesvc"]):
        assert run(*words, "--version").stdout == f"profilesvc {__version__}\n"
    assert json.loads((ROOT / "openapi.json").read_text("utf-8"))["info"]["version"] == __version__
    release = re.sub(r"rc\d+$", "", __version__)  # a candidate has the entry of its release
    assert f"\n## [{release}] - " in (ROOT / "CHANGELOG.md").read_text("utf-8")
    typescript = json.loads((ROOT / "clients" / "typescript" / "package.json").read_text("utf-8"))["version"]
    assert typescript == re.sub(r"(\d)rc(\d+)$", r"\1-rc.\2", __version__)


def test_every_component_of_the_server_has_a_tested_version(server_python: Path) -> None:
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text("utf-8").split())
    expected = {(canonical(name), version) for name, version in pinned.items()}
    found = {(canonical(each["name"]), each["version"]) for each in components(server_python)}
    assert found - {("profilesvc", __version__)} <= expected
    assert {name for name, _ in found} - {"profilesvc"} == packages(server_python) - {"profilesvc"}


def test_every_requirement_has_a_tested_version() -> None:
    """A group or extra whose package is not pinned would get another version tomorrow."""
    pinned = {canonical(line.split("==")[0]) for line in (ROOT / "constraints.txt").read_text("utf-8").split()}
    document = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    lists = [document["project"]["dependencies"], *document["project"]["optional-dependencies"].values()]
    lists += [document["dependency-groups"][name] for name in ("test", "lint", "package")]
    names = {canonical(re.match(r"[\w.-]+", each)[0]) for part in lists for each in part}  # type: ignore[index]
    assert names - {"profilesvc"} <= pinned


def test_the_tested_versions_fit_all_groups_and_extras() -> None:
    """Some groups have packages that are not pinned, so a pin can make their installation impossible."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    groups = [word for name in document["dependency-groups"] for word in ("--group", name)]
    extras = ",".join(document["project"]["optional-dependencies"])
    words = ("install", "--dry-run", "--quiet", "--constraint", "constraints.txt", *groups, f".[{extras}]")
    run(sys.executable, "-m", "pip", *words)
