"""The core is a service of its own: without any room, it serves the 18 operations of the API document."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import httpx

from test_layers import rooms, within

KEYS, POSTS, LOCATIONS = "/api/v1/developer/credentials", "/api/v1/posts", "/api/v1/external-business/locations"
PLACE = {"locationId": "locations/111"}
NEW_KEY = {"name": "Site", "business_id": 10, "assigned_location_id": "locations/111"}
SYNC = {"title": "Harbour Coffee & Cake"}
BEAT = {"plugin_version": "2.4.1", "wp_version": "6.8", "php_version": "8.3.2", "detected_plugins": ["woocommerce"]}


class WithoutRooms(MetaPathFinder):
    """Fails every import of a module of a room, as if its file were deleted."""

    def __init__(self) -> None:
        self._gone = frozenset(f"profilesvc.{module}" for room in rooms().values() for module in room)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if within(fullname, self._gone):
            raise ModuleNotFoundError(f"{fullname} is a module of a room", name=fullname)
        return None


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


async def serve(folder: Path) -> dict[str, int]:
    """Serve the core from a new database with the demo data, and walk its operations."""
    from profilesvc.bootstrap import Runtime, create_app
    from profilesvc.fixtures import load_world
    from profilesvc.operations import seeding
    from profilesvc.services import tokens
    from profilesvc.settings import Settings

    settings = Settings(data_dir=folder, base_url="http://core.example", _env_file=None)
    app = create_app(settings, Runtime(rooms=()))
    async with app.test_app():
        services = app.extensions["profilesvc"]
        await seeding.load(services, load_world())
        user = await tokens.user_token(services, "alice@example.com")
        async with httpx.AsyncClient(transport=httpx.ASGITransport(cast(Any, app)), base_url=settings.base_url) as http:
            return await walk(http, user)


def test_the_service_without_rooms_serves_the_operations_of_the_api_document(tmp_path: Path) -> None:
    """The refresh grant is the second half of an operation."""
    words = [sys.executable, __file__, str(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PROFILESVC_")}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    statuses = json.loads(done.stdout)
    assert len(statuses) == 18 + 1
    created = {"POST credentials": 201, "POST posts": 201}
    assert statuses == dict.fromkeys(statuses, 200) | created


if __name__ == "__main__":
    sys.meta_path.insert(0, WithoutRooms())
    with contextlib.suppress(ModuleNotFoundError):
        import profilesvc.rooms

        sys.exit(f"{profilesvc.rooms.ROOMS} are there")
    print(json.dumps(asyncio.run(serve(Path(sys.argv[1])))))
