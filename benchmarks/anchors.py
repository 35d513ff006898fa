"""The upper anchors: servers written by hand on the tables of the service, and the proof that they do its work (D-139).

They run on PostgreSQL, each on a database of its own that is filled like the service's. `python -m benchmarks.anchors`
compares them with the service and measures nothing.
"""

import asyncio
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg

from benchmarks.database import Postgres
from benchmarks.peers.anchor import FOLDER
from benchmarks.servers import SERVE, Server
from benchmarks.work import LOCATION, Access, Request, request_of
from benchmarks.world import BASE_URL, OWNER_ID, prepare_service, service_environment
from profilesvc.tokens.keys import read_key

NAMES = ("starlette", "go")
_GO_PATH = Path("/usr/share/gocode")  # where Debian's packages of Go libraries are
_DRIVER = _GO_PATH / "src/github.com/jackc/pgx/v4"
_UVICORN = ["-m", "uvicorn", "--port", "{port}", "--log-level", "warning", "--no-access-log"]
_WRITTEN_WITHIN = 10  # seconds until the counts of requests and grants are stored
_FORGET = "DELETE FROM revocations"
_STATES = {  # what an operator or the owner does to a key, and how to take it back
    "a revoked token": ("INSERT INTO revocations VALUES (1, $1, 'token', 0, 9000000000000)", _FORGET),
    "a revoked family": ("INSERT INTO revocations VALUES (1, $2, 'family', 0, 9000000000000)", _FORGET),
    "a deactivated key": (
        "INSERT INTO holds (owner_id, key_id, reason, severity, set_at) "
        "SELECT owner_id, id, 'user_requested', 1, 0 FROM keys WHERE client_id = $3",
        "DELETE FROM holds",
    ),
    "a key of a later epoch": (
        "UPDATE keys SET epoch = epoch + 1 WHERE client_id = $3",
        "UPDATE keys SET epoch = epoch - 1 WHERE client_id = $3",
    ),
    "a revoked key": (
        "UPDATE keys SET revoked_at = 1 WHERE client_id = $3",
        "UPDATE keys SET revoked_at = NULL WHERE client_id = $3",
    ),
    "an expired key": (
        "UPDATE keys SET expires_at = 1 WHERE client_id = $3",
        "UPDATE keys SET expires_at = NULL WHERE client_id = $3",
    ),
    "a suspended owner": ("UPDATE users SET suspended_at = 1 WHERE id = 1", "UPDATE users SET suspended_at = NULL"),
    "an owner of a later epoch": ("UPDATE users SET epoch = epoch + 1", "UPDATE users SET epoch = epoch - 1"),
}


def obstacle(name: str) -> str:
    """Return why an anchor cannot run here, or an empty string."""
    if name == "go" and shutil.which("go") is None:
        return "The Go anchor is skipped, because there is no `go`: apt-get install golang-go"
    if name == "go" and not _DRIVER.is_dir():
        return "The Go anchor is skipped, because its driver is missing: apt-get install golang-github-jackc-pgx-v4-dev"
    return ""


def start(name: str, url: str, core: int | None, folder: Path) -> Server:
    """Start an anchor on a database of the service; the one in Go is compiled first."""
    environment = {"BENCH_DATABASE_URL": driver_url(url), "BENCH_BASE_URL": BASE_URL}
    if name == "go":
        return Server(["{port}"], environment, core, folder, str(_compiled(folder)))
    return Server([*_UVICORN, "benchmarks.peers.anchor.starlette_asyncpg:app"], environment, core, folder)


def driver_url(url: str) -> str:
    """Return the URL of a database without the name of SQLAlchemy's driver."""
    return url.replace("+asyncpg", "")


def _compiled(folder: Path) -> Path:
    program = folder / "anchor"
    environment = {**os.environ, "GO111MODULE": "off", "GOPATH": str(_GO_PATH), "CGO_ENABLED": "0"}
    subprocess.run(["go", "build", "-o", str(program), "main.go"], cwd=FOLDER, env=environment, check=True)
    return program


class Trace(NamedTuple):
    """The response to each request, and what is stored afterwards. Instants and random parts are left out."""

    responses: dict[str, Any]
    rows: dict[str, Any]


class _Caller:
    """A client that counts the requests of the key which succeed."""

    def __init__(self, port: int) -> None:
        self._port, self.requests, self.grants = port, 0, 0

    def send(self, request: Request) -> tuple[int, Any]:
        """Return the status and the data of a successful response."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
        connection.request(request.method, request.path, request.body, request.headers)
        response = connection.getresponse()
        raw = response.read()
        connection.close()
        if response.status != 200:
            return response.status, None
        self.requests += not request.path.endswith("/status")
        self.grants += request.path.endswith("/token")
        return 200, json.loads(raw)["data"]


def trace(port: int, access: Access, url: str) -> Trace:
    """Send all requests, also those that must be rejected, and return what happened."""
    return asyncio.run(_trace(_Caller(port), access, driver_url(url)))


async def _trace(caller: _Caller, access: Access, url: str) -> Trace:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("UPDATE keys SET last_used_at = NULL WHERE client_id = $1", access.client_id)
        began, responses = time.time() * 1000, _responses(caller, access)
        for name, (change, undo) in _STATES.items():
            claims = _claims(access.key_token)
            values = claims["jti"], claims["fam"], access.client_id
            await _run(connection, change, values)
            responses[name] = [
                caller.send(request_of("list", access))[0],
                caller.send(request_of("token", access))[0],
                caller.send(request_of("status", access))[0],
            ]
            await _run(connection, undo, values)
        granted = caller.send(request_of("token", access))[1]
        responses["granted"] = await _granted(connection, granted)
        by_new = replace(access, key_token=granted["access_token"])
        responses["the list with the new token"] = caller.send(request_of("list", by_new))[0]
        return Trace(responses, await _rows(connection, caller, began))
    finally:
        await connection.close()


async def _run(connection: asyncpg.Connection, sql: str, values: tuple[str, ...]) -> None:
    """Run a statement with those of the values that it names."""
    for number, value in enumerate(values, 1):
        sql = sql.replace(f"${number}", f"'{value}'")
    await connection.execute(sql)


def _responses(caller: _Caller, access: Access) -> dict[str, Any]:
    beat, listed, status = (request_of(work, access) for work in ("heartbeat", "list", "status"))
    grant = json.loads(request_of("token", access).body)
    head, payload, signature = access.key_token.split(".")
    forged = {"Authorization": f"Bearer {head}.{payload}.{signature[::-1]}"}
    requests = {
        "a status before any heartbeat": status,
        "a heartbeat": beat,
        "a heartbeat with one version": replace(beat, body='{"wp_version":"6.9"}'),
        "a heartbeat with all versions": beat,
        "a status": status,
        "a list": listed,
        "ten posts": replace(listed, path=f"{listed.path}&pageSize=10"),
        "no token": replace(listed, headers={}),
        "a forged token": replace(listed, headers=forged),
        "a heartbeat of a user": replace(beat, headers={**beat.headers, **status.headers}),
        "a status for a key": replace(status, headers=listed.headers),
        "another location": replace(listed, path=listed.path.replace(LOCATION, "locations/112")),
        "an unknown key": replace(status, path="/api/v1/api-keys/svcid_1_1_none/status"),
        "a key of another owner": replace(status, path="/api/v1/api-keys/svcid_2_1_none/status"),
        "a wrong secret": replace(request_of("token", access), body=json.dumps({**grant, "client_secret": "wrong"})),
        "a version that is too long": replace(beat, body=json.dumps({"wp_version": "x" * 65})),
    }
    return {name: _outcome(*caller.send(request)) for name, request in requests.items()}


def _outcome(status: int, data: Any) -> Any:
    """Return the data of a successful response without what differs from run to run, or the status."""
    if status != 200:
        return status
    masked = {name: bool(value) for name, value in data.items() if name.endswith("_at") or name == "nextPageToken"}
    return {**data, **masked}


def _claims(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    claims: dict[str, Any] = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return claims


async def _granted(connection: asyncpg.Connection, granted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields and claims of a grant, and verify both signatures."""
    keys = await connection.fetch("SELECT alg, private_pem FROM signing_keys WHERE removed_at IS NULL")
    by_alg = {alg: read_key(alg, pem.encode()) for alg, pem in keys}
    by_alg["RS256"].verify(granted["access_token"])
    by_alg["HS256"].verify(granted["refresh_token"])
    found = dict(granted)
    for name in ("access_token", "refresh_token"):
        claims = _claims(granted[name])
        claims["exp"] -= claims["iat"]
        random = {each: len(str(claims[each])) for each in ("iat", "auth_time", "jti", "fam")}
        key = {each: bool(claims[each]) for each in ("sub", "client_id")}
        found[name] = {**claims, **random, **key}
    return found


async def _rows(connection: asyncpg.Connection, caller: _Caller, began: float) -> dict[str, Any]:
    """Return what is stored of the key, once the counts are written."""
    beat = await connection.fetchrow("SELECT * FROM connections")
    runs = await connection.fetch("SELECT started_at, ended_at FROM contacts")
    used = await connection.fetchval("SELECT last_used_at FROM keys WHERE owner_id = $1 ORDER BY id DESC", OWNER_ID)
    counts, issued = {}, None
    for _ in range(_WRITTEN_WITHIN * 10):
        await asyncio.sleep(0.1)
        usage = await connection.fetchval("SELECT sum(requests - client_errors - server_errors) FROM key_usage")
        issued = await connection.fetchrow("SELECT * FROM audit WHERE event = 'token.issued' AND ip_prefix IS NOT NULL")
        counts = {"requests": int(usage or 0), "grants": issued["times"] if issued else 0}
        if counts["requests"] >= caller.requests and counts["grants"] >= caller.grants:
            break
    assert beat is not None and issued is not None, counts  # noqa: PT018
    names = "event", "actor", "ip_prefix", "request_id"
    return {
        "counts": counts,
        "versions": [beat[name] for name in ("plugin_version", "wp_version", "php_version")],
        "runs": [(run["started_at"] >= began, run["ended_at"] == beat["last_heartbeat_at"]) for run in runs],
        "last use": used is not None and used >= began,
        "grant": {name: issued[name] for name in names} | {"details": sorted(json.loads(issued["details"]))},
    }


def compare(expected: Trace, found: Trace, name: str) -> None:
    """Check that an anchor did what the service did.

    Raises:
        AssertionError: A response or a row differs.
    """
    for ours, theirs in zip(expected, found, strict=True):
        for what in ours:
            assert theirs.get(what) == ours[what], f"{name}, {what}: {theirs.get(what)!r} instead of {ours[what]!r}"
    print(f"{name}: {len(expected.responses)} responses and the rows are those of the service", file=sys.stderr)


def main(names: list[str]) -> None:
    """Compare the named anchors with the service; without names, all."""
    with tempfile.TemporaryDirectory(prefix="anchors-") as name:
        folder = Path(name)
        database = Postgres(folder, None)
        try:
            expected = None
            for each in ("service", *(names or NAMES)):
                environment = service_environment(folder / each, url := database.create(each))
                access = asyncio.run(prepare_service(environment))
                is_service = each == "service"
                server = Server(SERVE, environment, None, folder) if is_service else start(each, url, None, folder)
                with server:
                    found = trace(server.port, access, url)
                if expected is not None:
                    compare(expected, found, each)
                expected = expected or found
        finally:
            database.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
