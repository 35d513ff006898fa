"""Playing the outside world: change a profile at the provider, end a review, take the provider down."""

from collections.abc import Callable
from typing import Any

Control = Callable[[str, str, object], Any]


class ProviderControl:
    """The provider's side of the lab; needs the embedded emulator."""

    def __init__(self, control: Control, calls: Callable[[], list[dict[str, Any]]]) -> None:
        self._control, self._calls = control, calls

    def _put(self, **change: object) -> None:
        self._control("PUT", "state", change)

    def profile(self, location: str) -> dict[str, Any]:
        """The location as the provider has it."""
        document: dict[str, Any] = self._control("GET", "state", None)["locations"][location]["document"]
        return document

    def document(self, name: str) -> dict[str, Any]:
        """A post or review as the provider has it, by the service's name; its own name shows the account."""
        return self._child(name)[1]

    def _child(self, name: str) -> tuple[str, dict[str, Any]]:
        state = self._control("GET", "state", None)
        kind, member = ("post", "posts") if "/localPosts/" in name else ("review", "reviews")
        for full, document in state[member].items():
            if full.endswith(f"/{name}"):
                return full, document
        raise ValueError(f"the provider has no {kind} {name}")

    def change(self, location: str, **members: object) -> None:
        """Edit the profile at the provider: top-level fields in its format, None removes one."""
        self._put(locations={location: members})

    def verify(self, location: str, verified: bool = True, **why: object) -> None:
        """The provider verifies a location, or takes its verification back.

        `why` is the field of its VoiceOfMerchantState that names what is missing, `verify={}` by default.
        """
        state = {"hasVoiceOfMerchant": verified, "hasBusinessAuthority": verified}
        self._put(voice_of_merchant={location: state if verified else {**state, **(why or {"verify": {}})}})

    def review(self, post: str, state: str) -> None:
        """The review of a post ends in a state: LIVE, REJECTED, …

        `post` is the service's name of it, `locations/…/localPosts/…`.
        """
        self._put(posts={self._child(post)[0]: {"state": state}})

    def write_review(self, location: str, stars: str, comment: str = "", review_id: str = "9") -> str:
        """A customer gives `stars` (ONE to FIVE), with or without words; returns the service's name of the review."""
        account = self._control("GET", "state", None)["locations"][location]["account"]
        words = {"comment": comment} if comment else {}
        review = {"reviewer": {"displayName": "A customer"}, "starRating": stars, **words}
        name = f"{location}/reviews/{review_id}"
        self._put(reviews={f"{account}/{name}": review})
        return name

    def behave(self, **switches: object) -> None:
        """Set the emulator's switches: strict, review_seconds, reject_phrase, edits_per_minute, …"""
        self._put(switches=switches)

    def fault(self, kind: str, *, times: int = 1, method: str = ".*", path: str = "/v[0-9]", **members: object) -> None:
        """The next calls go wrong: status, delay, broken_body, truncated, disconnect, huge, redirect or flapping.

        `method` and the start of `path` are regular expressions; fields are those of the emulator's Fault
        (`status=503`, `seconds=2`, `after=True`). Failing calls are repeated, so `times` must outlast three tries.
        What the service spends on a slow provider is real time: `open_lab(provider={"timeout_seconds": 0.5})`. After
        five operations without an answer an API is not asked for 10 seconds of the lab's clock.
        """
        match = {"method": method, "path": path}
        self._control("POST", "faults", {"kind": kind, "times": times, "match": match, **members})

    def heal(self) -> None:
        """Forget the faults that did not happen yet."""
        self._control("DELETE", "faults", None)

    def calls(self) -> list[dict[str, Any]]:
        """What the service asked the provider: method, path, query, body, status; oldest first."""
        return self._calls()
