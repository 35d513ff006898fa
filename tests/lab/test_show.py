"""What a page shows: escaped, without secrets, with a text that says the same, the same bytes every time."""

import base64
import json
from http import HTTPStatus
from typing import Any

import httpx
import pytest

from profilesvc.client import ProviderFailed
from profilesvc.contract.errors import CATALOGUE
from profilesvc.lab import comparison, key_card, sequence, show, timeline, token_card
from profilesvc.lab.views.compare import marked
from profilesvc.lab.views.hints import HINTS
from profilesvc.lab.views.record import Call
from profilesvc.lab.views.show import view
from profilesvc.lab.views.view import HIDDEN, MAX_LINES, pretty

EVIL = "<script>alert('x')</script>"
SECRET = "Sy4D" + "a1B/" * 15


def token(**claims: object) -> str:
    parts = [{"alg": "RS256", "typ": "at+jwt"}, claims]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join([*encoded, "c2lnbmF0dXJl"])


TOKEN = token(sub=EVIL, iat=1_767_323_045, exp=1_767_323_045 + 7_776_000)


def answer(status: int, body: Any, **headers: str) -> httpx.Response:
    request = httpx.Request(
        "POST",
        "http://127.0.0.1:4711/api/v1/posts?locationId=locations/1",
        headers={"Authorization": f"Bearer {TOKEN}"},
        json={"client_secret": SECRET, "summary": EVIL},
    )
    return httpx.Response(status, json=body, request=request, headers={"X-Request-Id": "abc", **headers})


COMPARISON = {
    "source": {"title": EVIL, "websiteUri": "https://a.example/", "labels": ["x"]},
    "provider": {"title": "Books", "websiteUri": "https://a.example/"},
    "lastSync": {"title": "Books"},
    "differences": [{"field": "title", "source": EVIL, "provider": "Books"}],
    "filtered": ["labels"],
}
HISTORY = [
    {"state": "online", "from": "2026-01-01T00:00:00.000Z", "to": "2026-01-01T02:00:00.000Z"},
    {"state": EVIL, "from": "2026-01-01T02:00:00.000Z", "to": "2026-01-02T00:00:00.000Z"},
]
FAILURE = {"status": "error", "error": {"code": "CONFLICT", "message": EVIL, "details": {"why": EVIL}}}
THINGS: dict[str, Any] = {
    "answer": answer(201, {"status": "ok", "data": {"summary": EVIL, "access_token": TOKEN, "note": f"is {SECRET}"}}),
    "failure": answer(409, FAILURE),
    "error": ProviderFailed("PROVIDER_API_ERROR", 502, EVIL, {"reason": EVIL, "retryable": True}, "abc"),
    "key": {"client_id": EVIL, "client_secret": SECRET, "name": EVIL},
    "comparison": COMPARISON,
    "history": {"connection_status": "idle", "history": HISTORY},
    "value": {"anything": EVIL, "refresh_token": TOKEN},
    "claims": token_card(TOKEN),
}


@pytest.mark.parametrize("name", THINGS)
def test_text_from_outside_is_escaped(name: str) -> None:
    html = view(THINGS[name]).html
    assert "<script" not in html
    assert "&lt;" in html


@pytest.mark.parametrize("name", THINGS)
def test_nothing_secret_and_nothing_that_differs_from_run_to_run_is_shown(name: str) -> None:
    shown = view(THINGS[name])
    for text in (shown.text, shown.html):
        for hidden in (SECRET, TOKEN, "127.0.0.1", "4711", "0x7f"):
            assert hidden not in text
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert (shown.text, shown.html) == (view(THINGS[name]).text, view(THINGS[name]).html)


def test_a_response_is_shown_with_its_request() -> None:
    text = repr(view(THINGS["answer"]))
    assert text.startswith("POST /api/v1/posts?locationId=locations/1\nAuthorization: Bearer eyJh••••••••\n")
    assert "→ 201 Created\nX-Request-Id: abc\n" in text
    assert f'"client_secret": "Sy4D{HIDDEN}"' in text
    assert f'"note": "is Sy4D{HIDDEN}"' in text


def test_a_failure_has_a_hint() -> None:
    text = repr(view(THINGS["failure"]))
    assert "→ 409 Conflict  CONFLICT" in text
    assert f"Hint: {HINTS['CONFLICT']}" in text
    assert HINTS["PROVIDER_API_ERROR"] in repr(view(THINGS["error"]))


def test_every_code_has_a_hint() -> None:
    assert HINTS.keys() == CATALOGUE.keys()


def test_other_bodies_are_named_by_kind_and_size() -> None:
    request = httpx.Request("GET", "http://127.0.0.1/docs")
    page = httpx.Response(200, text="<html>", headers={"Content-Type": "text/html; charset=utf-8"}, request=request)
    assert "text/html, 6 bytes" in repr(view(page))
    assert repr(view(httpx.Response(204, request=request))).endswith("→ 204 No Content")


def test_a_long_body_is_cut() -> None:
    assert pretty(list(range(600))).splitlines()[MAX_LINES] == "… 102 more lines"


def test_claims_are_shown_in_words() -> None:
    text = repr(token_card(TOKEN, at="2026-01-03T03:04:05.678Z"))
    assert "issued 2026-01-02 03:04:05 UTC" in text
    assert "expires 2026-04-02 03:04:05 UTC, valid for 90 days, 89 days left" in text
    assert "expired 1 second ago" in repr(token_card(TOKEN, at="2026-04-02T03:04:06Z"))
    with pytest.raises(ValueError, match="three parts"):
        token_card("abc")


def test_a_comparison_names_the_side_that_changed() -> None:
    lines = repr(comparison(COMPARISON)).splitlines()
    assert lines[1].split() == ["title", *EVIL.split(), "Books", "Books", "→", "changed", "here"]
    assert "⊘ filtered" in lines[2]
    assert lines[-1] == "1 in sync, 1 changed here, 1 filtered"
    assert marked("+81 45-555-0114", "+81 45-555-0199") == (
        "+81 45-555-01<del>14</del>",
        "+81 45-555-01<ins>99</ins>",
    )
    assert marked("<one thing", "another") == ("&lt;one thing", "another")


def test_a_timeline_is_a_picture_with_words() -> None:
    shown = timeline(HISTORY)
    assert " ".join(shown.text.splitlines()[0].split()) == "online 2026-01-01 00:00 to 2026-01-01 02:00 2 hours"
    assert shown.html.count("<rect") == 2
    assert 'width="60.0"' in shown.html
    assert repr(timeline([])) == "no history yet"


def test_a_status_without_a_history_is_shown_as_it_is() -> None:
    assert '"connection_status": "idle"' in repr(view({"connection_status": "idle", "history": None}))
    assert repr(view({"connection_status": "offline", "history": []})) == "no history yet"


def test_a_key_is_shown_field_by_field() -> None:
    assert f"client_secret  Sy4D{HIDDEN}" in repr(key_card(THINGS["key"]))


def test_a_diagram_is_drawn_from_calls() -> None:
    calls = [
        Call("Alice; #1", "POST", "/api/v1/posts", 201, provider=("POST /v4/x 200",)),
        Call("Alice; #1", "GET", "/api/v1/keys/svcid_1_1767323045678_a_very_long_name", 404, "NOT_FOUND"),
    ]
    lines = [line.strip() for line in sequence(calls).extra["text/markdown"].splitlines()]
    assert lines == [
        "```mermaid",
        "sequenceDiagram",
        "participant caller1 as Alice#59; #35;1",
        "participant service as Profile service",
        "participant provider as Provider",
        "caller1->>service: POST /api/v1/posts",
        "service->>provider: POST /v4/x",
        "provider-->>service: 200",
        "service-->>caller1: 201",
        "caller1->>service: GET /api/v1/keys/svcid_1_176732…",
        "service-->>caller1: 404 NOT_FOUND",
        "```",
    ]


def test_show_prints_the_text_where_there_is_no_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    show(["a", 1], THINGS["key"])
    assert "client_secret" in capsys.readouterr().out


def test_a_status_is_named_the_same_by_every_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """The standard library renamed 422 in 3.13; the stored pages must not depend on the interpreter."""
    monkeypatch.setattr(HTTPStatus.UNPROCESSABLE_ENTITY, "phrase", "Unprocessable Content")
    assert "→ 422 Unprocessable Entity\n" in repr(view(answer(422, {})))
    assert "→ 299\n" in repr(view(answer(299, {})))
