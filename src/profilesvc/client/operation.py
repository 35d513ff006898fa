"""What an operation is: a request as data, and how to read its answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx

from profilesvc.client import answers
from profilesvc.contract.envelope import Success

T = TypeVar("T")
Page = TypeVar("Page")
Item = TypeVar("Item")
PREFIX = "/api/v1"


@dataclass(frozen=True)
class Operation(Generic[T]):
    """A request, and how to read its answer.

    `repeatable`: doing it twice leaves what doing it once leaves, so an answer that was lost may be asked for again.
    `gone`: the result when a repeat finds that an earlier attempt has already removed the thing.
    """

    method: str
    path: str
    answer: type[Success[T]]
    params: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = field(default=None, repr=False)  # it can hold a secret
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = False
    bearer: bool = True
    gone: T | None = None

    def read(self, response: httpx.Response) -> T:
        """The data of the answer. ProfileApiError."""
        return answers.read(response, self.answer)


@dataclass(frozen=True)
class Pages(Generic[Page, Item]):
    """A page to fetch, the items in it, and the pages after it (None after the last)."""

    operation: Operation[Page]
    items: Callable[[Page], list[Item]]
    rest: "Callable[[Page], Pages[Page, Item] | None]"


def segment(value: str) -> str:
    """One path segment, whatever is in it; dots too, because `..` would be resolved on the way."""
    return quote(value, safe="").replace(".", "%2E")


def location_id(location: str) -> str:
    """The path segment of a location, from its id or its resource name."""
    return segment(location.removeprefix("locations/"))
