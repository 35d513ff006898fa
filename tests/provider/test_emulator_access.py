"""The control API on a socket: its token, JSON only, no foreign Host; and files that only their owner may read."""

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from profilesvc.domain.entropy import SeededEntropy
from profilesvc.domain.time import FrozenClock
from profilesvc.emulator.access import ControlAccess
from profilesvc.emulator.app import create_emulator
from profilesvc.fixtures import load_world
from support.provider.rig import START, emulator_at, served

TOKEN = "the-token-of-this-start"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
FAULT = '{"kind": "status"}'


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    app = create_emulator(
        tmp_path_factory.mktemp("guarded") / "emulator.db",
        clock=FrozenClock(START),
        entropy=SeededEntropy("ids"),
        world=load_world(),
        access=ControlAccess(TOKEN),
    )
    with served(app) as origin:
        yield origin


@pytest.fixture
def http(origin: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=origin, trust_env=False, timeout=60) as client:
        yield client


def faults(http: httpx.Client) -> int:
    return len(http.get("/__emulator/state", headers=BEARER).json()["faults"])


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (401, {}),
        (401, {"Authorization": "Bearer"}),
        (401, {"Authorization": f"Bearer {TOKEN}x"}),
        (401, {"Authorization": f"Basic {TOKEN}"}),
        (401, {"Authorization": "Bearer \xe9"}),
        (403, {**BEARER, "Host": "attacker.example"}),
        (403, {**BEARER, "Host": "127.0.0.1.attacker.example:8001"}),
        (403, {**BEARER, "Host": "93.184.216.34"}),
        (403, {**BEARER, "Host": "[::"}),
        (403, {**BEARER, "Host": "localhost@attacker.example"}),
        (415, {**BEARER, "Content-Type": "text/plain"}),
        (415, {**BEARER, "Content-Type": "application/x-www-form-urlencoded"}),
        (415, BEARER),
    ],
)
def test_a_page_of_another_site_changes_nothing(http: httpx.Client, status: int, headers: dict[str, str]) -> None:
    before = faults(http)
    sent = {"Content-Type": "application/json", **headers} if status != 415 else headers
    raw = [(name.encode(), value.encode("latin-1")) for name, value in sent.items()]
    answer = http.post("/__emulator/faults", content=FAULT, headers=raw)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, status)
    assert TOKEN not in answer.text
    assert faults(http) == before


@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE"])
@pytest.mark.parametrize("path", ["state", "faults", "clock", "requests", "reset"])
def test_nothing_of_it_is_open(http: httpx.Client, method: str, path: str) -> None:
    assert http.request(method, f"/__emulator/{path}").status_code in {401, 404}
    with httpx.Client(trust_env=False, timeout=60) as other:
        whole = httpx.Request(method, f"{http.base_url}/__emulator/{path}", headers={"Host": "attacker.example"})
        assert other.send(whole).status_code in {403, 404}


def test_an_absolute_target_is_no_way_around(origin: str) -> None:
    """A request line may name the whole URL; the path is judged all the same."""
    address = httpx.URL(origin)
    with socket.create_connection((address.host, address.port or 80), timeout=10) as raw:
        raw.sendall(f"GET {origin}/__emulator/state HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        first = raw.recv(100)
    assert b" 401 " in first or b" 400 " in first


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.9.9.9:8001", "[::1]:8001"])
def test_its_owner_has_access_under_every_name_of_this_machine(http: httpx.Client, host: str) -> None:
    before = faults(http)
    json_of = {**BEARER, "Host": host, "Content-Type": "application/json; charset=utf-8"}
    assert http.post("/__emulator/faults", content=FAULT, headers=json_of).status_code == 200
    assert faults(http) == before + 1
    assert http.post("/__emulator/reset", headers={**BEARER, "Host": host}).status_code == 200


def test_the_providers_own_paths_ask_for_the_providers_own_token(http: httpx.Client) -> None:
    form = {"grant_type": "refresh_token", "client_id": "x", "client_secret": "y", "refresh_token": "z"}
    token = http.post("/token", data=form, headers={"Host": "provider.test"}).json()["access_token"]
    headers = {"Authorization": f"Bearer {token}", "Host": "provider.test"}
    assert http.get("/v1/accounts", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("served_on", "host", "let_in"),
    [
        ("emulator.test", "emulator.test:8001", True),
        ("emulator.test", "10.0.0.7", False),
        ("0.0.0.0", "10.0.0.7:8001", True),
        ("::", "[fd00::7]:8001", True),
        ("0.0.0.0", "attacker.example", False),
        ("127.0.0.1", "", False),
    ],
)
def test_the_configured_host_is_accepted(served_on: str, host: str, let_in: bool) -> None:
    assert ControlAccess(TOKEN, served_on).is_own_host(host) == let_in


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_only_their_owner_can_read_its_files(tmp_path: Path) -> None:
    path = tmp_path / "emulator.db"
    before = os.umask(0)
    try:
        async with emulator_at(tmp_path, FrozenClock(START)).test_app():
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in files(tmp_path)}
        assert modes == dict.fromkeys(("emulator.db", "emulator.db-wal", "emulator.db-shm"), 0o600)
        path.chmod(0o644)  # as an older version left it
        async with emulator_at(tmp_path, FrozenClock(START)).test_app():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(before)
