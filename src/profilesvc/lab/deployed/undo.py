"""Undo the changes that a journal lists on a deployed service."""

import json
import time
from collections.abc import Iterable

import httpx

from profilesvc.contract.json import JsonObject
from profilesvc.domain import profiles
from profilesvc.lab.deployed.journal import Journal
from profilesvc.lab.deployed.safeguard import API
from profilesvc.lab.deployed.waiting import Waiting
from profilesvc.lab.views.record import code_of, data_of
from profilesvc.lab.views.snippets import quoted
from profilesvc.settings import LabSettings

_LISTED_SECONDS = 65.0  # the service reads a location's posts again after a minute
_POLL_SECONDS = 5.0


class Undo:
    """The reversal of the changes in a journal. `run` can be repeated until no change is left."""

    def __init__(self, journal: Journal, settings: LabSettings) -> None:
        self._journal, self._token = journal, settings.user_token.get_secret_value().strip()
        self._patience = settings.patience_seconds  # for a service or provider that is down
        self._baseline: JsonObject = journal.entries()[0]["baseline"]
        self._location: str = self._baseline["location"]
        self._at = {"locationId": self._location}
        self._outcome: dict[str, str | None] = {}

    def run(self) -> list[str]:
        """Undo all changes. Return a sentence for each that is left, with the command that removes it."""
        notes = self._journal.entries()[1:]
        done = {note["done"] for note in notes if "done" in note} | {note["of"] for note in notes if note.get("failed")}
        self._outcome = {note["of"]: note["made"] for note in notes if "of" in note}
        pending = [note for note in notes if "what" in note and note["id"] not in done]
        problems: list[str] = []
        with self._open(self._patience) as self._patient, self._open(0) as self._client:
            # The profile before the switch, because its sync needs the switch on; keys last.
            undoing = self._profile, self._switch_back, self._posts, self._replies, self._keys
            for what, undo in zip(_NAMES, undoing, strict=True):
                changes = [note for note in pending if note["what"] == what]
                if not changes:
                    continue
                try:
                    left = list(undo(changes))
                except httpx.HTTPError as error:
                    left = [f"{_NAMES[what]} may be left: the service does not respond ({type(error).__name__})"]
                problems += left
                if not left:
                    for note in changes:
                        self._journal.write(done=note["id"])
        return problems

    def _open(self, patience: float) -> httpx.Client:
        transport = Waiting(httpx.HTTPTransport(), patience, time.sleep)
        headers = {"Authorization": f"Bearer {self._token}"}
        return httpx.Client(base_url=self._baseline["target"], headers=headers, timeout=30, transport=transport)

    def _keys(self, notes: list[JsonObject]) -> Iterable[str]:
        made, unknown = self._sorted(notes)
        if unknown:
            listed = self._patient.get(f"{API}/developer/credentials")
            other_keys = {*self._baseline["keys"], *made}
            names = {note["name"] for note in unknown}
            for key in data_of(listed).get("credentials", []):
                is_candidate = key["assigned_location_id"] == self._location and key["name"] in names
                if is_candidate and key["client_id"] not in other_keys:
                    made.append(key["client_id"])
            if listed.is_error:
                yield f"the keys of {self._location} cannot be listed ({_why(listed)}); revoke {', '.join(names)}"
        for client_id in made:
            path = f"{API}/developer/credentials/{client_id}"
            response = self._patient.delete(path)
            if response.is_error and response.status_code != 404:
                yield f"key {client_id} is still live ({_why(response)}); revoke it: {self._curl('DELETE', path)}"

    def _posts(self, notes: list[JsonObject]) -> Iterable[str]:
        made, unknown = self._sorted(notes)
        for note in unknown:
            names, is_certain = self._find_post(note, made)
            made += names
            if not is_certain:
                yield f"a post {note['summary']!r} of {self._location} may exist; look for it and delete it"
        for name in made:
            path = f"{API}/posts/{name.rpartition('/')[2]}"
            response = self._patient.delete(path, params=self._at)
            if response.is_error and response.status_code != 404:
                remedy = self._curl("DELETE", f"{path}?locationId={self._location}")
                yield f"post {name} still exists ({_why(response)}); delete it: {remedy}"

    def _find_post(self, note: JsonObject, made: list[str]) -> tuple[list[str], bool]:
        """Return the post whose creation has an unknown outcome, and whether the list of posts was current."""
        until = time.time() + min(self._patience, _LISTED_SECONDS)
        while True:
            listed = self._client.get(f"{API}/posts", params={**self._at, "pageSize": 100})
            other_posts = {*self._baseline["posts"], *made}
            names = [
                post["name"]
                for post in data_of(listed).get("localPosts", [])
                if post["name"] not in other_posts
                and (post.get("summary"), post.get("topicType")) == (note["summary"], note["topic"])
            ]
            is_certain = listed.is_success and "X-Data-Age" not in listed.headers
            if names or time.time() >= until:
                return names, is_certain
            time.sleep(_POLL_SECONDS)

    def _sorted(self, notes: list[JsonObject]) -> tuple[list[str], list[JsonObject]]:
        """Return the names of created resources, and the notes with an unknown outcome."""
        made = [self._outcome.get(note["id"]) for note in notes]
        unknown = [note for note in notes if note["id"] not in self._outcome]
        return list(dict.fromkeys(name for name in made if name)), unknown

    def _replies(self, notes: list[JsonObject]) -> Iterable[str]:
        comments: dict[str, str | None] = {}
        for note in notes:
            comments.setdefault(note["review"], note["comment"])
        for review, comment in comments.items():
            path = f"{API}/reviews/{review}/reply"
            if comment is None:
                response = self._patient.delete(path, params=self._at)
            else:
                response = self._patient.put(path, params=self._at, json={"comment": comment})
            if response.is_error and not (comment is None and response.status_code == 404):
                yield f"the reply to review {review} is not restored ({_why(response)}); it was: {comment!r}"

    def _switch_back(self, _: list[JsonObject]) -> Iterable[str]:
        enabled = self._baseline["entry"]["syncEnabled"]
        response = self._switch(enabled)
        if response.is_error:
            yield f"the sync switch of {self._location} is not restored ({_why(response)}); it was: {enabled}"

    def _switch(self, enabled: bool) -> httpx.Response:
        path = f"{API}/external-business/{self._location}/sync"
        return self._patient.patch(path, json={"syncEnabled": enabled})

    def _profile(self, notes: list[JsonObject]) -> Iterable[str]:
        """Sync the initial values. A sync that the provider rejects still restores the desired values."""
        was, touched = self._baseline["profile"], JsonObject()
        for note in notes:
            touched = profiles.merge(touched, note["body"])
        back = profiles.split(restoring(touched, profiles.merge(was["provider"], was["source"])), None)[0]
        if not back:
            return
        self._switch(True)
        path = f"{API}/sync/{self._location}"
        response = self._client.post(path, json=back)
        if response.is_error:  # wait by a read, because each failed sync appears in the owner's history
            self._patient.get(f"{API}/sync/comparison/{self._location}")
            response = self._client.post(path, json=back)
        remedy = f"restore it: {self._curl('POST', path, back)}"
        if response.is_error:
            where = "at the provider " if response.status_code == 502 else ""
            yield f"the profile of {self._location} {where}may not be restored ({_why(response)}); {remedy}"
            return
        compared = self._patient.get(f"{API}/sync/comparison/{self._location}")
        now = data_of(compared)
        left = [difference["field"] for difference in now.get("differences", [])]
        left += sorted(set(now.get("filtered", [])) - set(was["filtered"]))
        before = {name: was["provider"].get(name) for name in back}  # another spelling of a value is restored, too
        left += [difference["field"] for difference in profiles.differences(before, now.get("provider", before), [])]
        if left:
            yield f"the profile of {self._location} is not restored at {', '.join(dict.fromkeys(left))}; {remedy}"

    def _curl(self, method: str, path: str, body: JsonObject | None = None) -> str:
        """Return a command for a shell in which USER_TOKEN is set."""
        data = "" if body is None else f" -H 'Content-Type: application/json' -d {quoted(json.dumps(body))}"
        url = f"{self._baseline['target']}{path}"
        return f'curl -X {method} -H "Authorization: Bearer $USER_TOKEN"{data} {quoted(url)}'


_NAMES = {"sync": "syncs", "switch": "the sync switch", "post": "posts", "reply": "replies", "key": "keys"}


def restoring(touched: JsonObject, was: JsonObject) -> JsonObject:
    """Return the sync body that restores all changed fields. null clears fields that did not exist."""
    body: JsonObject = {}
    for name, value in touched.items():
        before = was.get(name)
        nested = isinstance(before, dict) and isinstance(value, dict) and value
        body[name] = restoring(value, before) if nested else before  # type: ignore[arg-type]
    return body


def _why(response: httpx.Response) -> str:
    return f"{response.status_code} {code_of(response) or ''}".strip()
