"""The largest body and the oldest data that the limits allow cost the event loop little, so others do not wait.

The calls of functions on the event loop's thread are counted. `make fuzz` measures the processor's time, which includes
long calls. What a request does on another thread or in the database delays others less.
"""

import asyncio
import itertools
import re
import statistics
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from quart import Quart

from conftest import ON_ONE_DATABASE, Change
from dashboard import large
from profilesvc.limits.settings import LimitSettings
from profilesvc.services.context import Services
from support.api import BOB, Site
from support.browser.dashboard import Browser, SignIn, as_agency
from support.effort import FULL, effort
from support.work import counted

# An empty response makes 260 calls, in at most 0.1 ms, so these many cost 50 ms and 100 ms.
MOST, MOST_SIGNED_IN = 500, 1_000
KB, SITES, ASKED = 1024, 500, 100  # the largest plan has 500 sites
URLENCODED = "application/x-www-form-urlencoded"
# The largest body of each kind. A body that is rejected may be larger than that of any endpoint.
MULTIPART = "multipart/form-data; boundary=x"
TOKEN = b"--x\r\nContent-Disposition: form-data; name=csrf\r\n\r\n"
FILE = b"--x\r\nContent-Disposition: form-data; name=a; filename=a\r\n\r\n"
PART = b"\r\n--x\r\nContent-Disposition: form-data; name=a\r\n\r\n"
BODIES = {
    "fields": (b"a=&" * 400 * KB, URLENCODED),
    "few fields": (b"a=" + b"%F0%9F%98%80" * 5_000, URLENCODED),
    "small": (b"a=&" * 1_300, URLENCODED),
    "buttons": (b"a=%FF%&" * 18 + b"a=" + b"%FF%" * 900, URLENCODED),
    "texts": (b"a=+&" * 190 + b"a=" + b"%FF%" * 15_000, URLENCODED),
    "names": (b"&".join(b"shown-%d=%%C3%%BC" % number for number in range(1_900)), URLENCODED),
    "delimiters": (b"--x\r\n" * 200 * KB, MULTIPART),
    "parts": (TOKEN + PART * 60_000 + b"--x--", MULTIPART),
    "a file of delimiters": (TOKEN + b"\r\n--" * 1_500 * KB, MULTIPART),
    "heads": (b"--x\r\n" + b"a: b\r\n" * 150 * KB, MULTIPART),
    "lists": (b'{"a":[' + b"[]," * 87_000 + b"0]}", "application/json"),
    "objects": (b'{"a":[' + b'{"b":1},' * 4_900 + b"0]}", "application/json"),
    "deep": (b'{"a":' * 50_000, "application/json"),
    "numbers": (b'{"a":[' + b"1.1e9," * 9_990 + b"0]}", "application/json"),
    "unknown": (b"{" + b",".join(b'"n%d":1' % number for number in range(9_990)) + b"}", "application/json"),
    "text": (b'{"summary":"' + b"\\u00e9" * 43_000 + b'"}', "application/json"),
    "labels": (b'{"labels":[' + b'"a",' * 9_990 + b'"a"]}', "application/json"),
}


async def of_loop(app: Quart, request: httpx.Request, address: str = "127.0.0.1") -> tuple[float, int]:
    """Return the calls of functions for a request, or in `make fuzz` the processor's seconds, and the status."""
    status = 0
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.url.path,
        "query_string": request.url.query,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": (address, 1),
        "server": ("127.0.0.1", 8000),
    }
    content = request.read()
    pieces = [content[at : at + 64 * KB] for at in range(0, len(content), 64 * KB)] or [b""]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)

    if FULL:
        begun = time.thread_time()
        await app(scope, receive, send)  # type: ignore[arg-type]
        return time.thread_time() - begun, status
    with counted() as work:
        await app(scope, receive, send)  # type: ignore[arg-type]
    return work.calls, status


async def cost(app: Quart, request: httpx.Request) -> tuple[float, int]:
    """Return the least of several costs, because the first request may make what is kept; and the first status."""
    found = [await of_loop(app, request) for _ in range(effort(2, 3))]
    return min(spent for spent, _ in found), found[0][1]


async def of_empty(app: Quart, http: httpx.AsyncClient) -> float:
    request = http.build_request("GET", "/healthz")
    return statistics.median([(await of_loop(app, request))[0] for _ in range(30)])


def routes(app: Quart) -> Iterator[tuple[str, str]]:
    """Each rule and its methods."""
    for rule in sorted(app.url_map.iter_rules(), key=lambda rule: rule.rule):
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            yield rule.rule, method


def path_of(rule: str, values: dict[str, str]) -> str:
    return re.sub(r"<(?:[^:>]*:)?([^>]+)>", lambda found: values.get(found[1], "111"), rule)


def bodies(csrf: str) -> Iterator[tuple[str, bytes, dict[str, str]]]:
    """The name of each body, the body with the token of a form, and its headers."""
    for name, (content, media_type) in BODIES.items():
        sent = content
        if csrf and media_type == URLENCODED:
            sent = b"csrf=" + csrf.encode() + b"&" + content
        elif csrf:
            sent = content.replace(TOKEN, TOKEN + csrf.encode() + b"\r\n" + FILE)
        yield name, sent, {"Content-Type": media_type}


@pytest.mark.thorough
@pytest.mark.in_process("counts the calls of functions")
@ON_ONE_DATABASE
async def test_a_large_body_without_a_session_costs_little(app: Quart, http: httpx.AsyncClient) -> None:
    nothing, expensive = await of_empty(app, http), {}
    for rule, method in routes(app):
        for name, content, headers in bodies("") if method != "GET" else ():
            request = http.build_request(method, path_of(rule, {}), content=content, headers=headers)
            spent, status = await cost(app, request)
            if spent > MOST * nothing:
                expensive[f"{method} {rule} {name} {status}"] = round(spent / nothing)
    assert expensive == {}


@pytest.fixture
async def paths(services: Services, plugin: Site) -> dict[str, str]:
    """The values of paths in the world of an owner with much data."""
    await large.fill(services, 1, plugin.key["service_client_id"])
    return {"client_id": plugin.key["client_id"], "locationId": "111"}


@pytest.mark.thorough
@pytest.mark.in_process("counts the calls of functions")
@ON_ONE_DATABASE
async def test_much_data_and_a_large_body_cost_little_with_a_session(
    app: Quart, alice_there: Browser, alice: httpx.AsyncClient, paths: dict[str, str]
) -> None:
    nothing, expensive, statuses = await of_empty(app, alice), {}, set[int]()
    csrf = alice_there.page.form("/sign-out")["fields"]["csrf"][0]
    for rule, method in routes(app):
        if rule.endswith(("/sign-out", "/account/delete", "/end-others")) or rule.startswith("/dev/"):
            continue
        client = alice_there.http if rule.startswith("/dashboard") else alice
        where = {"locationId": "111"} if rule.startswith("/api") else None
        for name, content, headers in bodies(csrf) if method != "GET" else [("", b"", {})]:
            request = client.build_request(method, path_of(rule, paths), content=content, headers=headers, params=where)
            spent, status = await cost(app, request)
            statuses.add(status)
            if spent > MOST_SIGNED_IN * nothing:
                expensive[f"{method} {rule} {name} {status}"] = round(spent / nothing)
    assert expensive == {}
    assert {200, 303, 400, 413} <= statuses
    assert (await alice_there.http.get("/dashboard")).status_code == 200  # the session has not ended meanwhile


@pytest.mark.thorough
@pytest.mark.in_process("counts the calls of functions")
@ON_ONE_DATABASE
async def test_the_pages_of_an_owner_of_many_sites_cost_little(
    app: Quart, alice_there: Browser, services: Services
) -> None:
    await as_agency(alice_there, services, SITES)
    nothing, expensive = await of_empty(app, alice_there.http), {}
    for rule, method in routes(app):
        if method == "GET" and rule.startswith("/dashboard") and "<" not in rule:
            spent, status = await cost(app, alice_there.http.build_request("GET", rule))
            if spent > MOST_SIGNED_IN * nothing:
                expensive[f"GET {rule} {status}"] = round(spent / nothing)
    assert expensive == {}


@pytest.mark.long
@pytest.mark.in_process("its callers share the event loop")
@ON_ONE_DATABASE
async def test_four_callers_of_the_largest_requests_leave_others_fast(
    app: Quart,
    alice_there: Browser,
    signed_in: SignIn,
    paths: dict[str, str],
    http: httpx.AsyncClient,
    services: Services,
    change: Change,
) -> None:
    """Each sends the next one when the last has ended, within the limits that a service has without a setting.

    Another owner waits less than 100 ms in the median.
    """
    csrf = alice_there.page.form("/sign-out")["fields"]["csrf"][0]
    forms = {name: (content, headers) for name, content, headers in bodies(csrf)}
    of_alice = alice_there.http.build_request
    callers = [
        [http.build_request("POST", "/dashboard/language", content=forms["fields"][0], headers=forms["fields"][1])],
        [of_alice("GET", f"/dashboard/{name}") for name in ("account/data.zip", "audit.csv")],
        [
            of_alice("POST", "/dashboard/sites/111/posts", content=forms[name][0], headers=forms[name][1])
            for name in ("parts", "a file of delimiters", "delimiters")
        ],
        [of_alice("GET", f"/dashboard/{path}") for path in ("calendar", "drafts?q=beans", "sites/111/posts", "audit")],
    ]
    bob, stopped, waited = await signed_in(BOB), asyncio.Event(), list[float]()
    change(limits=LimitSettings())
    mine = bob.http.build_request("GET", "/dashboard/keys")

    async def repeat(requests: list[httpx.Request]) -> None:
        for request in itertools.cycle(requests):
            if stopped.is_set():
                return
            await of_loop(app, request)
            await asyncio.sleep(0)

    running = [asyncio.create_task(repeat(requests)) for requests in callers]
    for _ in range(ASKED):
        begun = time.perf_counter()
        _, status = await of_loop(app, mine)
        waited.append(time.perf_counter() - begun)
        assert status == 200
        await asyncio.sleep(0.02)
    stopped.set()
    await asyncio.gather(*running)
    assert statistics.median(waited) < 0.1, sorted(waited)
