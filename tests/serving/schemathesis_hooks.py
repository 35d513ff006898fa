"""Hooks of Schemathesis: what its drawing cannot hit upon, and a count of what was sent.

Loaded by schemathesis.toml in the process of `schemathesis run`, which finds `known.json` in its folder and leaves
`counts.json` there. Only cases that fit the document are improved; the bad ones stay as they were drawn.
"""

import atexit
import collections
import hashlib
import itertools
import json
import time
from pathlib import Path
from typing import Any

import jwt
import schemathesis
from hypothesis import strategies as st
from schemathesis.core.parameters import ParameterLocation

KNOWN = json.loads(Path("known.json").read_text("utf-8"))
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"
CREDENTIALS = {name: KNOWN[name] for name in ("client_id", "client_secret")}
SENT: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
DIFFERENT: dict[str, set[bytes]] = collections.defaultdict(set)
# Values from responses, newest last: a refresh token is valid for one exchange, a post until it is deleted.
REFRESH_TOKENS = collections.deque([KNOWN["refresh_token"]], 20)
NEW_POSTS: collections.deque[str] = collections.deque(["locations/111/localPosts/11103"], 20)
NUMBERS = itertools.count()

PICK = st.integers(0, 2**16)  # of what a list holds by then: its length is not Hypothesis's to remember
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=40)
ADDRESS = st.from_regex(r"https://[a-z]{1,12}\.example/[a-z0-9]{0,12}", fullmatch=True)
DAY = st.fixed_dictionaries({"year": st.just(2098), "month": st.integers(1, 12), "day": st.integers(1, 28)})
NEXT_YEAR = DAY.map(lambda day: {**day, "year": 2099})
CLOCK = st.fixed_dictionaries({"hours": st.integers(0, 23)}, optional={"minutes": st.integers(0, 59)})
SCHEDULE = st.fixed_dictionaries({"startDate": DAY, "startTime": CLOCK, "endDate": NEXT_YEAR, "endTime": CLOCK})
EVENT = st.fixed_dictionaries({"title": WORDS.map(lambda text: f"Night {text}"), "schedule": SCHEDULE})
ACTION = st.one_of(
    st.just({"actionType": "CALL"}),
    st.fixed_dictionaries({"actionType": st.sampled_from(["BOOK", "ORDER", "LEARN_MORE"]), "url": ADDRESS}),
)
SUMMARY = WORDS.map(lambda text: f"Open {text}")
MEDIA = st.lists(st.fixed_dictionaries({"mediaFormat": st.just("PHOTO"), "sourceUrl": ADDRESS}), max_size=3)
POST = st.one_of(
    st.fixed_dictionaries({"summary": SUMMARY}, optional={"callToAction": ACTION, "media": MEDIA}),
    st.fixed_dictionaries({"topicType": st.just("EVENT"), "event": EVENT}, optional={"summary": SUMMARY}),
    st.fixed_dictionaries(
        {"topicType": st.just("OFFER"), "event": EVENT},
        optional={"offer": st.fixed_dictionaries({"couponCode": WORDS, "redeemOnlineUrl": ADDRESS})},
    ),
    st.fixed_dictionaries(
        {"topicType": st.just("ALERT"), "summary": SUMMARY}, optional={"languageCode": st.just("en")}
    ),
)
PROFILE = st.fixed_dictionaries(
    {"title": SUMMARY}, optional={"websiteUri": ADDRESS, "profile": st.fixed_dictionaries({"description": WORDS})}
)
SWITCH = st.fixed_dictionaries({"syncEnabled": st.sampled_from([True, True, True, False])})
CHANGE = st.fixed_dictionaries({"summary": SUMMARY}, optional={"callToAction": ACTION})


def id_token() -> str:
    """A login at the bundled issuer that was not exchanged yet."""
    now = int(time.time())
    claims = {**KNOWN["login"], "iat": now, "exp": now + 300, "jti": f"fuzz-{time.time_ns()}-{next(NUMBERS)}"}
    return jwt.encode(claims, KNOWN["issuer_key"], "RS256", {"kid": KNOWN["issuer_kid"]})


@st.composite
def grants(draw: st.DrawFn) -> dict[str, Any]:
    """A body of the token route that is valid now."""
    kind = draw(st.sampled_from(["client_credentials", "refresh_token", EXCHANGE]))
    if kind == EXCHANGE:
        return {"grant_type": kind, "subject_token": id_token(), "subject_token_type": ID_TOKEN}
    if kind == "refresh_token":
        return {"grant_type": kind, "refresh_token": REFRESH_TOKENS[-1 - draw(PICK) % min(2, len(REFRESH_TOKENS))]}
    return {"grant_type": kind, **CREDENTIALS}


@st.composite
def handles(draw: st.DrawFn) -> dict[str, Any]:
    """A form about a token that was good once and may be now."""
    return {"token": REFRESH_TOKENS[draw(PICK) % len(REFRESH_TOKENS)]}


BODIES = {
    "POST /api/v1/posts": POST,
    "PATCH /api/v1/posts/{postId}": CHANGE,
    "POST /api/v1/sync/{locationId}": PROFILE,
    "PATCH /api/v1/external-business/locations/{locationId}/sync": SWITCH,
    "POST /api/v1/auth/token": grants(),
    "POST /oauth2/token": grants(),
    "POST /oauth2/introspect": handles(),
    "POST /oauth2/revoke": handles(),
}


@schemathesis.hook
def before_generate_case(context: Any, strategy: Any) -> Any:
    """Draw values that are not in the document. Every request has a new value, so that none counts as a duplicate."""
    return improved(strategy, context.operation.label)


@st.composite
def improved(draw: st.DrawFn, cases: Any, label: str) -> Any:
    case = draw(cases)
    case.headers["X-Drawn"] = draw(st.text("abcdefghijklmnopqrstuvwxyz", max_size=8))
    if case.meta.generation.mode.is_negative:
        return case
    if label in BODIES and draw(st.integers(0, 9)) < 7:
        case.body = draw(BODIES[label])
    if "/oauth2/" in label and isinstance(case.body, dict) and draw(st.booleans()):
        case.body = {name: value for name, value in case.body.items() if name not in CREDENTIALS}
        case.body.update(CREDENTIALS if draw(st.booleans()) else {})
    if "{postId}" in label and phase(case) == "fuzzing" and draw(st.booleans()):  # a chain has a post of its own
        post = NEW_POSTS[draw(PICK) % len(NEW_POSTS)]
        case.path_parameters["postId"], case.query["locationId"] = post, post.rpartition("/localPosts/")[0]
    return case


@schemathesis.hook
def before_call(_context: Any, case: Any, _kwargs: Any) -> None:
    """Send client credentials in a form only once (RFC 6749 §2.3), and edge cases on existing resources."""
    body = case.body if isinstance(case.body, dict) else {}
    if "/oauth2/" in case.operation.label and body.keys() >= CREDENTIALS.keys():
        case.headers.pop("Authorization", None)
    if phase(case) != "coverage":
        return
    if body.get("syncEnabled") is False:
        body["syncEnabled"] = True
    if case.operation.label.startswith("PATCH /api/v1/posts/") and not case.meta.is_negative_at(ParameterLocation.PATH):
        case.path_parameters["postId"] = "11101"


def phase(case: Any) -> str:
    """The phase of a case: examples, coverage, fuzzing or stateful."""
    return str(case.meta.phase.name.value) if case.meta else "check"


@schemathesis.hook
def after_call(_context: Any, case: Any, response: Any) -> None:
    """Count the request, and remember what it made."""
    label, request = case.operation.label, response.request
    SENT[label][f"{phase(case)} {response.status_code}"] += 1
    body = request.body.encode() if isinstance(request.body, str) else request.body or b""
    DIFFERENT[label].add(hashlib.sha256(f"{request.method} {request.url} ".encode() + body).digest())
    if response.status_code == 200 and label.endswith("/token"):
        token = response.json()
        REFRESH_TOKENS.extend(found for found in [token.get("data", token).get("refresh_token")] if found)
    if response.status_code == 201 and label == "POST /api/v1/posts":
        NEW_POSTS.append(response.json()["data"]["name"])


@atexit.register
def tell() -> None:
    """Leave the counts for the test."""
    told = {label: {"different": len(DIFFERENT[label]), **sent} for label, sent in SENT.items()}
    Path("counts.json").write_text(json.dumps(told), "utf-8")
