"""Webhooks at receivers that misbehave, by the moved clock; the signature; addresses that change."""

import asyncio
import itertools
import ssl
from pathlib import Path
from typing import Any

import orjson
import pytest
import time_machine
from standardwebhooks import Webhook, WebhookVerificationError

from api.webhook_rounds import channel, deliver, deliveries_of, happen, only, only_channel
from profilesvc.delivery import transport
from profilesvc.delivery.transport import Transport
from profilesvc.domain import webhooks
from profilesvc.domain.time import DAY, HOUR, FrozenClock
from profilesvc.services.context import Services
from profilesvc.storage.notify import channels
from support.network.receivers import Respond, close, drip, dripping, garbage, hang, receiving, responding
from support.network.tls import certificate

pytestmark = [
    pytest.mark.in_process("runs the rounds of the worker itself"),
    pytest.mark.parametrize("database", ["sqlite"]),
]
PUBLIC = "93.184.215.14"


async def test_the_library_of_standard_webhooks_verifies_a_delivery(allowed: Services, local: Transport) -> None:
    nonces: dict[str, Any] = {"previous_nonce": "old", "previous_until": allowed.clock.now() + HOUR}
    async with receiving(responding(200)) as receiver:
        await channel(allowed, receiver.url, **nonces)
        await happen(allowed)
        await deliver(allowed, local)
    [request] = receiver.got
    assert request.head.startswith("POST /hook?x=1 HTTP/1.1\r\n")
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    document = orjson.loads(request.body)
    for nonce in ("n", "old"):
        verifier = Webhook(webhooks.shown_secret(webhooks.secret(allowed.pepper, nonce)))
        with time_machine.travel(allowed.clock.now() / 1000, tick=False):
            assert verifier.verify(request.body, request.headers) == document
            with pytest.raises(WebhookVerificationError):
                verifier.verify(request.body + b" ", request.headers)
        with time_machine.travel(allowed.clock.now() / 1000 + 301, tick=False), pytest.raises(WebhookVerificationError):
            verifier.verify(request.body, request.headers)
    assert document["id"] == request.headers["webhook-id"] == "evt_1_1"
    assert document["type"] == "quota.warning"
    row, attempt = await only(allowed)
    assert (row.state, attempt["status"], attempt["error"]) == ("delivered", 200, None)
    assert attempt["response"] is None, "the body of a private address is not shown"


_HEAD, _CHUNKED = b"HTTP/1.1 200 OK\r\n", b"Transfer-Encoding: chunked\r\n\r\n"
_BROKEN = "the response was not valid HTTP, or the connection broke"
_DRIPS = "the body of the response did not end within 5 seconds"
MATRIX: list[tuple[str, Respond, str, int | None, str]] = [
    ("hangs", hang, "pending", None, "no response within 10 seconds"),
    ("one byte at a time", drip, "pending", None, "no response within 10 seconds"),
    ("garbage", garbage, "pending", None, _BROKEN),
    ("closes", close, "pending", None, _BROKEN),
    ("500", responding(500), "pending", 500, "the receiver responded with 500"),
    ("404", responding(404), "pending", 404, "the receiver responded with 404"),
    ("410", responding(410), "failed", 410, "the receiver responded with 410"),
    ("redirect", responding(302, "Location: http://127.0.0.1:1/"), "pending", 302, "redirects are not followed"),
    ("204", responding(204, body=b""), "delivered", 204, "None"),
    ("10 MB", responding(200, body=b"x" * 10_000_000), "delivered", 200, "None"),
    ("a body that drips", dripping(_HEAD + b"Content-Length: 99999\r\n\r\n", b"x"), "pending", 200, _DRIPS),
    ("chunks without an end", dripping(_HEAD + _CHUNKED, b"1\r\nx\r\n"), "pending", 200, _DRIPS),
    ("a body without a length", dripping(_HEAD + b"\r\n", b"x"), "pending", 200, _DRIPS),
    (
        "an error that drips",
        dripping(b"HTTP/1.1 500 X\r\n\r\n", b"x"),
        "pending",
        500,
        "the receiver responded with 500",
    ),
    ("64 KB and more", dripping(_HEAD + b"\r\n", b"x" * 16_384), "delivered", 200, "None"),
    ("1xx without an end", dripping(b"", b"HTTP/1.1 103 X\r\n\r\n"), "pending", None, "no response within 10 seconds"),
    ("many 1xx", dripping(b"", b"HTTP/1.1 103 X\r\n\r\n" * 999), "pending", None, _BROKEN),
    ("headers without an end", dripping(_HEAD, b"X-A: b\r\n"), "pending", None, "no response within 10 seconds"),
    ("large headers", dripping(_HEAD, b"X-A: " + b"b" * 16_384), "pending", None, _BROKEN),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("respond", "state", "status", "error"), [row[1:] for row in MATRIX], ids=[r[0] for r in MATRIX]
)
async def test_A161_a_receiver_that_misbehaves(
    allowed: Services,
    local: Transport,
    monkeypatch: pytest.MonkeyPatch,
    respond: Respond,
    state: str,
    status: int | None,
    error: str,
) -> None:
    monkeypatch.setattr(transport, "SECONDS", 0.5)
    monkeypatch.setattr(transport, "BODY_SECONDS", 0.5)
    async with receiving(respond) as receiver:
        await channel(allowed, receiver.url)
        await happen(allowed)
        await deliver(allowed, local)
        assert len(receiver.got) == 1
    row, attempt = await only(allowed)
    assert (row.state, attempt["status"], str(attempt["error"])) == (state, status, error)
    found = await only_channel(allowed)
    assert (found.failing_since is None) == (state == "delivered")
    assert found.disabled_reason == ("gone" if status == 410 else None)


async def test_a_receiver_that_refuses_and_one_without_a_name(allowed: Services, local: Transport) -> None:
    async with receiving(hang) as receiver:
        pass
    await channel(allowed, receiver.url)
    await happen(allowed)
    await deliver(allowed, local)
    _, attempt = await only(allowed)
    assert attempt["error"] == "the connection was refused, or there is no route"


async def test_500_ten_times_and_then_no_more(allowed: Services, local: Transport, clock: FrozenClock) -> None:
    async with receiving(responding(500)) as receiver:
        await channel(allowed, receiver.url)
        await happen(allowed)
        sent = []
        for _ in range(12):
            await deliver(allowed, local)
            row, _ = await only(allowed)
            sent.append(clock.now())
            if row.next_at is not None:
                clock.advance(milliseconds=row.next_at - clock.now())
    assert len(receiver.got) == 10
    assert len({request.headers["webhook-id"] for request in receiver.got}) == 1
    waits = [later - earlier for earlier, later in itertools.pairwise(sent[:10])]
    assert all(plan <= wait <= 1.1 * plan for plan, wait in zip(webhooks.SCHEDULE, waits, strict=True))


@pytest.mark.parametrize(
    ("sent", "expected"),
    [("7200", 2 * HOUR), ("Fri, 02 Jan 2026 04:04:06 GMT", 60 * 60 * 1000 + 322), ("x", None), ("99999999999", DAY)],
)
async def test_retry_after_is_followed(
    allowed: Services, local: Transport, clock: FrozenClock, sent: str, expected: int | None
) -> None:
    async with receiving(responding(429, f"Retry-After: {sent}")) as receiver:
        await channel(allowed, receiver.url)
        await happen(allowed)
        await deliver(allowed, local)
    row, _ = await only(allowed)
    wait = row.next_at - clock.now()
    assert wait == expected if expected else 5_000 <= wait <= 5_500


async def test_a_certificate_must_be_valid_for_the_name(allowed: Services, tmp_path: Path) -> None:
    file = certificate(tmp_path, 1)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    trusting = ssl.create_default_context(cafile=str(file))

    async def resolve(_owner_id: int, _host: str) -> list[str]:
        return ["127.0.0.1"]

    async with receiving(responding(200), server) as receiver:
        for context, host, error in [
            (None, "127.0.0.1", transport._TLS),
            (trusting, "127.0.0.1", None),
            (trusting, "other.example", transport._TLS),
        ]:
            made = Transport(allow_private=True, resolver=resolve, ssl_context=context)
            number = await channel(allowed, f"https://{host}:{receiver.port}/{context is None}")
            await happen(allowed)
            await deliver(allowed, made)
            await made.aclose()
            row = (await deliveries_of(allowed))[-1]
            assert orjson.loads(row.attempts)[-1]["error"] == error
            async with allowed.storage.write() as session:
                await channels.remove(session, 1, number)


async def test_A160_a_name_that_changes_its_address_is_refused_at_the_next_attempt(
    services: Services, clock: FrozenClock
) -> None:
    asked: list[str] = []
    addresses = [[PUBLIC], ["127.0.0.1"], [PUBLIC, "10.0.0.1"], ["::ffff:127.0.0.1"], []]

    async def resolve(_owner_id: int, host: str) -> list[str]:
        asked.append(host)
        return addresses[len(asked) - 1]

    connected: list[str] = []

    async def connect(address: str, *_more: Any) -> Any:
        connected.append(address)
        raise ConnectionRefusedError

    made = Transport(resolver=resolve, connect=connect)
    await channel(services, "https://hooks.example/x")
    await happen(services)
    errors = []
    for _ in addresses:
        await deliver(services, made)
        row, attempt = await only(services)
        errors.append(attempt["error"])
        clock.advance(milliseconds=row.next_at - clock.now())
    private = "the host name leads to a private address"
    assert errors[1:4] == [private] * 3
    assert errors[4] == "the host name has no address"
    assert connected == [PUBLIC], "the connection goes to the address that was checked, and to no other"
    assert asked == ["hooks.example"] * 5


async def test_a_connection_is_used_again(allowed: Services, local: Transport) -> None:
    ports = set()

    async def respond(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ports.add(writer.get_extra_info("peername")[1])
        await responding(200)(_reader, writer)

    async with receiving(respond) as receiver:
        await channel(allowed, receiver.url)
        for _ in range(3):
            await happen(allowed)
            await deliver(allowed, local)
        assert (len(receiver.got), len(ports)) == (3, 1)


async def test_no_proxy_of_the_environment_is_used(
    allowed: Services, local: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with receiving(responding(200)) as receiver:
        await channel(allowed, receiver.url)
        await happen(allowed)
        await deliver(allowed, local)
    assert len(receiver.got) == 1


@pytest.mark.parametrize("kind", ["slack", "teams", "discord"])
async def test_a_chat_gets_a_message(allowed: Services, local: Transport, kind: str) -> None:
    async with receiving(responding(404)) as receiver:
        await channel(allowed, receiver.url, kind)
        await happen(allowed)
        await deliver(allowed, local)
    [request] = receiver.got
    assert "webhook-signature" not in request.headers
    text = request.body.decode()
    assert "8 of 10 posts of the month are used" in text
    assert (await only_channel(allowed)).disabled_reason == "gone"
