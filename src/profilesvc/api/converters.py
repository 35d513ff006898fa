"""URL converters: they find the route; `contract.common` decides what an id may be (D-20).

A malformed id of one segment still finds its route, so that the answer is a 400 that names the rule and not a 404.
Werkzeug's own converters would send `locations%2F1` to 404.
"""

from werkzeug.routing import BaseConverter, Map


class LocationConverter(BaseConverter):
    """`123`, `locations/123`, `locations%2F123`; also `accounts/1/locations/123`, to be refused with a reason."""

    part_isolating = False
    regex = r"(?:(?:accounts/[^/]+/)?locations/)?[^/]+"


class PostConverter(BaseConverter):
    """`p1`, `locations/123/localPosts/p1`, and the provider's longer form, to be refused with a reason."""

    part_isolating = False
    regex = r"(?:(?:accounts/[^/]+/)?locations/[^/]+/localPosts/)?[^/]+"


class ReviewConverter(BaseConverter):
    """`r1`, `locations/123/reviews/r1`, and the provider's longer form, to be refused with a reason."""

    part_isolating = False
    regex = r"(?:(?:accounts/[^/]+/)?locations/[^/]+/reviews/)?[^/]+"


class SegmentConverter(BaseConverter):
    """One segment as it stands; no resource has a NUL in its name, and PostgreSQL refuses to look for one."""

    part_isolating = True
    regex = r"[^/\x00]+"


def install(url_map: Map) -> None:
    """Make `<location:…>`, `<post:…>`, `<review:…>` known; take paths literally: no merged slashes, no redirects."""
    url_map.converters["default"] = SegmentConverter
    url_map.converters["location"] = LocationConverter
    url_map.converters["post"] = PostConverter
    url_map.converters["review"] = ReviewConverter
    url_map.merge_slashes = False
    url_map.strict_slashes = True
    url_map.redirect_defaults = False
