"""Operations: a request as data, and how to read its response."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from urllib.parse import quote

import httpx

from profilesvc.client import responses
from profilesvc.contract.envelope import Success

T = TypeVar("T")
Page = TypeVar("Page")
Item = TypeVar("Item")
PREFIX = "/api/v1"


@dataclass(frozen=True)
class Operation(Generic[T]):
    """A request, and how to read its response.

    `repeatable`: twice has the same effect as once, so a request whose response was lost may be sent again.
    `result_if_missing`: the result if a retry gets NotFound because an earlier attempt has deleted the resource.
    """

    method: str
    path: str
    envelope: type[Success[T]]
    params: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, object] | None = field(default=None, repr=False)  # can contain a secret
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = False
    bearer: bool = True
    result_if_missing: T | None = None

    def read(self, response: httpx.Response) -> T:
        """Return the data of the response.

        Raises:
            ProfileApiError: The response reports a failure or cannot be read.
        """
        return responses.read(response, self.envelope)


@dataclass(frozen=True)
class Pages(Generic[Page, Item]):
    """A page to fetch, the items in it, and the pages after it (None after the last)."""

    operation: Operation[Page]
    items: Callable[[Page], list[Item]]
    rest: "Callable[[Page], Pages[Page, Item] | None]"


def segment(value: str) -> str:
    """Quote a string as one path segment. Dots are quoted too, because `..` would be resolved."""
    return quote(value, safe="").replace(".", "%2E")


def location_id(location: str) -> str:
    """Return the path segment of a location, from its id or its resource name."""
    return segment(location.removeprefix("locations/"))
