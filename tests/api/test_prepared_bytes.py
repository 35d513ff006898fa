"""Answers that are made as bytes, past the models, are what the contract's models would have written."""

from typing import Any

import httpx
import orjson
import pytest
from pydantic import TypeAdapter

from conftest import AsUser
from profilesvc.contract.connection import ConnectionStatus, HeartbeatReceived
from profilesvc.contract.locations import LocationDetail, LocationList
from profilesvc.contract.posts import PostList
from profilesvc.contract.reviews import ReviewList
from profilesvc.contract.tokens import Token
from support.api import ALICE, Site

READS = [
    ("/api/v1/posts?locationId=111", PostList),
    ("/api/v1/posts?locationId=111&pageSize=5", PostList),
    ("/api/v1/external-business/locations", LocationList),
    ("/api/v1/external-business/locations/111", LocationDetail),
    ("/api/v1/reviews?locationId=111", ReviewList),
]


def assert_as_modelled(response: httpx.Response, model: Any) -> None:
    """The bytes are compact JSON with the fields and values that the model reads and writes."""
    assert response.status_code == 200, response.text
    data = orjson.loads(response.content)["data"]
    written = b'{"status":"ok","data":' + orjson.dumps(data) + b"}"
    assert response.content == written
    adapter: TypeAdapter[Any] = TypeAdapter(model)
    read = adapter.validate_json(orjson.dumps(data))
    again = orjson.loads(adapter.dump_json(read, by_alias=True, exclude_unset=True))
    assert again == data


@pytest.mark.parametrize(("path", "model"), READS, ids=[path for path, _ in READS])
async def test_reads_are_what_the_models_would_write(as_user: AsUser, path: str, model: Any) -> None:
    alice = await as_user(ALICE)
    assert_as_modelled(await alice.get(path), model)


async def test_a_plugin_s_responses_are_what_the_models_would_write(
    plugin: Site, as_user: AsUser, http: httpx.AsyncClient
) -> None:
    status = f"/api/v1/api-keys/{plugin.key['client_id']}/status"
    alice = await as_user(ALICE)
    assert_as_modelled(await alice.get(status), ConnectionStatus)
    beat = {"plugin_version": "2.4.1", "wp_version": "6.8"}
    assert_as_modelled(await plugin.http.post("/api/v1/api-keys/heartbeat", json=beat), HeartbeatReceived)
    assert_as_modelled(await alice.get(status), ConnectionStatus)
    grant = {"grant_type": "client_credentials", **plugin.credentials}
    assert_as_modelled(await http.post("/api/v1/auth/token", json=grant), Token)
