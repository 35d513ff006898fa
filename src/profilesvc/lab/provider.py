"""Control of the provider: change a profile, end a review, make calls fail."""

import time
from collections.abc import Callable
from typing import Any

from profilesvc.contract.json import JsonObject

_LONGEST_WAIT_SECONDS = 10.0

Control = Callable[[str, str, object], Any]


class ProviderControl:
    """The provider of the embedded service."""

    def __init__(self, control: Control, calls: Callable[[], list[JsonObject]]) -> None:
        self._control, self._calls = control, calls

    def _put(self, **change: object) -> None:
        self._control("PUT", "state", change)

    def profile(self, location: str) -> JsonObject:
        document: JsonObject = self._control("GET", "state", None)["locations"][location]["document"]
        return document

    def document(self, name: str) -> JsonObject:
        """Return a post or review as the provider has it, by the service's name."""
        return self._child(name)[1]

    def _child(self, name: str) -> tuple[str, JsonObject]:
        state = self._control("GET", "state", None)
        kind, plural = ("post", "posts") if "/localPosts/" in name else ("review", "reviews")
        for full, document in state[plural].items():
            if full.endswith(f"/{name}"):
                return full, document
        raise ValueError(f"the provider has no {kind} {name}")

    def change(self, location: str, **fields: object) -> None:
        """Change top-level fields of the profile at the provider. None removes a field."""
        self._put(locations={location: fields})

    def override(self, location: str, **fields: object) -> None:
        """Show consumers other values of top-level fields than the owner's. None removes a field.

        The owner can accept or reject them; without fields, consumers see the owner's values again.
        """
        self._put(google_updated={location: fields})

    def verify(self, location: str, verified: bool = True, **why: object) -> None:
        """Verify a location at the provider, or remove its verification.

        `why` is the field of VoiceOfMerchantState with the required action, by default `verify={}`.
        """
        state = {"hasVoiceOfMerchant": verified, "hasBusinessAuthority": verified}
        self._put(voice_of_merchant={location: state if verified else {**state, **(why or {"verify": {}})}})

    def publish(self, location: str, count: int) -> None:
        """Add posts that were published at the provider."""
        account = self._control("GET", "state", None)["locations"][location]["account"]
        post = {"topicType": "STANDARD", "languageCode": "en", "state": "LIVE"}
        names = [f"{account}/{location}/localPosts/9{number:05}" for number in range(count)]
        self._put(posts={name: {**post, "summary": f"News {number}."} for number, name in enumerate(names, 1)})

    def review(self, post: str, state: str) -> None:
        """End the review of a post with a state such as LIVE or REJECTED.

        `post` is the service's name, `locations/…/localPosts/…`.
        """
        self._put(posts={self._child(post)[0]: {"state": state}})

    def write_review(self, location: str, stars: str, comment: str = "", review_id: str = "9") -> str:
        """Add a customer's review with `stars` (ONE to FIVE). Return the service's name of the review."""
        account = self._control("GET", "state", None)["locations"][location]["account"]
        words = {"comment": comment} if comment else {}
        review = {"reviewer": {"displayName": "A customer"}, "starRating": stars, **words}
        name = f"{location}/reviews/{review_id}"
        self._put(reviews={f"{account}/{name}": review})
        return name

    def add_login(self, email: str, locations: dict[str, str], account: str = "accounts/4") -> None:
        """Add a login to the consent page, with an account of its own that has these locations, by name and title."""
        name = email.partition("@")[0].title()
        verified = {"hasVoiceOfMerchant": True, "hasBusinessAuthority": True}
        new = {
            location: {"account": account, "profile": {"title": title}, "voice_of_merchant": verified}
            for location, title in locations.items()
        }
        self._put(
            accounts={account: {"accountName": name, "type": "PERSONAL"}},
            new_locations=new,
            logins={email: {"email": email, "accounts": [account]}},
        )

    def withdraw_consent(self, email: str, account: str = "accounts/4", *, subject: str = "") -> None:
        """End all tokens of a login, as its user can at the provider.

        `subject` is the login's at the provider; `add_login` uses the e-mail address.
        """
        self._put(logins={subject or email: {"email": email, "accounts": [account], "revoked": True}})

    def behave(self, **switches: object) -> None:
        """Set the emulator's switches: strict, review_seconds, reject_phrase, edits_per_minute, …"""
        self._put(switches=switches)

    def fault(self, kind: str, *, times: int = 1, method: str = ".*", path: str = "/v[0-9]", **fields: object) -> None:
        """Make the next calls fail, in a way that `kind` names (docs/emulator.md).

        `method` and the start of `path` are regular expressions. `fields` are those of the emulator's Fault
        (`status=503`, `seconds=2`, `after=True`). `hold` keeps the calls until `heal`. The service tries a call up to
        three times, so `times` must be at least 3 to make it fail. A slow provider takes real time:
        `open_lab(provider={"timeout_seconds": 0.5})`. After five operations without a response, the service does not
        call an API for 10 seconds of the lab's clock.
        """
        match = {"method": method, "path": path}
        self._control("POST", "faults", {"kind": kind, "times": times, "match": match, **fields})

    def wait_for_faults(self) -> None:
        """Wait until the calls of all faults have arrived at the provider.

        Raises:
            TimeoutError: They have not arrived in ten seconds.
        """
        deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
        while self._control("GET", "state", None)["faults"]:
            if time.monotonic() > deadline:
                raise TimeoutError("no call has used the remaining faults")
            time.sleep(0.01)

    def heal(self) -> None:
        """Remove all faults and release held calls."""
        self._control("DELETE", "faults", None)

    def calls(self) -> list[JsonObject]:
        """Return the service's calls to the provider, oldest first: method, path, query, body and status."""
        return self._calls()
