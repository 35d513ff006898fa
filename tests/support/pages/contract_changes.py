"""Changes of the contract, each with the notebook that shows the difference."""

from typing import NamedTuple

WRITE, READ = "access=WRITE", "access=READ"


class Change(NamedTuple):
    """A text in a file of the package, what replaces it, and the page that must notice."""

    name: str
    page: str
    file: str
    old: str
    new: str


def _lowered(name: str, file: str, route: str, space: str = "\n    ") -> Change:
    """Return a change that allows an operation with `business.read`; `space` is between the route and the right."""
    path, start = f"api/routes/{file}.py", f'"{route}",{space}'
    return Change(f"{name} needs only read", "02", path, f"{start}{WRITE}", f"{start}{READ}")


_LOCATION = "/external-business/locations/<location:locationId>"
_SETTINGS = "settings/groups.py"
CHANGES = [
    _lowered("creating a post", "posts", "POST /posts"),
    _lowered("changing a post", "posts", "PATCH /posts/<post:postId>"),
    _lowered("deleting a post", "posts", "DELETE /posts/<post:postId>", " "),
    _lowered("sync", "sync", "POST /sync/<location:locationId>"),
    _lowered("the sync switch", "locations", f"PATCH {_LOCATION}/sync"),
    _lowered("refresh-verification", "locations", f"POST {_LOCATION}/refresh-verification"),
    _lowered("replying", "reviews", "PUT /reviews/<review:reviewId>/reply"),
    _lowered("deleting a reply", "reviews", "DELETE /reviews/<review:reviewId>/reply", " "),
    Change("issuer unchecked", "14", "tokens/claims.py", 'claims.get("iss") != issuer or ', ""),
    Change("audience unchecked", "14", "tokens/claims.py", ' or claims.get("aud") != audience', ""),
    Change("expiry unchecked", "02", "tokens/signer.py", 'claims["exp"] * 1000 <= now:', "False:"),
    Change("access tokens for 30 days", "02", _SETTINGS, "le=31_536_000)] = 7_776_000", "le=31_536_000)] = 2_592_000"),
    Change("refresh tokens for 90 days", "02", _SETTINGS, "le=31_536_000)] = 2_592_000", "le=31_536_000)] = 7_776_000"),
    Change("user tokens for a day", "06", _SETTINGS, "= 604_800", "= 86_400"),
    Change("refresh grace of 60 s", "13", _SETTINGS, "le=60)] = 30", "le=60)] = 60"),
    Change("refresh grace of 10 s", "13", _SETTINGS, "le=60)] = 30", "le=60)] = 10"),
    Change("signing keys for 30 days", "14", _SETTINGS, "le=3650)] = 90", "le=3650)] = 30"),
    Change("announced 7 days before", "14", _SETTINGS, "le=365)] = 14", "le=365)] = 7"),
    Change("keys cached for an hour", "14", "api/routes/wellknown.py", "max-age=300", "max-age=3601"),
    Change("twenty wrong secrets", "02", "limits/settings.py", '"10/15 minutes"', '"20/15 minutes"'),
    Change("sixty heartbeats a minute", "09", "limits/settings.py", '"30/minute"', '"60/minute"'),
    Change("other limit of reads", "09", "limits/settings.py", '"300/minute"', '"299/minute"'),
    Change("no RateLimit-Policy", "09", "api/guard.py", '(b"ratelimit-policy", policy.encode()),', ""),
    Change("tokens may be cached", "02", "api/routes/tokens.py", "no_store=True", "no_store=False"),
    Change("no challenge", "13", "api/failures.py", 'error.kind is INVALID_CLIENT and "Auth', 'False and "Auth'),
    Change(
        "expires_at not enforced", "01", "storage/keys.py", "(expires_at is not None and expires_at <= now)", "False"
    ),
    Change("secrets of 32 bytes", "01", "domain/keys.py", "SECRET_BYTES = 48", "SECRET_BYTES = 32"),
    Change("500 posts a month", "04", "plans.toml", "monthly_posts = 1_000", "monthly_posts = 500"),
    Change(
        "posts in the growth plan", "04", "plans.toml", "posts = false\nreviews = true", "posts = true\nreviews = true"
    ),
    Change("20 posts by default", "04", "contract/posts.py", "PageLimit = 50", "PageLimit = 20"),
    Change("200 posts at most", "04", "contract/common.py", "MAX_LIMIT = 100", "MAX_LIMIT = 200"),
    Change("a summary of 3,000", "04", "contract/provider/limits.py", "SUMMARY = 1500", "SUMMARY = 3000"),
    Change("10 syncs by default", "05", "contract/sync.py", "PageLimit = 20", "PageLimit = 10"),
    Change("25 syncs at most", "05", "contract/common.py", "MAX_LIMIT = 100", "MAX_LIMIT = 25"),
    Change("responses stored for two days", "05", "services/idempotency.py", "RETENTION = DAY", "RETENTION = 2 * DAY"),
    Change("responses stored for an hour", "05", "services/idempotency.py", "RETENTION = DAY", "RETENTION = DAY // 24"),
    Change("SYNC_DISABLED is 403", "05", "contract/errors.py", '"SYNC_DISABLED", 409', '"SYNC_DISABLED", 403'),
    Change("NOT_FOUND is 410", "00", "contract/errors.py", '"NOT_FOUND", 404', '"NOT_FOUND", 410'),
    Change("online for 3 hours", "03", "domain/heartbeats.py", "ONLINE_FOR = 2", "ONLINE_FOR = 3"),
    Change("offline after 2 days", "03", "domain/heartbeats.py", "OFFLINE_AFTER = DAY", "OFFLINE_AFTER = 2 * DAY"),
    Change("a heartbeat every half hour", "03", "domain/heartbeats.py", "= 3_600", "= 1_800"),
    Change("50 locations by default", "07", "contract/locations.py", "PageLimit = 20", "PageLimit = 50"),
    Change("300 locations at most", "07", "contract/common.py", "MAX_LIMIT = 100", "MAX_LIMIT = 300"),
    Change("copies of ten minutes", "07", "settings/__init__.py", "le=86_400)] = 60\n", "le=86_400)] = 600\n"),
    Change(
        "sync stays on unverified", "07", "services/locations.py", "if not is_verified and await", "if False and await"
    ),
    Change("replies of 8 KB", "08", "contract/provider/review.py", "MAX_REPLY_BYTES = 4096", "MAX_REPLY_BYTES = 8192"),
    Change("headers of 64 KB", "09", "api/guard.py", "MAX_HEADER_BYTES = 16", "MAX_HEADER_BYTES = 64"),
    Change("bodies of 1 MB", "09", "api/endpoint.py", "max_body: int = 256 * KB", "max_body: int = 1024 * KB"),
    Change("one attempt", "10", "provider/transport.py", "_ATTEMPTS = 3", "_ATTEMPTS = 1"),
    Change("a breaker that stays closed", "10", "provider/breaker.py", "FAILURES = 5", "FAILURES = 50"),
    Change("a breaker of 20 s", "10", "provider/breaker.py", "COOL_DOWN_MS = 10", "COOL_DOWN_MS = 20"),
    Change("another reason first", "11", "domain/keys.py", '"user_requested": 1', '"user_requested": 9'),
    Change("a third secret", "11", "services/credentials.py", "overlap_seconds and retiring is not None", "False"),
    Change(
        "tokens survive a roll", "11", "services/credentials.py", "    if not overlap_seconds:\n", "    if False:\n"
    ),
    Change("no www twin", "03", "domain/domains.py", "len(twin) <= LONGEST", "False"),
    Change(
        "preflights for a minute",
        "12",
        "api/cors.py",
        '"Access-Control-Max-Age": "600"',
        '"Access-Control-Max-Age": "60"',
    ),
]
