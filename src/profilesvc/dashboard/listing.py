"""The state of a list, which is in its URL: search, filters, order and page. A bookmark and Back restore it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from urllib.parse import urlencode

SIZE = 50  # rows of a page
_LONGEST = 200
_OF_ID = 10  # characters
Row = TypeVar("Row")
Choices = Mapping[str, Collection[str] | None]  # the values of each parameter; None: any text


@dataclass(frozen=True, slots=True)
class Listing:
    """A list as its URL describes it. Parameters and values that the list does not have are ignored."""

    path: str
    values: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, path: str, given: Mapping[str, str], choices: Choices) -> "Listing":
        """Read the parameters of a request."""
        values = {}
        for name, allowed in choices.items():
            text = given.get(name, "").strip()[:_LONGEST]
            if text and (allowed is None or text in allowed):
                values[name] = text
        return cls(path, values)

    def get(self, name: str, default: str = "") -> str:
        return self.values.get(name, default)

    @property
    def page(self) -> int:
        """The number of the page, from 1."""
        text = self.get("page", "1")
        return max(int(text), 1) if text.isascii() and text.isdecimal() and len(text) <= 6 else 1

    @property
    def is_filtered(self) -> bool:
        """Return whether the list shows only a part of all rows."""
        return not self.values.keys() <= {"sort", "page", "select"}

    def link(self, path: str = "", **changes: object) -> str:
        """Return the URL of the list with other values; None removes one. A changed list starts at its first page."""
        changed = {name: value for name, value in {**self.values, **changes}.items() if value not in (None, "")}
        if "page" not in changes:
            changed.pop("page", None)
        return f"{path or self.path}?{urlencode(changed)}" if changed else path or self.path

    def here(self, path: str = "", **changes: object) -> str:
        """Return the URL of this page of the list, or of another form of it."""
        return self.link(path, page=self.values.get("page"), **changes)


@dataclass(frozen=True, slots=True)
class ListPage(Generic[Row]):
    """The rows of a page, of all that were found."""

    rows: Sequence[Row]
    total: int
    page: int

    @property
    def first(self) -> int:
        return (self.page - 1) * SIZE + 1

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1

    @property
    def pages(self) -> int:
        return max(-(-self.total // SIZE), 1)


def page_of(rows: Sequence[Row], listing: Listing) -> ListPage[Row]:
    """Return a page of the rows, or the last page if there are fewer."""
    number = min(listing.page, max(-(-len(rows) // SIZE), 1))
    return ListPage(rows[(number - 1) * SIZE : number * SIZE], len(rows), number)


def matches(text: str, *values: str | None, ids: Sequence[str] = ()) -> bool:
    """Return whether every word of a search is in one of the values, or in an id if the search is that long.

    A digit is in most ids, so that a short search would find rows for no visible reason.
    """
    searched = " ".join(value for value in (*values, *(ids if len(text) >= _OF_ID else ())) if value).casefold()
    return all(word in searched for word in text.casefold().split())
