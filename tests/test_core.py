"""The core is a service of its own: without all rooms, or without one, it serves 18 operations."""

import ast
import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import traceback
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, cast

import httpx
import pytest
from openapi_spec_validator import validate

from test_layers import modules, ours, room_of, rooms, within

KEYS, POSTS, LOCATIONS = "/api/v1/developer/credentials", "/api/v1/posts", "/api/v1/external-business/locations"
PLACE = {"locationId": "locations/111"}
NEW_KEY = {"name": "Site", "business_id": 10, "assigned_location_id": "locations/111"}
SYNC = {"title": "Harbour Coffee & Cake"}
BEAT = {"plugin_version": "2.4.1", "wp_version": "6.8", "php_version": "8.3.2", "detected_plugins": ["woocommerce"]}


def removed_with(room: str) -> set[str]:
    """Return a room and those that import it, or import one of those."""
    gone = {room}
    for later in list(rooms())[list(rooms()).index(room) + 1 :]:
        used = {room_of(name) for module in modules() if room_of(module) == later for name in ours(module)}
        gone |= {later} if used & gone else set()
    return gone


class Removal(ast.NodeTransformer):
    """Deletes from a composition what docs/architecture.md names: the imports, entry and jobs of rooms."""

    def __init__(self, gone: set[str]) -> None:
        self._gone = gone

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        names = [f"{node.module}.{alias.name}".removeprefix("profilesvc.") for alias in node.names]
        return ast.Pass() if any(room_of(name) in self._gone for name in names) else node

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        node.elts = [each for each in node.elts if not self._is_entry(each)]
        return self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        items = [(key, value) for key, value in zip(node.keys, node.values, strict=True) if not self._names(key)]
        node.keys, node.values = [key for key, _ in items], [value for _, value in items]
        return self.generic_visit(node)

    def _is_entry(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and ast.unparse(node.func) == "Room" and self._names(node.args[0])

    def _names(self, node: ast.expr | None) -> bool:
        return isinstance(node, ast.Constant) and node.value in self._gone


class Composition(SourceFileLoader):
    """Loads a module without the rooms that are gone."""

    def __init__(self, name: str, path: str, gone: set[str]) -> None:
        super().__init__(name, path)
        self._gone = gone

    def get_code(self, fullname: str) -> CodeType:
        source = Path(self.path).read_text("utf-8")
        return compile(ast.fix_missing_locations(Removal(self._gone).visit(ast.parse(source))), self.path, "exec")


class WithoutRooms(MetaPathFinder):
    """Fails every import of a module of these rooms, as if its file were deleted, and removes them from composition."""

    def __init__(self, gone: set[str]) -> None:
        self._gone, self._modules = gone, frozenset(f"profilesvc.{part}" for room in gone for part in rooms()[room])

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if within(fullname, self._modules):
            raise ModuleNotFoundError(f"{fullname} is a module of a room", name=fullname)
        if fullname not in {"profilesvc.rooms", "profilesvc.operations.schedule"}:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        spec.loader = Composition(fullname, str(spec.origin), self._gone)
        return spec


class Walk:
    """Calls operations, and records the status of each."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self.statuses: dict[str, int] = {}

    async def call(self, operation: str, token: str | None, path: str, **request: Any) -> Any:
        """Return the `data` of a response."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        response = await self._http.request(operation.split()[0], path, headers=headers, **request)
        self.statuses[operation] = response.status_code
        return response.json().get("data")


async def walk(http: httpx.AsyncClient, user: str) -> dict[str, int]:
    """Return the status of each operation; those of keys are called by a user, the others by a site."""
    made = Walk(http)
    call = made.call
    key = await call("POST credentials", user, KEYS, json=NEW_KEY)
    await call("GET credentials", user, KEYS)
    pair = {name: key[name] for name in ("client_id", "client_secret")}
    await call("POST validate", None, "/api/v1/auth/validate-service-credentials", json=pair)
    granted = await call("POST token", None, "/api/v1/auth/token", json={**pair, "grant_type": "client_credentials"})
    refresh = {"grant_type": "refresh_token", "refresh_token": granted["refresh_token"]}
    site = (await call("POST token by refresh", None, "/api/v1/auth/token", json=refresh))["access_token"]
    await call("POST heartbeat", site, "/api/v1/api-keys/heartbeat", json=BEAT)
    status = await call("GET status", user, f"/api/v1/api-keys/{pair['client_id']}/status")
    assert status["connection_status"] == "online"
    post = await call("POST posts", site, POSTS, params=PLACE, json={"summary": "Fresh beans."})
    of_post = f"{POSTS}/{post['name'].rpartition('/')[2]}"
    await call("GET posts", site, POSTS, params=PLACE)
    await call("PATCH posts", site, of_post, params=PLACE, json={"summary": "Fresher beans."})
    await call("DELETE posts", site, of_post, params=PLACE)
    await call("GET locations", site, LOCATIONS)
    await call("GET location", site, f"{LOCATIONS}/111")
    await call("PATCH sync switch", site, f"{LOCATIONS}/111/sync", json={"syncEnabled": True})
    await call("POST verification", site, f"{LOCATIONS}/111/refresh-verification")
    await call("GET comparison", site, "/api/v1/sync/comparison/111")
    await call("POST sync", site, "/api/v1/sync/111", json=SYNC)
    await call("GET history", site, "/api/v1/sync/history/111")
    await call("DELETE credentials", user, f"{KEYS}/{pair['client_id']}")
    return made.statuses


async def failed_jobs(services: Any, left: list[str]) -> list[str]:
    """Run each job once, and return the names of those that failed."""
    from profilesvc.operations import schedule
    from profilesvc.services.jobs import run_once

    for job in schedule.jobs(services, {}, left):
        await run_once(services, job)
    runs = services.metrics.exposition().decode().splitlines()
    return [line for line in runs if line.startswith("profilesvc_job_runs_total") and 'outcome="failed"' in line]


async def serve(folder: Path) -> dict[str, Any]:
    """Serve what is left from a new database with the demo data: walk the operations, and run the jobs."""
    from profilesvc.bootstrap import create_app
    from profilesvc.fixtures import load_world
    from profilesvc.operations import seeding
    from profilesvc.rooms import ROOMS
    from profilesvc.services import tokens
    from profilesvc.settings import Settings

    settings = Settings(data_dir=folder, base_url="http://core.example", _env_file=None)
    app, left = create_app(settings), [room.name for room in ROOMS]
    async with app.test_app():
        services = app.extensions["profilesvc"]
        await seeding.load(services, load_world())
        user = await tokens.user_token(services, "alice@example.com")
        async with httpx.AsyncClient(transport=httpx.ASGITransport(cast(Any, app)), base_url=settings.base_url) as http:
            statuses, document = await walk(http, user), (await http.get("/openapi.json")).json()
        failed = await failed_jobs(services, left)
    return {"rooms": left, "statuses": statuses, "failed": failed, "document": document}


def serve_without(folder: Path, gone: list[str]) -> dict[str, Any]:
    """Serve without some rooms in this process, which has imported none."""
    sys.meta_path.insert(0, WithoutRooms(set(gone)))
    try:
        return asyncio.run(serve(folder))
    except BaseException:
        return {"error": traceback.format_exc()}


def serve_each(folder: Path, cases: list[list[str]]) -> list[dict[str, Any]]:
    """Serve without the rooms of each case, in forks of a process that has imported the core."""
    import profilesvc.api.app
    import profilesvc.bootstrap
    import profilesvc.operations.seeding  # noqa: F401

    folders = [folder / str(number) for number in range(len(cases))]
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        return pool.starmap(serve_without, zip(folders, cases, strict=True), chunksize=1)


def in_another_process(folder: Path, cases: list[set[str]]) -> list[Any]:
    """Return what `serve_each` returns there, because this process has imported the rooms."""
    words = [sys.executable, __file__, str(folder), json.dumps([sorted(gone) for gone in cases])]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PROFILESVC_")}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return cast(list[Any], json.loads(done.stdout))


def check(served: Any, gone: set[str]) -> None:
    """Check that the core served all, and that no job failed. The refresh grant is a second half of an operation."""
    assert "error" not in served, served["error"]
    assert served["rooms"] == [name for name in rooms() if name not in gone]
    assert served["failed"] == []
    assert len(served["statuses"]) == 18 + 1
    created = {"POST credentials": 201, "POST posts": 201}
    assert served["statuses"] == dict.fromkeys(served["statuses"], 200) | created
    check_document(served["document"])


def check_document(document: Any) -> None:
    """Check that the OpenAPI document is valid, and describes only what is left."""
    validate(document)
    operations = [each for item in document["paths"].values() for each in item.values()]
    tags = {tag for operation in operations for tag in operation["tags"]}
    assert {tag["name"] for tag in document["tags"]} == tags
    assert bool(document["webhooks"]) == ("Webhooks" in tags)


def test_the_service_without_rooms_serves_its_18_operations(tmp_path: Path) -> None:
    gone = set(rooms())
    (served,) = in_another_process(tmp_path, [gone])
    check(served, gone)


@pytest.fixture(scope="module")
def without_one(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The service without each room, and without those that import it."""
    cases = [removed_with(room) for room in rooms()]
    return dict(zip(rooms(), in_another_process(tmp_path_factory.mktemp("rooms"), cases), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("room", rooms())
def test_the_service_without_a_room_serves_its_18_operations(room: str, without_one: dict[str, Any]) -> None:
    check(without_one[room], removed_with(room))


if __name__ == "__main__":
    print(json.dumps(serve_each(Path(sys.argv[1]), json.loads(sys.argv[2]))))
