"""`serve`, `demo` and `emulator serve` as processes: what they print, keep, refuse, and how they stop."""

import json
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from profilesvc.serving import bind
from program import Server, caller, command, data, demo_token, environment, refusal, serving

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


def test_the_demo_prints_how_to_get_a_user_token_and_where_the_provider_is(tmp_path: Path) -> None:
    with serving(tmp_path, "demo", "--port", "0", DATA_DIR="kept here") as demo:
        lines = dict(line.split(maxsplit=2)[1:] for line in demo.introduction() if line.startswith(("user ", "client ")))
        told = [line for line in demo_lines(demo, lines) if line]
        assert told
        minted = subprocess.run(["sh", "-c", lines["token"]], env=environment(), capture_output=True, text=True)
        token = minted.stdout.removesuffix("\n")
        assert "\n" not in token
        keys = data(caller(demo, token).get("/api/v1/developer/credentials"))["credentials"]
        assert [key["client_id"] for key in keys] == [lines["id"]]
