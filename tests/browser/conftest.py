"""A real Chromium that reaches nothing outside, and a JupyterLab over copies of the notebooks without outputs."""

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browser.jupyter import PICTURES, ROOT, Clone, wait_for, write_setting
from support.network.ports import free_port

GIT = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false"]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP *.example 127.0.0.1",  # sites of other names, on this machine
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("browser")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Chromium, driven by Playwright; `make browser` installs both."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert path, "no Chromium on this machine: apt-get install chromium"
    PICTURES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A page; whatever it asks for outside this machine is refused, kept in `page.outside`, and fails the test."""
    context = chromium.new_context(viewport={"width": 1400, "height": 2600})
    outside: list[str] = []

    def local_only(route: Any) -> None:
        url = route.request.url
        if url.startswith(("http://127.0.0.1", "data:", "blob:")):
            route.continue_()
        else:
            outside.append(url)
            route.abort()

    context.route("**/*", local_only)
    opened = context.new_page()
    yield opened
    context.close()
    assert outside == []


def _cleared(source: Path, folder: Path) -> None:
    """A copy that was never run, so that no stored output passes for a new one."""
    notebook = json.loads(source.read_text("utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    (folder / source.name).write_text(json.dumps(notebook), "utf-8")


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a JupyterLab with settings of its own."""
    home, port = tmp_path_factory.mktemp("jupyter"), free_port()
    folder = home / "notebooks"
    folder.mkdir()
    for source in (ROOT / "notebooks").glob("*.ipynb"):
        _cleared(source, folder)
    write_setting(
        home / "settings", "apputils-extension/notification", {"fetchNews": "false", "checkForUpdates": False}
    )
    places = {f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    places |= {"HOME": str(home), "JUPYTERLAB_SETTINGS_DIR": str(home / "settings")}
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root", "--ip=127.0.0.1"]
    command += [f"--port={port}", "--ServerApp.port_retries=0", "--IdentityProvider.token=", "--expose-app-in-browser"]
    command += ["--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    command += [f"--ServerApp.root_dir={folder}"]
    with (home / "log").open("w") as log:
        server = subprocess.Popen(command, env={**os.environ, **places}, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    wait_for(f"{address}/api", server)
    yield address
    server.terminate()
    server.wait(timeout=60)


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    if shutil.which("git") is None:
        pytest.skip("git is not installed, and without it no page is trusted")
    home = tmp_path_factory.mktemp("home")
    folder, config = home / "clone", home / "config"
    shutil.copytree(ROOT / "notebooks", folder / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    shutil.copy(ROOT / ".gitignore", folder)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "pages"]):
        subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True)
    config.mkdir()
    (config / "jupyter_lab_config.json").write_text(json.dumps({"LabApp": {"expose_app_in_browser": True}}))
    port, token = free_port(), secrets.token_hex(16)
    settings = home / "settings"
    write_setting(settings, "notebook-extension/tracker", {"windowingMode": "none"})  # so that every cell is drawn
    places = {f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    env = {**os.environ, **places, "HOME": str(home), "JUPYTER_TOKEN": token}
    env |= {"JUPYTERLAB_SETTINGS_DIR": str(settings)}
    command = [sys.executable, "-m", "profilesvc", "lab", "--no-browser", "--port", str(port)]
    with (home / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
    try:
        wait_for(f"http://127.0.0.1:{port}/api", server)
        yield Clone(folder, settings, f"http://127.0.0.1:{port}", token)
    finally:
        server.terminate()
        server.wait(timeout=60)
