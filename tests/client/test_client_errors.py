"""Errors: one class per code, whatever answers."""

import copy
import inspect
import pickle
from typing import Any

import httpx
import pytest

import profilesvc.client as client
from profilesvc.client import errors as e
from profilesvc.client.operations import list_keys
from profilesvc.client.profiles import list_posts
from profilesvc.client.responses import ERROR_CLASSES, failure_of
from profilesvc.contract.errors import CATALOGUE
from support.cases.retry_after import CASES, NOW


def answer(status: int, error: object, **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"status": "error", "error": error}, headers=headers)


def test_every_code_of_the_catalogue_has_a_class_of_its_own() -> None:
    assert set(ERROR_CLASSES) == set(CATALOGUE)
    assert len(set(ERROR_CLASSES.values())) == len(CATALOGUE)
    for code, kind in CATALOGUE.items():
        error = failure_of(answer(kind.status, {"code": code, "message": "No."}, **{"X-Request-Id": "r-1"}))
        assert type(error) is ERROR_CLASSES[code]
        assert (error.code, error.status, error.message, error.request_id) == (code, kind.status, "No.", "r-1")
        assert str(error) == f"{code} ({kind.status}): No."


def test_details_are_attributes() -> None:
    details = {"deactivation_reason": "plan_downgrade", "deactivated_at": "t", "upgrade_url": "u"}
    error = failure_of(answer(403, {"code": "AUTH_INSUFFICIENT_PERMISSIONS", "message": "m", "details": details}))
    assert isinstance(error, e.KeyDeactivated)
    assert (error.deactivation_reason, error.deactivated_at, error.upgrade_url) == ("plan_downgrade", "t", "u")
    quota = failure_of(answer(429, {"code": "QUOTA_EXCEEDED", "details": {"limit": 5, "used": 5, "resets_at": "t"}}))
    assert isinstance(quota, e.QuotaExceeded)
    assert (quota.limit, quota.used, quota.resets_at) == (5, 5, "t")
    provider = failure_of(answer(502, {"code": "PROVIDER_API_ERROR", "details": {"reason": "timeout"}}))
    assert isinstance(provider, e.ProviderFailed)
    assert (provider.reason, provider.retryable) == ("timeout", False)


@pytest.mark.parametrize(
    ("response", "kind", "code"),
    [
        (answer(409, {"code": "BRAND_NEW", "message": "m"}), e.Conflict, "BRAND_NEW"),
        (answer(418, {"code": "TEAPOT", "message": "m"}), e.ProfileApiError, "TEAPOT"),
        (httpx.Response(502, html="<h1>Bad Gateway</h1>"), e.ServiceUnavailable, "HTTP_502"),
        (httpx.Response(504, text=""), e.ServiceUnavailable, "HTTP_504"),
        (httpx.Response(500, json=["?"]), e.InternalError, "HTTP_500"),
        (httpx.Response(404, json={"error": "no"}), e.NotFound, "HTTP_404"),
        (httpx.Response(302, headers={"Location": "https://elsewhere.test"}), e.ProfileApiError, "HTTP_302"),
        (answer(400, {"code": "VALIDATION_ERROR", "details": "none"}), e.ValidationFailed, "VALIDATION_ERROR"),
        (httpx.Response(500, content=b"\xff\xfe"), e.InternalError, "HTTP_500"),
    ],
)
def test_unusual_responses_are_judged_by_their_status(
    response: httpx.Response, kind: type[e.ProfileApiError], code: str
) -> None:
    error = failure_of(response)
    assert type(error) is kind
    assert error.code == code
    assert error.details == {}


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case["value"]))
def test_retry_after_is_seconds_or_a_date(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: NOW)
    response = httpx.Response(429, headers=[(b"Retry-After", case["value"].encode())])
    assert failure_of(response).retry_after == case["seconds"]


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b'{"status":"ok"}', b'{"status":"ok","data":{"credentials":[{"client_secret":"s3cret"}]}}'],
)
def test_an_unreadable_success_is_raised_without_repeating_it(body: bytes) -> None:
    with pytest.raises(e.UnreadableResponse) as caught:
        list_keys().read(httpx.Response(200, content=body))
    assert "s3cret" not in repr(caught.value) + str(caught.value)
    assert caught.value.__cause__ is None


def test_new_fields_are_ignored() -> None:
    post = {"name": "locations/1/localPosts/1", "event": {"title": "t", "newer": 1}, "new": [1]}
    data = {"localPosts": [post], "nextPageToken": "", "total": 1}
    page = list_posts("1").read(httpx.Response(200, json={"status": "ok", "data": data, "meta": {}}))
    assert page.localPosts[0].event is not None
    assert page.localPosts[0].event.title == "t"


def test_errors_survive_being_copied_between_processes() -> None:
    refused = failure_of(answer(404, {"code": "NOT_FOUND", "message": "m", "details": {"a": 1}}))
    lost = e.TransportFailed("ReadError: cut", sent=False)
    assert repr(pickle.loads(pickle.dumps(refused))) == repr(refused)
    for again in (pickle.loads(pickle.dumps(lost)), copy.copy(lost)):
        assert (str(again), again.sent) == ("ReadError: cut", False)


def test_every_exported_name_is_listed() -> None:
    public = {name for name, value in vars(client).items() if name[0] != "_" and not inspect.ismodule(value)}
    assert client.__all__ == sorted(public)
    assert {
        kind.__name__ for kind in vars(e).values() if inspect.isclass(kind) and issubclass(kind, e.ProfileError)
    } <= public
