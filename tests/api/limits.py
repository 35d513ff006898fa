"""Shared parts of the tests of rate limits: paths, addresses, and the parsed header fields."""

import re

import httpx

from support.api import assert_error

VALIDATE = "/api/v1/auth/validate-service-credentials"
LOCATION = "/api/v1/external-business/locations/111"
CREDENTIALS = "/api/v1/developer/credentials"
HEARTBEAT = "/api/v1/api-keys/heartbeat"
NEW_KEY = {"name": "Many", "business_id": 10, "assigned_location_id": "locations/111"}


def from_address(address: str) -> dict[str, str]:
    """The headers of the proxy in front of the service."""
    return {"X-Forwarded-For": address}


def fields(response: httpx.Response) -> tuple[str, int, int, int, int]:
    """Name, quota, window, what is left, and the seconds until there is more."""
    policy = re.fullmatch(r'"([a-z-]+)";q=(\d+);w=(\d+)', response.headers["RateLimit-Policy"])
    limit = re.fullmatch(r'"([a-z-]+)";r=(\d+);t=(\d+)', response.headers["RateLimit"])
    assert policy is not None
    assert limit is not None
    assert policy[1] == limit[1]
    return policy[1], int(policy[2]), int(policy[3]), int(limit[2]), int(limit[3])


def assert_limited(response: httpx.Response) -> int:
    """RATE_LIMITED with fields that agree; the seconds to wait."""
    assert_error(response, 429, "RATE_LIMITED")
    _, _, _, left, seconds = fields(response)
    assert left == 0
    assert response.headers["Retry-After"] == str(seconds)
    assert seconds >= 1
    return seconds
