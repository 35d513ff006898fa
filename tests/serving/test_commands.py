"""`serve`, `demo` and `emulator serve` as processes: what they print, keep, refuse, and how they stop."""

import json
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from profilesvc.serving import bind
from program import caller, command, data, demo_token, environment, refusal, serving

POSTS = {"locationId": "locations/111"}
# Stands in for curl where there is none: the options that the demo prints, and the same output.
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


def test_the_demo_prints_calls_that_work_as_pasted(tmp_path: Path, path_with_curl: str) -> None:
    with serving(tmp_path, "demo", "--port", "0") as demo:
        calls = [line for line in demo.introduction() if line.startswith(("TOKEN=", "curl "))]
        assert len(calls) == 3
        script = "\necho\n".join(calls)
        pasted = subprocess.run(
            ["sh", "-c", script], env={"PATH": path_with_curl}, capture_output=True, text=True, timeout=60
        )
        _, posts, sync = pasted.stdout.split("\n")
        assert len(json.loads(posts)["data"]["localPosts"]) == 2
        assert json.loads(sync)["data"]["fieldsUpdated"] == ["websiteUri"]


def test_the_demo_tells_its_key_how_to_get_a_user_token_and_where_the_provider_is(tmp_path: Path) -> None:
    with serving(tmp_path, "demo", "--port", "0", DATA_DIR="kept here") as demo:
        told = {line[:15].strip(): line[15:] for line in demo.introduction()}
        key = json.loads((tmp_path / "kept here" / "demo.json").read_text("utf-8"))
        assert [told["client id"], told["client secret"]] == [key["client_id"], key["client_secret"]]
        minted = subprocess.run(["sh", "-c", told["user token"]], env=environment(), capture_output=True, text=True)
        token = minted.stdout.removesuffix("\n")
        with caller(demo, token) as alice:
            keys = data(alice.get("/api/v1/developer/credentials"))["credentials"]
        assert [key["client_id"] for key in keys] == [told["client id"]]
        assert "locations" in httpx.get(f"{told['provider'].split()[0]}/__emulator/state").json()


def test_a_restart_forgets_nothing(tmp_path: Path) -> None:
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


def test_private_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    with serving(tmp_path, "demo", "--port", "0"):
        for name in ("signing_key.pem", "demo.json"):
            assert stat.S_IMODE((tmp_path / "var" / name).stat().st_mode) == 0o600


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_a_request_in_flight_finish(tmp_path: Path, number: int) -> None:
    with serving(tmp_path, "demo", "--port", "0") as demo:
        provider = next(line.split()[1] for line in demo.introduction() if line.startswith("provider "))
        slow = {"kind": "delay", "seconds": 1.5, "match": {"method": "POST"}}
        assert httpx.post(f"{provider}/__emulator/faults", json=slow).is_success
        answers = []
        with caller(demo, demo_token(demo)) as site:

            def create() -> None:
                answers.append(site.post("/api/v1/posts", params=POSTS, json={"summary": "Slow"}))

            request = threading.Thread(target=create)
            request.start()
            time.sleep(0.5)
            assert demo.stop(number) == 0
            request.join()
        assert [answer.status_code for answer in answers] == [201]


def test_a_port_that_is_taken_is_said_in_one_line(tmp_path: Path) -> None:
    with bind("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])
        for words in (["demo"], ["serve"], ["emulator", "serve"]):
            assert f"cannot listen on http://127.0.0.1:{port}: " in refusal(tmp_path, *words, "--port", port)


def test_the_demo_gives_the_emulator_another_port_when_the_next_is_taken(tmp_path: Path) -> None:
    with bind("127.0.0.1", 0) as free, bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1] - 1
        free.close()
        with serving(tmp_path, "demo", "--port", str(port)) as demo:
            provider = next(line.split()[1] for line in demo.introduction() if line.startswith("provider "))
            assert provider != f"http://127.0.0.1:{port + 1}"
            assert httpx.get(f"{provider}/__emulator/state").is_success


PRODUCTION = {
    "ENVIRONMENT": "production",
    "BASE_URL": "https://profiles.example",
    "PROVIDER__URL": "https://provider.example",
}


@pytest.mark.parametrize(
    ("words", "missing", "named"),
    [
        (["demo"], [], "PROFILESVC_ENVIRONMENT"),
        (["demo"], ["BASE_URL"], "PROFILESVC_ENVIRONMENT"),
        (["emulator", "serve"], [], "PROFILESVC_ENVIRONMENT"),
        (["serve", "--demo"], [], "PROFILESVC_ENVIRONMENT"),
        (["db", "seed"], [], "PROFILESVC_ENVIRONMENT"),
        (["serve"], ["BASE_URL"], "PROFILESVC_BASE_URL"),
        (["serve"], ["PROVIDER__URL"], "PROFILESVC_PROVIDER__URL"),
    ],
)
def test_production_refuses_and_names_the_setting(
    tmp_path: Path, words: list[str], missing: list[str], named: str
) -> None:
    settings = {name: value for name, value in PRODUCTION.items() if name not in missing}
    assert named in refusal(tmp_path, *words, **settings)
    assert not (tmp_path / "var").exists()


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
        state = httpx.get(f"{emulator.url}/__emulator/state").json()
        assert any(name.endswith(post["name"]) for name in state["posts"])
        assert emulator.stop() == 0


def test_commands_work_beside_a_running_server(tmp_path: Path) -> None:
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
