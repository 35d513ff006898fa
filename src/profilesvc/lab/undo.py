"""Leaving a deployed service as it was found: what the pages made there, and how it is taken back."""

from typing import Any

import httpx

from profilesvc.lab.record import body_of

_API = "/api/v1"
Document = dict[str, Any]


class Undo:
    """Watches the calls of the pages; `run` revokes the keys, deletes the posts and restores replies and location."""

    def __init__(self, client: httpx.Client, location: str) -> None:
        self._client, self._location = client, location
        self._keys: list[str] = []
        self._posts: list[str] = []
        self._touched = False
        self._replies: dict[str, str | None] = {}  # as they were first seen
        self._replied: set[str] = set()
        self.entry = self._find_entry()
        self._profile = self._provider_profile()

    def _find_entry(self) -> Document:
        """The location as the list shows it. RuntimeError when the token's user has no such location."""
        page, more = 1, True
        while more:
            answer = self._client.get(f"{_API}/external-business/locations", params={"page": page, "limit": 100})
            if answer.is_error:
                raise RuntimeError(f"PROFILESVC_LAB__USER_TOKEN is not accepted: {answer.status_code}")
            data = answer.json()["data"]
            for entry in data["locations"]:
                if entry["name"] == self._location:
                    return dict(entry)
            page, more = page + 1, data["pagination"]["hasMore"]
        raise RuntimeError(f"PROFILESVC_LAB__LOCATION: the user has no {self._location}")

    def _provider_profile(self) -> Document | None:
        answer = self._client.get(f"{_API}/sync/comparison/{self._location}")
        return answer.json()["data"]["provider"] if answer.is_success else None

    def note(self, request: httpx.Request, response: httpx.Response) -> None:
        """Remember what a successful call has to be taken back by."""
        path, body = request.url.path.removeprefix(_API), body_of(response)
        if response.is_error or not isinstance(body, dict):
            return
        if (request.method, path) == ("POST", "/developer/credentials"):
            self._keys.append(body["data"]["client_id"])
        elif (request.method, path) == ("POST", "/posts"):
            self._posts.append(body["data"]["name"])
        elif path.startswith("/reviews"):
            self._note_review(request.method, path, body["data"])
        elif request.method in {"POST", "PATCH"} and (path.startswith("/sync/") or path.endswith("/sync")):
            self._touched = True

    def _note_review(self, method: str, path: str, data: Document) -> None:
        if method == "GET":
            for review in data.get("reviews", [data]):
                reply = review.get("reviewReply", {}).get("comment")
                self._replies.setdefault(review["name"].rpartition("/")[2], reply)
        else:
            self._replied.add(path.removesuffix("/reply").rpartition("/")[2])

    def run(self) -> list[str]:
        """Take everything back; a sentence for each thing that could not be."""
        problems = self._restore() if self._touched else []
        for name in self._posts:
            post_id = name.rsplit("/", 1)[-1]
            answer = self._client.delete(f"{_API}/posts/{post_id}", params={"locationId": self._location})
            problems += _failed(answer, f"post {name} is still there", gone=True)
        for review in sorted(self._replied):
            problems += self._restore_reply(review)
        for client_id in self._keys:
            answer = self._client.delete(f"{_API}/developer/credentials/{client_id}")
            problems += _failed(answer, f"key {client_id} is still live", gone=True)
        self._keys, self._posts, self._touched = [], [], False
        self._replied.clear()
        return problems

    def _restore(self) -> list[str]:
        """The profile at the provider first, which needs sync to be on; then the switch."""
        now, problems = self._provider_profile(), []
        body = {} if self._profile is None or now is None else going_back(now, self._profile)
        if body:
            self._switch(True)
            answer = self._client.post(f"{_API}/sync/{self._location}", json=body)
            problems += _failed(answer, f"the profile of {self._location} is not as it was")
        return problems + _failed(self._switch(self.entry["syncEnabled"]), "the sync switch is not as it was")

    def _restore_reply(self, review: str) -> list[str]:
        path, target = f"{_API}/reviews/{review}/reply", {"locationId": self._location}
        sentence = f"the reply to review {review} is not as it was"
        if review not in self._replies:
            return [f"{sentence} (nobody read it before)"]
        comment = self._replies[review]
        if comment is None:
            return _failed(self._client.delete(path, params=target), sentence, gone=True)
        return _failed(self._client.put(path, params=target, json={"comment": comment}), sentence)

    def _switch(self, enabled: bool) -> httpx.Response:
        path = f"{_API}/external-business/{self._location}/sync"
        return self._client.patch(path, json={"syncEnabled": enabled})


def going_back(now: Document, was: Document) -> Document:
    """The sync body that turns one profile into the other; null clears what was not there."""
    body: Document = {}
    for name in {**was, **now}:
        before, after = was.get(name), now.get(name)
        if before == after:
            continue
        nested = isinstance(before, dict) and isinstance(after, dict)
        body[name] = going_back(after, before) if nested else before  # type: ignore[arg-type]
    return body


def _failed(answer: httpx.Response, sentence: str, gone: bool = False) -> list[str]:
    fine = answer.is_success or (gone and answer.status_code == 404)
    return [] if fine else [f"{sentence} ({answer.status_code})"]
