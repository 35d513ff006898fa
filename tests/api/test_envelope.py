"""Whatever goes wrong, the answer is the envelope, with the headers that every answer carries (D-02, D-04)."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from quart import Quart

from profilesvc.api.edge import Edge
from profilesvc.domain.world import SeededEntropy
from profilesvc.services.context import Services
from profilesvc.storage.engine import Storage
from support import Site, assert_error, assert_ok

LOCATIONS = "/api/v1/external-business/locations"
TOKEN = "/api/v1/auth/token"
JSON = {"Content-Type": "application/json"}
SAMPLES = {
    "<location:locationId>": "111",
    "<post:postId>": "nopost",
    "<client_id>": "svcid_1_1_x",
    "<name>": "docs.js",
}


def rules(app: Quart) -> Iterator[tuple[str, set[str]]]:
    """Every path of the app with sample values, and the methods it takes."""
    paths: dict[str, set[str]] = {}
    for rule in app.url_map.iter_rules():
        path = rule.rule
        for variable, sample in SAMPLES.items():
            path = path.replace(variable, sample)
        assert "<" not in path, f"no sample for {rule.rule}"
        paths.setdefault(path, set()).update(rule.methods or ())
    yield from paths.items()


@pytest.fixture
async def everywhere(http: httpx.AsyncClient) -> httpx.AsyncClient:
    """A client that checks what holds for every answer."""

    async def check(response: httpx.Response) -> None:
        assert len(response.headers.get_list("x-request-id")) == 1
        assert response.headers["vary"] == "Origin"
        assert "access-control-allow-credentials" not in response.headers
        assert response.headers.get("access-control-allow-origin") != "*"
        assert "location" not in response.headers, "no redirect: it would lose Authorization"
        assert response.status_code not in range(300, 400)

    http.event_hooks["response"].append(check)
    return http


class TestFramework:
    async def test_an_unknown_path(self, everywhere: httpx.AsyncClient, alice: httpx.AsyncClient) -> None:
        token = {"Authorization": alice.headers["Authorization"]}
        for path in (
            "/",
            "/api",
            "/api/v1",
            "/api/v1/",
            "/api/v2/businesses",
            "/API/v1/businesses",
            "/api/V1/businesses",
            "/api/v1/Businesses",
            "//api/v1/businesses",
            "/api//v1/businesses",
            "/api/v1/businesses/",
            "/api/v1/businesses;x=1",
            "/api/v1/businesses%00",
            "/api/v1/businesses%20",
            "/api/v1/%2e%2e/v1/businesses",
            "/api/v1/x%0d%0aSet-Cookie:a=b",
            "/api/v1/%ff",
            "/api/v1/" + "x" * 5_000,
            f"{LOCATIONS}/",
            f"{LOCATIONS}/111/",
            f"{LOCATIONS}//111",
            f"{LOCATIONS}/111/nothing",
            "/api/v1/api-keys/a%2Fb/status",
            "/static/x",
            "/favicon.ico",
        ):
            for headers in ({}, token):
                response = await everywhere.get(path, headers=headers)
                assert_error(response, 404, "NOT_FOUND")

    async def test_a096_odd_paths_never_reach_another_resource(
        self, everywhere: httpx.AsyncClient, alice: httpx.AsyncClient
    ) -> None:
        token = {"Authorization": alice.headers["Authorization"]}
        for ident in (
            "211%2F..%2F111",
            "locations/211%2F..%2F111",
            "111;x=1",
            "111%3Bx=1",
            "%2e%2e",
            "%2e%2e%2f111",
            "%00",
            "111%00",
            "%ff",
            "111%0a",
            "111%20",
            "+111",
            "locations%252F111",
            "locations%5C111",
            "LOCATIONS/111",
            "111,112",
            "111%23",
            "%EF%BC%91%EF%BC%91%EF%BC%91",
            ".%00",
        ):
            response = await everywhere.get(f"{LOCATIONS}/{ident}", headers=token)
            assert response.status_code in (400, 404), ident
            assert_error(
                response, response.status_code, {400: "VALIDATION_ERROR", 404: "NOT_FOUND"}[response.status_code]
            )
        for ident in ("%00", "a%00b", "%ff", "%2e%2e", "a b", "x" * 5_000, "'", "%25", "*"):
            for method, path in [
                ("GET", f"/api/v1/api-keys/{ident}/status"),
                ("DELETE", f"/api/v1/developer/credentials/{ident}"),
                ("PATCH", f"/api/v1/posts/{ident}?locationId=111"),
            ]:
                response = await everywhere.request(method, path, headers=token, json=None)
                assert response.status_code in (400, 404, 405), (method, ident)

    async def test_a094_a_method_that_a_path_does_not_take(self, app: Quart, everywhere: httpx.AsyncClient) -> None:
        for path, methods in rules(app):
            for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "FOO"} - methods:
                response = await everywhere.request(method, path)
                assert_error(response, 405, "METHOD_NOT_ALLOWED")
                assert set(response.headers["allow"].split(", ")) == methods, path

    async def test_a094_a_method_override_is_ignored(
        self, everywhere: httpx.AsyncClient, alice: httpx.AsyncClient
    ) -> None:
        headers = {
            "Authorization": alice.headers["Authorization"],
            "X-HTTP-Method-Override": "DELETE",
            "X-Method-Override": "DELETE",
        }
        assert_ok(await everywhere.get("/api/v1/businesses", headers=headers, params={"_method": "DELETE"}))

    async def test_a095_options_is_an_empty_204_on_every_route(self, app: Quart, everywhere: httpx.AsyncClient) -> None:
        for path, methods in rules(app):
            response = await everywhere.options(path)
            assert (response.status_code, response.content) == (204, b""), path
            assert set(response.headers["allow"].split(", ")) == methods
            assert "content-type" not in response.headers

    async def test_a095_head_is_get_without_its_body(
        self, app: Quart, everywhere: httpx.AsyncClient, alice: httpx.AsyncClient
    ) -> None:
        token = {"Authorization": alice.headers["Authorization"]}
        for path, methods in rules(app):
            if "GET" not in methods:
                continue
            for headers in ({}, token):
                got, head = [await everywhere.request(m, path, headers=headers) for m in ("GET", "HEAD")]
                assert (head.status_code, head.content) == (got.status_code, b""), path
                for name in ("content-type", "cache-control", "www-authenticate"):
                    assert head.headers.get(name) == got.headers.get(name)

    async def test_the_bodies_that_the_framework_refuses(self, everywhere: httpx.AsyncClient) -> None:
        async def endless() -> AsyncIterator[bytes]:
            for _ in range(40):
                yield b" " * 65_536

        big = await everywhere.post(TOKEN, content=b"x" * 17_000_000, headers=JSON)
        assert_error(big, 413, "PAYLOAD_TOO_LARGE")
        chunked = await everywhere.post(TOKEN, content=endless(), headers=JSON)
        assert_error(chunked, 413, "PAYLOAD_TOO_LARGE")
        form = await everywhere.post(TOKEN, files={"a": b"x"})
        assert_error(form, 415, "UNSUPPORTED_MEDIA_TYPE")

    async def test_a_body_on_a_route_without_one_is_ignored(
        self, everywhere: httpx.AsyncClient, alice: httpx.AsyncClient
    ) -> None:
        headers = {"Authorization": alice.headers["Authorization"], "Content-Type": "text/plain"}
        response = await everywhere.request("GET", "/api/v1/businesses", content=b"\xff{", headers=headers)
        assert_ok(response)


class Broken:
    """A database whose every use is a defect that tells too much."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("secret path /srv/private and password hunter2")


class TestCrash:
    async def test_is_an_internal_error_that_tells_nothing(
        self, app: Quart, everywhere: httpx.AsyncClient, services: Services, caplog: pytest.LogCaptureFixture
    ) -> None:
        app.extensions["profilesvc"] = replace(services, storage=Broken())  # type: ignore[arg-type]
        body = {"grant_type": "client_credentials", "client_id": "svcid_1_1_x", "client_secret": "s3cret"}
        response = await everywhere.post(TOKEN, json=body)
        assert assert_error(response, 500, "INTERNAL_ERROR") == {}
        for word in ("hunter2", "private", "RuntimeError", "Traceback", "s3cret"):
            assert word not in response.text
        (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert "RuntimeError" in record.getMessage()
        assert "s3cret" not in caplog.text
        app.extensions["profilesvc"] = services

    @pytest.mark.parametrize("error", [ValueError("x"), KeyError("x"), RecursionError(), MemoryError(), TypeError("x")])
    async def test_of_any_kind(
        self, app: Quart, everywhere: httpx.AsyncClient, services: Services, plugin: Site, error: Exception
    ) -> None:
        class Failing:
            def read(self) -> Any:
                raise error

        app.extensions["profilesvc"] = replace(services, storage=Failing())  # type: ignore[arg-type]
        headers = {"Authorization": plugin.http.headers["Authorization"]}
        assert_error(await everywhere.get(LOCATIONS, headers=headers), 500, "INTERNAL_ERROR")
        app.extensions["profilesvc"] = services

    async def test_a104_a_database_that_is_away_is_a_503_that_heals(
        self, app: Quart, everywhere: httpx.AsyncClient, services: Services, plugin: Site
    ) -> None:
        away = Storage("postgresql+asyncpg://postgres@127.0.0.1:1/nothing")
        app.extensions["profilesvc"] = replace(services, storage=away)
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
        await away.close()
        app.extensions["profilesvc"] = services
        assert_ok(await everywhere.get(LOCATIONS, headers=headers))
        assert (await everywhere.get("/readyz")).json()["status"] == "ok"


class TestRequestId:
    async def test_is_the_callers_when_it_is_plain(self, http: httpx.AsyncClient) -> None:
        for given in ("a1b2c3d4", "trace-1.2_3", "x" * 64):
            response = await http.get("/healthz", headers={"X-Request-Id": given})
            assert response.headers["x-request-id"] == given
        for given in ("short", "x" * 65, "with blank", "a;b=cdefgh", "", "<script>x"):
            response = await http.get("/healthz", headers={"X-Request-Id": given})
            assert response.headers["x-request-id"] != given
            assert len(response.headers["x-request-id"]) == 16

    async def test_is_another_one_each_time(self, http: httpx.AsyncClient) -> None:
        answers = await asyncio.gather(*(http.get("/healthz") for _ in range(20)))
        assert len({answer.headers["x-request-id"] for answer in answers}) == 20


class TestEdge:
    """What is refused before the framework sees it, as a bare ASGI call."""

    @staticmethod
    async def ask(headers: list[tuple[bytes, bytes]], version: str = "1.1") -> tuple[int, bytes]:
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
        }
        await Edge(app, SeededEntropy("edge"))(scope, receive, send)
        names = [name for name, _ in sent[0]["headers"]]
        assert names.count(b"x-request-id") == names.count(b"vary") == 1
        return sent[0]["status"], sent[1]["body"]

    async def test_takes_a_plain_request(self) -> None:
        assert await self.ask([(b"host", b"x")]) == (204, b"")

    async def test_a081_refuses_headers_beyond_16_kb(self) -> None:
        room = 16 * 1024 - len("host") - len("x") - len("a")
        assert (await self.ask([(b"host", b"x"), (b"a", b"v" * room)]))[0] == 204
        status, body = await self.ask([(b"host", b"x"), (b"a", b"v" * (room + 1))])
        assert status == 431
        assert b'"code":"HEADERS_TOO_LARGE"' in body

    async def test_a092_a093_refuses_what_two_readers_read_differently(self) -> None:
        for headers in (
            [(b"host", b"a"), (b"host", b"b")],
            [],
            [(b"host", b"a"), (b"content-length", b"1"), (b"content-length", b"2")],
            [(b"host", b"a"), (b"content-length", b"1"), (b"transfer-encoding", b"chunked")],
        ):
            status, body = await self.ask(headers)
            assert status == 400
            assert b'"code":"VALIDATION_ERROR"' in body
