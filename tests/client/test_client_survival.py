"""A program that uses only the client lives through what happens to a service, over a real socket."""

import subprocess
import sys
import threading
from typing import Any

import pytest

from profilesvc.client import (
    AsyncOptions,
    AsyncProfileClient,
    ProfileClient,
    ProviderFailed,
    SyncOptions,
    TransportFailed,
)
from profilesvc.contract.keys import KeyCreated
from support.client import PIER, Recorded, Service

WITHOUT_THE_SERVER = """
import sys

ABSENT = {"quart", "quart_schema", "sqlmodel", "sqlalchemy", "jwt", "cryptography", "uvicorn", "pydantic_settings"}

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuse())
import profilesvc.client as client

with client.ProfileClient.service("http://127.0.0.1:9", "id", "secret", retries=client.Retries(attempts=1)) as site:
    try:
        site.heartbeat()
    except client.TransportFailed as error:
        print("sent" if error.sent else "not sent")
ours = {name.split(".")[1] for name in sys.modules if name.startswith("profilesvc.")}
print(*sorted(ours), *sorted(name for name in sys.modules if name.startswith("profilesvc.domain.")))
"""


# The rules by which the client compares profiles, and what they import.
CLIENT_DOMAIN = ("errors", "hosts", "hours", "meaning", "messages", "problems", "verdicts")


def test_it_needs_nothing_of_the_server() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_THE_SERVER], capture_output=True, text=True, timeout=60)
    domain = " ".join(f"profilesvc.domain.{name}" for name in CLIENT_DOMAIN)
    loaded = f"client contract domain {domain}"  # the layers that docs/architecture.md allows
    assert (done.stdout.splitlines(), done.stderr) == (["not sent", loaded], "")


class TestProviderOutage:
    def test_that_is_short_is_not_noticed(self, service: Service, site: ProfileClient, recorded: Recorded) -> None:
        service.provider("POST", "/faults", {"kind": "status", "status": 503, "times": 4})
        recorded.calls.clear()
        assert site.sync(PIER, {"title": "Harbour Coffee, Old Pier"}).fieldsUpdated == ["title"]
        assert recorded.calls.count("POST /api/v1/sync/111") > 1

    def test_that_lasts_is_raised(self, service: Service, site: ProfileClient) -> None:
        known = site.list_posts(PIER)
        service.provider("POST", "/faults", {"kind": "status", "status": 503, "times": 1000})
        service.clock.advance(minutes=5)
        with pytest.raises(ProviderFailed) as caught:
            site.compare(PIER)
        assert (caught.value.reason, caught.value.retryable) == ("unavailable", True)
        assert site.list_posts(PIER) == known

    def test_whose_effect_is_unknown_makes_one_post(self, service: Service, site: ProfileClient) -> None:
        before = len(list(site.iter_posts(PIER)))
        fault = {"kind": "disconnect", "after": True, "match": {"method": "POST", "path": "/v4"}}
        service.provider("POST", "/faults", fault)
        made = site.create_post(PIER, {"summary": "Only once"})
        service.clock.advance(minutes=5)
        posts = list(site.iter_posts(PIER))
        assert len(posts) == before + 1
        assert [post.name for post in posts if post.summary == "Only once"] == [made.name]

    def test_that_loses_the_response_of_a_delete_still_deletes(self, service: Service, site: ProfileClient) -> None:
        name = site.list_posts(PIER).localPosts[0].name
        fault = {"kind": "disconnect", "after": True, "match": {"method": "DELETE", "path": "/v4"}}
        service.provider("POST", "/faults", fault)
        assert site.delete_post(PIER, name).deleted

    def test_that_rejects_the_content_is_raised_once(
        self, service: Service, site: ProfileClient, recorded: Recorded
    ) -> None:
        service.provider("POST", "/faults", {"kind": "status", "status": 400, "match": {"method": "PATCH"}})
        with pytest.raises(ProviderFailed) as caught:
            site.sync(PIER, {"title": "Other"})
        assert (caught.value.reason, caught.value.retryable) == ("rejected", False)
        assert recorded.calls.count("POST /api/v1/sync/111") == 1


class TestRestart:
    def test_in_the_middle_goes_unnoticed(
        self, service: Service, site: ProfileClient, recorded: Recorded, options: SyncOptions
    ) -> None:
        posts = site.iter_posts(PIER, page_size=5)
        names = [next(posts).name for _ in range(5)]
        service.stop()
        site._sleep = lambda _: service.start()
        names += [post.name for post in posts]
        assert len(set(names)) == 12
        assert recorded.grants == ["credentials"]

    def test_between_grant_and_use_goes_unnoticed(self, service: Service, site: ProfileClient) -> None:
        service.stop()
        site._sleep = lambda _: service.start()
        assert site.sync(PIER, {"title": "Pier"}).status == "success"

    def test_that_takes_too_long_is_raised(self, service: Service, site: ProfileClient) -> None:
        site.heartbeat()
        service.stop()
        with pytest.raises(TransportFailed) as caught:
            site.heartbeat()
        assert not caught.value.sent
        service.start()
        assert site.heartbeat().received

    async def test_goes_unnoticed_by_tasks(
        self, service: Service, key: KeyCreated, async_options: AsyncOptions
    ) -> None:
        async def restart(_: float) -> None:
            service.start()

        async with AsyncProfileClient.service(service.url, key.client_id, key.client_secret, **async_options) as site:
            await site.heartbeat()
            service.stop()
            site._sleep = restart
            assert (await site.heartbeat()).received


def test_the_same_push_at_the_same_time_is_one_sync(service: Service, key: KeyCreated, alice: ProfileClient) -> None:
    """Two workers with one idempotency key: the second waits for the first, by its retries, and gets its answer."""
    service.provider("POST", "/faults", {"kind": "delay", "seconds": 0.5, "match": {"method": "PATCH"}})
    before = len(alice.sync_history(PIER).history)
    results: list[Any] = []

    def push() -> None:
        with ProfileClient.service(service.url, key.client_id, key.client_secret) as worker:
            results.append(worker.sync(PIER, {"title": "At once"}, idempotency_key="one"))

    workers = [threading.Thread(target=push) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results[0] == results[1]
    assert len(alice.sync_history(PIER).history) == before + 1
