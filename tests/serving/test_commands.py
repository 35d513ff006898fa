"""`serve`, `demo` and `emulator serve` as processes: what they print, keep, refuse, and how they stop."""

import json
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from profilesvc.server.serving import bind
from support.network.ports import free_port
from support.program import Server, caller, command, controls, data, demo_token, environment, serving
from support.waiting import until

POSTS = {"locationId": "locations/111"}
# Replaces curl if it is missing: the options that the demo prints, and the same output.
CURL = """#!{python}
import sys, urllib.request
words, headers, body, url = sys.argv[1:], {{}}, None, ""
while words:
    word = words.pop(0)
    if word == "-H":
        name, _, value = words.pop(0).partition(": ")
        headers[name] = value
    elif word == "-d":
        body = words.pop(0).encode()
    elif word != "-s":
        url = word
print(urllib.request.urlopen(urllib.request.Request(url, body, headers)).read().decode(), end="")
"""


class Demo(NamedTuple):
    """A running demo, its files, and what it printed after its first line."""

    server: Server
    data_dir: Path
    lines: list[str]


@pytest.fixture
def path_with_curl(tmp_path: Path) -> str:
    path = environment()["PATH"]
    if shutil.which("curl"):
        return path
    shim = tmp_path / "bin" / "curl"
    shim.parent.mkdir()
    shim.write_text(CURL.format(python=sys.executable))
    shim.chmod(0o755)
    return f"{shim.parent}:{path}"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """One demo, in a folder whose name needs quotes, for the tests that only look at it."""
    folder = tmp_path_factory.mktemp("demo")
    with serving(folder, "demo", "--port", "0", DATA_DIR="kept here") as server:
        yield Demo(server, folder / "kept here", server.introduction())


def test_the_demo_prints_calls_that_work_as_pasted(demo: Demo, path_with_curl: str) -> None:
    calls = [line for line in demo.lines if line.startswith(("TOKEN=", "curl "))]
    assert len(calls) == 3
    script = "\necho\n".join(calls)
    pasted = subprocess.run(
        ["sh", "-c", script], env={"PATH": path_with_curl}, capture_output=True, text=True, timeout=60
    )
    _, posts, sync = pasted.stdout.split("\n")
    assert len(json.loads(posts)["data"]["localPosts"]) == 2
    assert json.loads(sync)["data"]["fieldsUpdated"] == ["websiteUri"]


def test_the_demo_prints_its_key_the_command_for_a_user_token_and_the_provider(demo: Demo) -> None:
    told = {line[:15].strip(): line[15:] for line in demo.lines}
    key = json.loads((demo.data_dir / "demo.json").read_text("utf-8"))
    assert [told["client id"], told["client secret"]] == [key["client_id"], key["client_secret"]]
    assert told["key created"].endswith(" UTC")
    minted = subprocess.run(["sh", "-c", told["user token"]], env=environment(), capture_output=True, text=True)
    token = minted.stdout.removesuffix("\n")
    with caller(demo.server, token) as alice:
        keys = data(alice.get("/api/v1/developer/credentials"))["credentials"]
    assert [key["client_id"] for key in keys] == [told["client id"]]
    with controls(demo.data_dir, told["provider"].split()[0]) as provider:
        assert "locations" in provider.get("state").json()
        assert provider.headers["Authorization"] == f"Bearer {told['control token'].split()[0]}"


def test_only_their_owner_can_read_private_files(demo: Demo) -> None:
    for name in ("profilesvc.db", "profilesvc.db-wal", "demo.json", "emulator.db", "emulator.db-wal", "emulator_token"):
        assert stat.S_IMODE((demo.data_dir / name).stat().st_mode) == 0o600, name


def test_a_restart_loses_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, "demo", "--port", "0") as demo:
        port, token = demo.port, demo_token(demo)
        kept = (tmp_path / "var" / "demo.json").read_bytes()
        with caller(demo, token) as site:
            post = data(site.post("/api/v1/posts", params=POSTS, json={"summary": "Kept"}))
        demo.introduction()
        assert demo.stop() == 0
    with serving(tmp_path, "demo", "--port", str(port)) as demo, caller(demo, token) as site:
        assert (tmp_path / "var" / "demo.json").read_bytes() == kept
        names = [found["name"] for found in data(site.get("/api/v1/posts", params=POSTS))["localPosts"]]
        assert post["name"] in names
        demo.introduction()
        assert demo.stop(signal.SIGINT) == 0


def test_the_demo_makes_a_new_key_for_a_revoked_one(tmp_path: Path) -> None:
    with serving(tmp_path, "demo", "--port", "0"):
        old = json.loads((tmp_path / "var" / "demo.json").read_text("utf-8"))["client_id"]
    assert command(tmp_path, "keys", "revoke", old).returncode == 0
    with serving(tmp_path, "demo", "--port", "0") as demo:
        assert json.loads((tmp_path / "var" / "demo.json").read_text("utf-8"))["client_id"] != old
        assert demo_token(demo)


def test_after_a_signal_a_request_in_flight_finishes(tmp_path: Path) -> None:
    with serving(tmp_path, "demo", "--port", "0") as demo:
        provider = next(line.split()[1] for line in demo.introduction() if line.startswith("provider "))
        slow = {"kind": "delay", "seconds": 2, "match": {"method": "POST"}}
        answers = []
        with caller(demo, demo_token(demo)) as site, controls(tmp_path / "var", provider) as control:
            assert control.post("faults", json=slow).is_success

            def create() -> None:
                answers.append(site.post("/api/v1/posts", params=POSTS, json={"summary": "Slow"}))

            request = threading.Thread(target=create)
            request.start()
            until(lambda: not control.get("state").json()["faults"], "the provider to delay the request")
            assert demo.stop() == 0
            request.join()
        assert [answer.status_code for answer in answers] == [201]


def neighbours() -> tuple[socket.socket, socket.socket]:
    """Two sockets that hold a port and the next one."""
    while True:
        first = bind("127.0.0.1", free_port())
        try:
            return first, bind("127.0.0.1", first.getsockname()[1] + 1)
        except OSError:
            first.close()


def test_the_emulator_of_the_demo_uses_another_port_if_the_next_is_used(tmp_path: Path) -> None:
    free, taken = neighbours()
    port = free.getsockname()[1]
    free.close()
    with taken, serving(tmp_path, "demo", "--port", str(port)) as demo:
        provider = next(line.split()[1] for line in demo.introduction() if line.startswith("provider "))
        assert provider != f"http://127.0.0.1:{port + 1}"
        with controls(tmp_path / "var", provider) as control:
            assert control.get("state").is_success


def test_service_and_emulator_run_as_two_processes(tmp_path: Path) -> None:
    """The service needs the provider's address and nothing else: no OAuth login towards an emulator."""
    with serving(tmp_path, "emulator", "serve", "--port", "0") as emulator:
        with serving(tmp_path, "serve", "--demo", "--port", "0", PROVIDER__URL=emulator.url) as service:
            token = command(tmp_path, "users", "token", "alice@example.com").stdout.strip()
            with caller(service, token) as alice:
                post = data(alice.post("/api/v1/posts", params=POSTS, json={"summary": "Over the wire"}))
            imported = command(
                tmp_path,
                *("locations", "import", "alice@example.com", "--account", "accounts/1", "--json"),
                PROVIDER__URL=emulator.url,
            )
            assert "locations/119" in json.loads(imported.stdout)["locations"]
            assert service.stop() == 0
        with controls(tmp_path / "var", emulator.url) as control:
            state = control.get("state").json()
        assert any(name.endswith(post["name"]) for name in state["posts"])
        assert emulator.read_line().startswith("control token  ")
        assert emulator.stop() == 0


def test_commands_work_next_to_a_running_server(tmp_path: Path) -> None:
    with serving(tmp_path, "serve", "--demo", "--port", "0") as service:
        added = command(tmp_path, "users", "add", "zoe@example.com", "--json")
        assert json.loads(added.stdout)["plan"] == "starter"
        imported = command(tmp_path, "locations", "import", "alice@example.com", "--account", "accounts/1", "--json")
        assert len(json.loads(imported.stdout)["locations"]) == 5
        token = command(tmp_path, "users", "token", "zoe@example.com").stdout.strip()
        with caller(service, token) as zoe:
            assert data(zoe.get("/api/v1/developer/credentials")) == {"credentials": []}
            assert command(tmp_path, "users", "logout", "zoe@example.com").returncode == 0
            assert zoe.get("/api/v1/developer/credentials").status_code == 401
        assert service.stop() == 0


def test_a_wildcard_address_is_not_an_issuer(tmp_path: Path) -> None:
    with serving(tmp_path, "serve", "--host", "0.0.0.0", "--port", "0") as service:
        assert service.url.startswith("http://0.0.0.0:")
        assert (tmp_path / "var" / "base_url").read_text() == f"http://127.0.0.1:{service.port}\n"


def test_a_second_server_on_the_same_sqlite_file_is_rejected_and_commands_are_not(tmp_path: Path) -> None:
    with serving(tmp_path, "serve", "--demo", "--port", "0") as first:
        second = command(tmp_path, "serve", "--port", "0")
        assert (second.returncode, second.stdout) == (1, "")
        assert "another server runs on var/profilesvc.db" in second.stderr
        assert "PROFILESVC_DATABASE_URL=postgresql+asyncpg" in second.stderr
        assert len(second.stderr.splitlines()) == 1
        assert command(tmp_path, "demo", "--port", "0").returncode == 1
        emulator = command(tmp_path, "emulator", "serve", "--port", "0")
        assert (emulator.returncode, "another server runs on var/emulator.db" in emulator.stderr) == (1, True)
        assert not (tmp_path / "var" / "emulator_token").exists()
        assert "alice" in command(tmp_path, "users", "list").stdout
        first.kill()
    with serving(tmp_path, "emulator", "serve", "--port", "0"):
        assert "another server runs on var/emulator.db" in command(tmp_path, "serve", "--port", "0").stderr
    with serving(tmp_path, "serve", "--port", "0") as again:  # the lock ended with its holder
        assert again.stop() == 0
