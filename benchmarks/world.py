"""The data in the databases of the service and the peers: a location with 50 posts, and a key for it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.servers import ROOT
from benchmarks.work import LOCATION, POSTS, Access
from profilesvc.bootstrap import Runtime, open_services
from profilesvc.contract.keys import KeyCreate
from profilesvc.contract.tokens import ClientCredentialsGrant
from profilesvc.database import migrate
from profilesvc.database.engine import create_engine
from profilesvc.domain.permissions import ALL
from profilesvc.domain.time import SystemClock, parse_iso
from profilesvc.fixtures import fixture_path, load_world
from profilesvc.operations import seeding
from profilesvc.services import credentials, tokens
from profilesvc.services.context import Caller, Services
from profilesvc.settings import load
from profilesvc.storage import posts as post_cache
from profilesvc.storage import users
from profilesvc.storage.posts import StoredPost
from profilesvc.storage.tables import partitions

OWNER, OWNER_ID = "alice@example.com", 1
KEY_FILE = fixture_path("signing_key.pem")
BASE_URL = "http://bench.test"


def posts() -> list[dict[str, Any]]:
    """Return posts in the provider's format, of about 500 bytes each."""
    return [
        {
            "name": f"{LOCATION}/localPosts/p{number:03}",
            "languageCode": "en",
            "summary": f"News number {number}: " + "fresh bread every morning from six, and coffee with it. " * 3,
            "callToAction": {"actionType": "LEARN_MORE", "url": f"https://harbour.example/news/{number}"},
            "createTime": f"2026-01-{1 + number % 28:02}T{number % 24:02}:00:00Z",
            "updateTime": f"2026-01-{1 + number % 28:02}T{number % 24:02}:30:00Z",
            "state": "LIVE",
            "topicType": "STANDARD",
            "searchUrl": f"https://local.example/place?id=111&lpsid={number}",
        }
        for number in range(POSTS)
    ]


def service_environment(folder: Path, database_url: str) -> dict[str, str]:
    """Return settings without rate limits and without expiry of stored posts, because the peers have neither."""
    return {
        "PROFILESVC_BASE_URL": BASE_URL,
        "PROFILESVC_DATA_DIR": str(folder),
        "PROFILESVC_DATABASE_URL": database_url,
        "PROFILESVC_TOKENS__SIGNING_KEY_FILE": str(KEY_FILE),
        "PROFILESVC_LIMITS__ENABLED": "false",
        "PROFILESVC_CACHE_MAX_AGE_SECONDS": "86400",
    }


async def prepare_service(environment: dict[str, str]) -> Access:
    """Migrate, seed and store the posts. Create a key and tokens by the service's use cases."""
    os.environ.update(environment)
    settings = load()
    engine = create_engine(settings.effective_database_url, 1)
    await migrate.upgrade(engine)
    await partitions.renew(engine, SystemClock().now())
    await engine.dispose()
    async with open_services(settings, Runtime()) as services:
        await seeding.load(services, load_world())
        await _store_posts(services)
        return await _create_key(services)


async def _store_posts(services: Services) -> None:
    rows = {}
    for post in posts():
        post_id = post["name"].rsplit("/", 1)[1]
        text = json.dumps(post, separators=(",", ":"))
        rows[post_id] = StoredPost(post_id, parse_iso(post["createTime"].replace("Z", ".000Z")), "LIVE", text)
    async with services.storage.write() as session:
        now = services.clock.now()
        await post_cache.replace(session, OWNER_ID, LOCATION, {}, rows, now)
        await post_cache.mark_read(session, OWNER_ID, LOCATION, now)  # otherwise the first list reads the emulator's


async def _create_key(services: Services) -> Access:
    async with services.storage.read() as session:
        user = await users.user_by_email(session, OWNER)
    assert user is not None
    caller = Caller(user.id, services.plans[user.plan], frozenset(ALL))
    body = KeyCreate(name="Bench", business_id=10, assigned_location_id=LOCATION)
    key = await credentials.create(services, caller, body)
    grant = ClientCredentialsGrant(
        grant_type="client_credentials", client_id=key.client_id, client_secret=key.client_secret
    )
    pair = await tokens.client_credentials(services, grant)
    user_token = await tokens.user_token(services, OWNER)
    return Access(key.client_id, key.client_secret, pair.access_token, user_token)


def peer_environment(database_url: str) -> dict[str, str]:
    """Return the peers' database and their signing key, which is the service's."""
    return {"BENCH_DATABASE_URL": database_url, "BENCH_KEY_FILE": str(KEY_FILE)}


def prepare_peers(environment: dict[str, str], access: Access) -> Access:
    """Store the same posts and the same key for the peers. Return it with their own tokens."""
    key = {"client_id": access.client_id, "client_secret": access.client_secret}
    output = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers.seed"],
        input=json.dumps({**key, "location": LOCATION, "posts": posts()}),
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]), **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    return Access(**key, **json.loads(output))
