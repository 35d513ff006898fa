"""kill -9 in the middle of writes: what was answered is there after a restart."""

import contextlib
import threading
import time
from pathlib import Path
from typing import Any

import httpx

from program import Server, caller, command, data, demo_token, serving

POSTS = {"locationId": "locations/111"}
ROUNDS = 3


class Writers:
    """Three threads that write until the server is gone, and note every success."""

    def __init__(self, server: Server, token: str) -> None:
        self.posts: list[str] = []
        self.syncs: list[int] = []
        self.beats: list[str] = []
        self._server, self._token = server, token
        self._threads = [threading.Thread(target=work) for work in (self._post, self._sync, self._beat)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _repeat(self, path: str, noted: list[str], member: str, **request: Any) -> None:
        with contextlib.suppress(httpx.TransportError), caller(self._server, self._token) as site:
            while True:
                noted.append(data(site.post(path, **request))[member])

    def _post(self) -> None:
        self._repeat("/api/v1/posts", self.posts, "name", params=POSTS, json={"summary": "Kept"})

    def _sync(self) -> None:
        """Until the server is gone, or says that the process it was before holds the location's turn (D-87)."""
        with contextlib.suppress(httpx.TransportError), caller(self._server, self._token) as site:
            for number in range(100_000):
                body = {"websiteUri": f"https://harbour.example/{number}"}
                answer = site.post("/api/v1/sync/111", json=body)
                if answer.status_code == 409:
                    break
                data(answer)
                self.syncs.append(number)

    def _beat(self) -> None:
        version = {"plugin_version": "1.0", "wp_version": "6", "php_version": "8", "detected_plugins": []}
        self._repeat("/api/v1/api-keys/heartbeat", self.beats, "received", json=version)


def test_kill_9_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    port, token, posts, synced = "0", "", list[str](), -1
    for _ in range(ROUNDS):
        with serving(tmp_path, "demo", "--port", port) as demo:
            port, token = str(demo.port), token or demo_token(demo)
            writers = Writers(demo, token)
            writers.start()
            time.sleep(1.5)
            demo.kill()
            writers.join()
        assert writers.posts
        assert writers.beats
        posts += writers.posts
        synced = writers.syncs[-1] if writers.syncs else synced
    assert synced >= 0
    with serving(tmp_path, "demo", "--port", port) as demo, caller(demo, token) as site:
        assert set(posts) <= set(all_posts(site))
        reached = data(site.get("/api/v1/sync/comparison/111"))["source"]["websiteUri"]
        assert number_of(reached) >= synced  # the last one may have been written and not answered
        key = command(tmp_path, "keys", "list", "--json")
        assert '"last_used_at": "' in key.stdout


def number_of(address: str) -> int:
    return int(address.rpartition("/")[2])


def all_posts(site: httpx.Client) -> list[str]:
    names, page = [], {"pageSize": "100"}
    while True:
        answer = data(site.get("/api/v1/posts", params={**POSTS, **page}))
        names += [post["name"] for post in answer["localPosts"]]
        if not answer.get("nextPageToken"):
            return names
        page["pageToken"] = answer["nextPageToken"]
