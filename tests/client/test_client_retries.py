"""Which requests are retried, and with which pauses."""

import itertools
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from profilesvc.client import AsyncProfileClient, ProfileClient, Retries, ServiceAuth, SyncOptions
from profilesvc.client import errors as e

PIER = "locations/111"
POST = {"name": f"{PIER}/localPosts/1", "summary": "Hello", "state": "PROCESSING", "brandNew": {"member": 1}}
SYNC = {"syncId": "sync_1", "status": "success", "fieldsUpdated": [], "fieldsFiltered": [], "timestamp": "t", "more": 1}
KEY = "11111111-2222"
Step = httpx.Response | Exception


def ok(data: Any, status: int = 200) -> httpx.Response:
    return httpx.Response(status, json={"status": "ok", "data": data})


def failed(status: int, code: str, headers: dict[str, str] | None = None, **details: Any) -> httpx.Response:
    error = {"code": code, "message": "No.", "details": details}
    return httpx.Response(status, json={"status": "error", "error": error}, headers=headers)


UNAVAILABLE = failed(503, "SERVICE_UNAVAILABLE")
BUSY = failed(409, "IDEMPOTENCY_IN_PROGRESS", {"Retry-After": "1"})
LIMITED = failed(429, "RATE_LIMITED", {"Retry-After": "3"})
PROVIDER_DOWN = failed(502, "PROVIDER_API_ERROR", reason="unavailable", retryable=True)
PROVIDER_SAYS_NO = failed(502, "PROVIDER_API_ERROR", reason="rejected", retryable=False)
LOST, UNSENT = httpx.ReadError("cut"), httpx.ConnectError("refused")


class Script:
    """Answers in order; keeps the requests and the pauses, and lets both pass on a clock of its own."""

    def __init__(self, *steps: Step) -> None:
        self.steps = list(steps)
        self.requests: list[httpx.Request] = []
        self.pauses: list[float] = []
        self.now = 0.0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return httpx.Response(step.status_code, headers=step.headers, content=step.content)

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    async def async_pause(self, seconds: float) -> None:
        self.pause(seconds)

    def client(self, **members: Any) -> ProfileClient:
        options: SyncOptions = {
            "transport": httpx.MockTransport(self),
            "sleep": self.pause,
            "clock": lambda: self.now,
            "retries": Retries(chance=lambda: 1.0, **members),
        }
        return ProfileClient.user("https://profiles.test", "token", **options)


READ: Callable[[ProfileClient], Any] = lambda client: client.list_posts(PIER)  # noqa: E731
CREATE: Callable[[ProfileClient], Any] = lambda client: client.create_post(PIER, {"summary": "Hello"})  # noqa: E731
FEED: Callable[[ProfileClient], Any] = lambda client: list(client.iter_events())  # noqa: E731
PUSH: Callable[[ProfileClient], Any] = lambda client: client.sync(PIER, {"title": "Pier"})  # noqa: E731
CHANGE: Callable[[ProfileClient], Any] = lambda client: client.update_post(PIER, "1", {"summary": "x"})  # noqa: E731
SWITCH: Callable[[ProfileClient], Any] = lambda client: client.set_sync(PIER, True)  # noqa: E731
REVOKE: Callable[[ProfileClient], Any] = lambda client: client.revoke_key("svcid_1")  # noqa: E731
NEW_KEY: Callable[[ProfileClient], Any] = lambda client: client.create_key(  # noqa: E731
    name="x", business_id=10, assigned_location_id=PIER
)

NEWS: dict[str, Any] = {"events": [], "next_after": None, "has_more": False}
PAGE = {"localPosts": [POST], "nextPageToken": ""}
SWITCHED = {"locationId": PIER, "syncEnabled": True}


@pytest.mark.parametrize(
    "failure", [UNAVAILABLE, LIMITED, PROVIDER_DOWN, BUSY, LOST, UNSENT, httpx.ReadTimeout("slow")]
)
@pytest.mark.parametrize(("call", "data"), [(READ, PAGE), (FEED, NEWS), (CREATE, POST), (PUSH, SYNC)])
def test_the_client_retries_safe_requests(call: Callable[[ProfileClient], Any], data: Any, failure: Step) -> None:
    script = Script(failure, failure, ok(data))
    call(script.client())
    keys = {request.headers.get("X-Idempotency-Key") for request in script.requests}
    assert len(script.requests) == 3
    assert len(keys) == 1
    assert (None in keys) == (call in (READ, FEED))


@pytest.mark.parametrize("failure", [UNAVAILABLE, PROVIDER_DOWN, LOST])
@pytest.mark.parametrize("call", [CHANGE, SWITCH, REVOKE, NEW_KEY])
def test_does_not_retry_requests_that_could_take_effect_twice(
    call: Callable[[ProfileClient], Any], failure: Step
) -> None:
    script = Script(failure)
    with pytest.raises(e.ProfileError) as caught:
        call(script.client())
    assert caught.value.sent


@pytest.mark.parametrize("failure", [LIMITED, UNSENT])
def test_retries_requests_that_certainly_had_no_effect(failure: Step) -> None:
    script = Script(failure, ok(SWITCHED))
    assert SWITCH(script.client()).syncEnabled


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (PROVIDER_SAYS_NO, e.ProviderFailed),
        (failed(500, "INTERNAL_ERROR"), e.InternalError),
        (failed(429, "QUOTA_EXCEEDED", {"Retry-After": "1"}, limit=2, used=2, resets_at="t"), e.QuotaExceeded),
        (failed(409, "CONFLICT"), e.Conflict),
        (failed(400, "VALIDATION_ERROR"), e.ValidationFailed),
    ],
)
def test_does_not_retry_permanent_failures(answer: httpx.Response, kind: type[e.ProfileError]) -> None:
    with pytest.raises(kind):
        CREATE(Script(answer).client())


def test_waits_longer_each_time_and_gives_up_with_the_last_failure() -> None:
    script = Script(*[UNAVAILABLE] * 4)
    with pytest.raises(e.ServiceUnavailable):
        READ(script.client())
    assert script.pauses == [0.25, 0.5, 1.0]


def test_waits_for_retry_after() -> None:
    script = Script(LIMITED, LIMITED, ok(PAGE))
    READ(script.client())
    assert script.pauses == [3.0, 3.0]


def test_raises_instead_of_waiting_beyond_its_budget() -> None:
    with pytest.raises(e.RateLimited) as caught:
        READ(Script(failed(429, "RATE_LIMITED", {"Retry-After": "900"})).client())
    assert caught.value.retry_after == 900
    script = Script(*[LIMITED] * 9)
    with pytest.raises(e.RateLimited):
        READ(script.client(attempts=9, budget=7.0))
    assert script.now == 6.0


def test_chooses_the_wait_by_chance() -> None:
    script = Script(UNAVAILABLE, UNAVAILABLE, ok(PAGE))
    chances = itertools.cycle([0.0, 0.5])
    with script.client() as client:
        client._retries = Retries(chance=lambda: next(chances))
        READ(client)
    assert script.pauses == [0.0, 0.25]


@pytest.mark.parametrize(
    "delete",
    [
        lambda client: client.delete_post(PIER, "1"),
        lambda client: client.delete_reply(PIER, "1"),
        lambda client: client.delete_alert(1),
        lambda client: client.delete_webhook(1),
    ],
)
def test_a_delete_is_done_when_its_response_was_lost_and_nothing_is_left(
    delete: Callable[[ProfileClient], Any],
) -> None:
    assert delete(Script(LOST, failed(404, "NOT_FOUND")).client()).deleted


@pytest.mark.parametrize("first", [[], [UNSENT], [LIMITED]])
def test_a_delete_of_a_missing_resource_is_raised(first: list[Step]) -> None:
    with pytest.raises(e.NotFound):
        Script(*first, failed(404, "NOT_FOUND")).client().delete_post(PIER, "1")


def test_a_failed_grant_is_repeated_whatever_the_operation() -> None:
    granted = {"scope": "service", "plan": "pro", "access_token": "a", "expires_in": 60, "permissions": []}
    granted |= {"refresh_token": "r", "refresh_expires_in": 60}
    script = Script(LOST, UNAVAILABLE, LIMITED, ok(granted), ok(SWITCHED))
    options: SyncOptions = {
        "transport": httpx.MockTransport(script),
        "sleep": script.pause,
        "clock": lambda: script.now,
        "retries": Retries(attempts=5),
    }
    with ProfileClient.service("https://profiles.test", "id", "secret", **options) as site:
        assert SWITCH(site).syncEnabled
    assert [request.url.path.rpartition("/")[2] for request in script.requests] == [*["token"] * 4, "sync"]


async def test_the_other_client_repeats_too() -> None:
    script = Script(LOST, UNAVAILABLE, ok(POST, 201), LOST, failed(404, "NOT_FOUND"), LOST)
    transport, retries = httpx.MockTransport(script), Retries(chance=lambda: 1.0)
    async with AsyncProfileClient.user(
        "https://profiles.test", "token", transport=transport, sleep=script.async_pause, retries=retries
    ) as client:
        post = await client.create_post(PIER, {"summary": "Hello"}, idempotency_key=KEY)
        assert post.summary == "Hello"
        assert (await client.delete_post(PIER, post.name)).deleted
        with pytest.raises(e.TransportFailed) as caught:
            await client.set_sync(PIER, True)
    assert caught.value.sent
    assert [request.headers.get("X-Idempotency-Key") for request in script.requests[:3]] == [KEY] * 3
    assert script.pauses == [0.25, 0.5, 0.25]


OTHERS = [
    *("profiles.test", "ftp://profiles.test", "", "//profiles.test", "https://", "http://[::1", "http://profiles.test"),
    *(
        "http://localhost.evil.test",
        "http://127.0.0.1.evil.test",
        "http://user@profiles.test",
        "http://10.0.0.1",
        "HTTP://X",
    ),
]


@pytest.mark.parametrize("url", OTHERS)
def test_secrets_are_not_sent_to_other_hosts_without_tls(url: str) -> None:
    for connect in (lambda: ProfileClient.user(url, "token"), lambda: AsyncProfileClient.anonymous(url)):
        with pytest.raises(ValueError, match="address of the service"):
            connect()
    with pytest.raises(ValueError, match="address of the service"):
        ServiceAuth(url, "id", "secret")


@pytest.mark.parametrize(
    "url",
    ["https://profiles.test", "HTTPS://Profiles.Test:8443/", "http://localhost:1", "http://127.0.0.1", "http://[::1]"],
)
def test_this_machine_needs_no_tls(url: str) -> None:
    ProfileClient.service(url, "id", "secret").close()


def test_a_redirect_is_not_followed() -> None:
    """It would repeat the client secret at another address, and is an error of its own."""
    moved = httpx.Response(307, headers={"Location": "https://evil.test/"})
    script = Script(moved)
    with (
        ProfileClient.service("https://profiles.test", "id", "secret", transport=httpx.MockTransport(script)) as site,
        pytest.raises(e.ProfileApiError) as caught,
    ):
        site.businesses()
    assert (caught.value.status, caught.value.code) == (307, "HTTP_307")
    assert [request.url.host for request in script.requests] == ["profiles.test"]
