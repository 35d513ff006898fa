"""URL converters. They only find the route; `contract.common` validates ids.

A malformed id of one segment still finds its route, so that the response is a 400 that names the rule and not a 404.
With Werkzeug's own converters, `locations%2F1` would be a 404.
"""

from werkzeug.routing import BaseConverter, Map


class LocationConverter(BaseConverter):
    """`123`, `locations/123`, `locations%2F123`, and `accounts/1/locations/123`, which is rejected later."""

    regex = r"(?:(?:accounts/[^/]+/)?locations/)?[^/]+"


class PostConverter(BaseConverter):
    """`p1`, `locations/123/localPosts/p1`, and the provider's longer form, which is rejected later with a reason."""

    regex = r"(?:(?:accounts/[^/]+/)?locations/[^/]+/localPosts/)?[^/]+"


class ReviewConverter(BaseConverter):
    """`r1`, `locations/123/reviews/r1`, and the provider's longer form, which is rejected later with a reason."""

    regex = r"(?:(?:accounts/[^/]+/)?locations/[^/]+/reviews/)?[^/]+"


class SegmentConverter(BaseConverter):
    """One segment, without NUL, because PostgreSQL rejects a string with it."""

    part_isolating = True
    regex = r"[^/\x00]+"


def install(url_map: Map) -> None:
    """Register `<location:…>`, `<post:…>` and `<review:…>`, and match paths literally, without redirects."""
    url_map.converters["default"] = SegmentConverter
    url_map.converters["location"] = LocationConverter
    url_map.converters["post"] = PostConverter
    url_map.converters["review"] = ReviewConverter
    url_map.merge_slashes = False
    url_map.strict_slashes = True
    url_map.redirect_defaults = False
