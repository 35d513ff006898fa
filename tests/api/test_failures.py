"""Defects, a database that is away, request ids, and what the guard refuses (D-02, D-04)."""

import asyncio
import logging
from typing import Any

import httpx
import pytest

from conftest import ON_ONE_DATABASE, Change
from profilesvc.api.guard import RequestGuard
from profilesvc.domain.entropy import SeededEntropy
from profilesvc.server.scope import BEFORE
from support.api import Site, assert_error, assert_ok
from support.parts import AWAY, Broken

LOCATIONS = "/api/v1/external-business/locations"


TOKEN = "/api/v1/auth/token"


@pytest.mark.in_process("reads the log")
async def test_a_crash_is_an_internal_error_without_details(
    change: Change, everywhere: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    change(storage=Broken())
    body = {"grant_type": "client_credentials", "client_id": "svcid_1_1_x", "client_secret": "s3cret"}
    response = await everywhere.post(TOKEN, json=body)
    assert assert_error(response, 500, "INTERNAL_ERROR") == {}
    for word in ("hunter2", "private", "RuntimeError", "Traceback", "s3cret"):
        assert word not in response.text
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "RuntimeError" in record.getMessage()
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("x"), RecursionError(), MemoryError(), TypeError("x")])
@ON_ONE_DATABASE
async def test_a_crash_of_any_kind_is_an_internal_error(
    change: Change, everywhere: httpx.AsyncClient, plugin: Site, error: Exception
) -> None:
    change(storage=Broken(error))
    headers = {"Authorization": plugin.http.headers["Authorization"]}
    assert_error(await everywhere.get(LOCATIONS, headers=headers), 500, "INTERNAL_ERROR")


async def test_A104_an_unavailable_database_is_a_503_until_it_is_back(
    change: Change, everywhere: httpx.AsyncClient, plugin: Site
) -> None:
    change(database=AWAY)
    headers = {"Authorization": plugin.http.headers["Authorization"]}
    for method, path, body in [
        ("GET", LOCATIONS, None),
        ("GET", f"{LOCATIONS}/111", None),
        ("POST", "/api/v1/api-keys/heartbeat", {}),
        ("POST", "/api/v1/sync/111", {"title": "T"}),
        ("POST", TOKEN, {"grant_type": "client_credentials", **plugin.credentials}),
    ]:
        response = await everywhere.request(method, path, json=body, headers=headers)
        assert_error(response, 503, "SERVICE_UNAVAILABLE")
        assert int(response.headers["retry-after"]) >= 1
    ready = await everywhere.get("/readyz")
    assert (ready.status_code, ready.json()["checks"]["database"]) == (503, False)
    assert (await everywhere.get("/healthz")).json() == {"status": "ok"}
    change()
    assert_ok(await everywhere.get(LOCATIONS, headers=headers))
    assert (await everywhere.get("/readyz")).json()["status"] == "ok"


async def test_the_response_keeps_a_valid_request_id_of_the_caller(http: httpx.AsyncClient) -> None:
    for given in ("a1b2c3d4", "trace-1.2_3", "x" * 64):
        response = await http.get("/healthz", headers={"X-Request-Id": given})
        assert response.headers["x-request-id"] == given
    for given in ("short", "x" * 65, "with blank", "a;b=cdefgh", "", "<script>x"):
        response = await http.get("/healthz", headers={"X-Request-Id": given})
        assert response.headers["x-request-id"] != given
        assert len(response.headers["x-request-id"]) == 16


async def test_each_response_has_another_request_id(http: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(http.get("/healthz") for _ in range(20)))
    assert len({answer.headers["x-request-id"] for answer in answers}) == 20


class TestGuard:
    """Requests that are rejected before the framework sees them, as bare ASGI calls."""

    @staticmethod
    async def ask(headers: list[tuple[bytes, bytes]], version: str = "1.1", before: int = 0) -> tuple[int, bytes]:
        sent: list[Any] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        scope = {
            "type": "http",
            "method": "GET",
            "path": "/",
            "headers": headers,
            "http_version": version,
            "raw_path": b"/",
            "query_string": b"",
            BEFORE: before,
        }
        await RequestGuard(app, SeededEntropy("guard"), {"MAX_IN_FLIGHT": 3, "HTTPS": True})(scope, receive, send)
        names = [name for name, _ in sent[0]["headers"]]
        assert names.count(b"x-request-id") == names.count(b"vary") == 1
        assert (b"x-content-type-options", b"nosniff") in sent[0]["headers"]
        assert (b"strict-transport-security", b"max-age=31536000") in sent[0]["headers"]
        return sent[0]["status"], sent[1]["body"]

    async def test_the_guard_accepts_a_plain_request(self) -> None:
        assert await self.ask([(b"host", b"x")]) == (204, b"")

    async def test_the_guard_rejects_requests_beyond_the_limit(self) -> None:
        assert (await self.ask([(b"host", b"x")], before=2))[0] == 204
        status, body = await self.ask([(b"host", b"x")], before=3)
        assert status == 503
        assert b'"message":"The service is full."' in body

    async def test_A081_the_guard_rejects_headers_beyond_16_kb(self) -> None:
        room = 16 * 1024 - len("host") - len("x") - len("a")
        assert (await self.ask([(b"host", b"x"), (b"a", b"v" * room)]))[0] == 204
        status, body = await self.ask([(b"host", b"x"), (b"a", b"v" * (room + 1))])
        assert status == 431
        assert b'"code":"HEADERS_TOO_LARGE"' in body

    async def test_A092_A093_the_guard_rejects_ambiguous_requests(self) -> None:
        for headers in (
            [(b"host", b"a"), (b"host", b"b")],
            [],
            [(b"host", b"a"), (b"content-length", b"1"), (b"content-length", b"2")],
            [(b"host", b"a"), (b"content-length", b"1"), (b"transfer-encoding", b"chunked")],
        ):
            status, body = await self.ask(headers)
            assert status == 400
            assert b'"code":"VALIDATION_ERROR"' in body
