"""The texts of the OpenAPI document that belong to no operation or schema."""

from profilesvc import __version__
from profilesvc.contract.errors import CATALOGUE
from profilesvc.contract.json import JsonObject

_RETRIES = sorted((kind for kind in CATALOGUE.values() if kind.retry != "no"), key=lambda kind: kind.status)
_RETRIED = ", ".join(
    f"`{kind.code}` ({kind.status}{'' if kind.retry == 'yes' else f', {kind.retry}'})" for kind in _RETRIES
)

_PARAGRAPHS = (
    "Connect a site to the business profile of its location: keys, tokens, heartbeats, local posts, reviews and "
    "profile sync, in the provider's own format.",
    "**First request.** Create a key, exchange its client id and secret for a token with `POST /api/v1/auth/token`, "
    "and send the token as `Authorization: Bearer …`. In this service's `/docs`, *Authorize* fetches a token.",
    '**Responses.** A success is `{"status": "ok", "data": …}`. An error is `{"status": "error", "error": {"code", '
    '"message", "details"}}`. Switch on `code`; `message` is for people and can change. The OAuth endpoints use the '
    "fields of their standards. Every response has an `X-Request-Id`.",
    f"**Retries.** Repeat the same request only after these codes: {_RETRIED}. Wait as long as `Retry-After` says, in "
    "seconds. `QUOTA_EXCEEDED` (429) is not one of them: the month has to end first. Creating a post and syncing "
    "accept an `X-Idempotency-Key`, so that a retry does nothing twice.",
    "**Compatibility.** Times are RFC 3339 in UTC. New fields and new error codes can appear in responses, so clients "
    "must ignore fields that they do not know, and decide by the status if they do not know the code.",
)
INFO: JsonObject = {
    "title": "profilesvc",  # generators name the package after it: profilesvc_client
    "version": __version__,
    "description": "\n\n".join(_PARAGRAPHS),
    "contact": {"name": "The profilesvc maintainers"},
    "license": {"name": "MIT", "identifier": "MIT"},
}
BASE_URL = "https://profiles.example"  # of the examples, too; the running service replaces it
GUIDES = f"{BASE_URL}/guides/docs"
# The name, the description and the guide of the tag of each blueprint. That of `keys` is also that of `keys_requests`.
TAGS = {
    "keys": (
        "Keys",
        "An API key connects one site to one location. Its owner creates, renews, pauses and revokes it.",
        "api-contract.html#keys",
    ),
    "tokens": (
        "Tokens",
        "Exchange a client id and secret for an access token, which all other requests need.",
        "api-contract.html#tokens",
    ),
    "connection": (
        "Connection",
        "A site sends a heartbeat every hour, so its owner sees whether it is connected.",
        "plugin-authors.html",
    ),
    "locations": (
        "Locations",
        "The business profiles at the provider, their verification and their sync switch.",
        "api-contract.html#locations",
    ),
    "posts": ("Posts", "News, events and offers of a location, in the provider's format.", "api-contract.html#posts"),
    "reviews": (
        "Reviews",
        "What customers write about a location, and the replies of the business.",
        "api-contract.html#reviews",
    ),
    "sync": ("Sync", "Compare a profile with the provider's, preview a change, and send it.", "api-contract.html#sync"),
    "audit": ("Audit", "Who did what, and when: logins, tokens and changes of keys.", "api-contract.html#keys"),
    "events": (
        "Events",
        "What happened to keys, sites and locations: a log to read, and webhooks that receive the same documents.",
        "events.html",
    ),
    "webhooks": (
        "Webhooks",
        "Endpoints of yours that receive events as they happen, signed by Standard Webhooks.",
        "events.html",
    ),
    "alerts": ("Alerts", "E-mail about what happened to keys, sites and locations.", "events.html#e-mail"),
    "provider-connections": (
        "Provider connections",
        "Your own logins at the provider: connect them, import their locations, disconnect them.",
        "connections.html",
    ),
    "oauth2": ("OAuth", "The same tokens for OAuth libraries, as RFC 6749, 7662 and 7009 define them.", "oauth.html"),
    "wellknown": ("Discovery", "What OAuth libraries and verifiers of tokens read first.", "oauth.html"),
}
_BEARER = {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
SECURITY_SCHEMES: dict[str, JsonObject] = {
    "userToken": {
        **_BEARER,
        "description": "The access token of a user, for the owner of keys and locations. A token exchange with an ID "
        "token issues it.",
    },
    "serviceToken": {
        **_BEARER,
        "description": "The access token of an API key, for a site. `POST /api/v1/auth/token` issues it.",
    },
    "clientCredentials": {
        "type": "oauth2",
        "description": "A service token that an OAuth library, or *Authorize* in `/docs`, fetches with the client id "
        "and the secret of an API key.",
        "flows": {
            "clientCredentials": {
                "tokenUrl": "/oauth2/token",
                "scopes": {
                    "business.read": "Read locations, posts, reviews, comparisons and past syncs.",
                    "business.write": "Change posts and replies, switch sync, refresh verifications, and sync.",
                },
            }
        },
    },
    "client": {
        "type": "http",
        "scheme": "basic",
        "description": "The client id and the secret of an API key. They can also be sent in the form.",
    },
}
