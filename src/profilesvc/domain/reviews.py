"""The rule for a reply to a review, and which reviews of a list are news."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.review import ReviewReply
from profilesvc.contract.visible import has_visible_text
from profilesvc.domain.errors import invalid_many
from profilesvc.domain.messages import parse, without_read_only


def check_reply(body: JsonObject) -> str:
    """Return the comment to send.

    Read-only fields are ignored, so that a reply can be sent back as it was read.

    Raises:
        ServiceError: VALIDATION_ERROR that names every invalid field.
    """
    reply, problems = parse(ReviewReply, without_read_only(ReviewReply, body))
    comment: str = reply.get("comment") or ""
    if not has_visible_text(comment) and not any(field == "comment" for _, field, _ in problems):
        problems.append(("body", "comment", "is required and must not be blank"))
    if problems:
        raise invalid_many(problems)
    return comment


LARGEST_SEEN = 50  # reviews of a location whose update times are stored: a page of the provider


class Listed(NamedTuple):
    """A review in a list of the provider, which starts with the one that was updated last."""

    id: str
    created_at: int
    updated_at: int


class Seen(NamedTuple):
    """The reviews that earlier readings listed: `times` has every one that was updated after `floor`."""

    times: dict[str, int]
    floor: int


class News(NamedTuple):
    """A review that no earlier reading listed with this update time."""

    id: str
    what: Literal["created", "updated"]


def first_seen(listed: Sequence[Listed], *, is_all: bool) -> Seen:
    """Return what the first reading stores: nothing that it lists is news."""
    floor = 0 if is_all or not listed else min(review.updated_at for review in listed)
    return _shortened({review.id: review.updated_at for review in listed}, floor)


def reaches(seen: Seen, listed: Sequence[Listed]) -> bool:
    """Return whether a list, which more reviews follow, includes all that were updated since the last reading."""
    newest = max(seen.times.values(), default=seen.floor)
    return bool(listed) and min(review.updated_at for review in listed) <= newest


def news(seen: Seen, listed: Sequence[Listed]) -> list[News]:
    """Return the reviews that are new or changed, the one that was updated last at the end."""
    reviews = [review for review in listed if review.updated_at > seen.times.get(review.id, seen.floor)]
    reviews.sort(key=lambda review: (review.updated_at, review.id))
    return [News(review.id, _what(seen, review)) for review in reviews]


def _what(seen: Seen, review: Listed) -> Literal["created", "updated"]:
    is_new = review.id not in seen.times and review.created_at > seen.floor
    return "created" if is_new else "updated"


def with_listed(seen: Seen, listed: Sequence[Listed]) -> Seen:
    """Return what is seen after a reading. In whichever order readings are added, the result is the same."""
    times = dict(seen.times)
    for review in listed:
        if review.updated_at > times.get(review.id, seen.floor):
            times[review.id] = review.updated_at
    return _shortened(times, seen.floor)


def _shortened(times: dict[str, int], floor: int) -> Seen:
    """Keep those that were updated last, and raise the floor to the others."""
    newest = sorted(times.items(), key=lambda pair: (-pair[1], pair[0]))
    dropped = [at for _, at in newest[LARGEST_SEEN:]]
    return Seen(dict(sorted(newest[:LARGEST_SEEN])), max([floor, *dropped]))
