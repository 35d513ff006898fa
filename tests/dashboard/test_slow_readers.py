"""Clients that read a photo slowly: they share one copy, hold no slot, and an address has a share of the memory."""

import tracemalloc

import pytest
from quart import Quart

from conftest import ON_ONE_DATABASE
from dashboard.readers import Reader, reading
from profilesvc.api import guard
from profilesvc.api.quart_fast import PIECE
from profilesvc.operations import operator
from profilesvc.services.context import Services
from profilesvc.services.drafts import photos
from support.api import ALICE
from support.pictures import png

MB = 1024 * 1024
pytestmark = [pytest.mark.in_process("its clients stop reading"), ON_ONE_DATABASE]


@pytest.fixture
async def path(services: Services) -> str:
    alice = await operator.act_for(services, ALICE)
    url = await photos.store(services, alice, png(size=4 * MB))
    return url.removeprefix(services.settings.base_url)


async def test_a_hundred_slow_readers_share_one_copy(app: Quart, path: str) -> None:
    tracemalloc.start()
    try:
        readers = [Reader(app, path, "192.0.2.1") for _ in range(100)]
        async with reading(*readers):
            held, _ = tracemalloc.get_traced_memory()
            in_flight = app.asgi_app.in_flight  # type: ignore[attr-defined]
    finally:
        tracemalloc.stop()
    assert held < 30 * MB  # a copy for each would be 400 MB
    assert in_flight == 0
    assert {reader.status for reader in readers} == {200}
    whole = int(readers[0].headers[b"content-length"])
    assert {sum(reader.sizes) for reader in readers} == {whole}
    assert max(max(reader.sizes) for reader in readers) <= PIECE


async def test_an_address_has_a_share_of_the_memory(
    app: Quart, path: str, monkeypatch: pytest.MonkeyPatch, services: Services
) -> None:
    monkeypatch.setattr(guard, "MEMORY_BYTES", 20 * 2 * PIECE)
    readers = [Reader(app, path, "192.0.2.1") for _ in range(30)]
    async with reading(*readers):
        assert sorted(reader.status for reader in readers) == [200] * 16 + [503] * 14
        refused = next(reader for reader in readers if reader.status == 503)
        assert refused.headers[b"retry-after"] == b"1"
        other = Reader(app, path, "198.51.100.1")
        async with reading(other):
            assert other.status == 200
    again = Reader(app, path, "192.0.2.1", pieces=10_000)
    async with reading(again):
        assert again.status == 200


async def test_nothing_is_made_for_a_client_that_has_left(app: Quart, path: str) -> None:
    reader = Reader(app, path, "192.0.2.1")
    async with reading(reader):
        reader.has_left = True
    assert sum(reader.sizes) <= 2 * PIECE
