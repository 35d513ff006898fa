"""The requests of deliveries on the event loops that a server can have, by http and by https."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from profilesvc.delivery.transport import Transport
from profilesvc.domain.addresses import parse_target
from support.network.receivers import receiving, responding
from support.network.tls import certificate


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_two_requests_are_sent_on_one_connection(
    loop: Callable[[], asyncio.AbstractEventLoop], tls: bool, tmp_path: Path
) -> None:
    file = certificate(tmp_path, 1)
    server, trusting = None, ssl.create_default_context(cafile=str(file))
    if tls:
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(file)
    transport = Transport(allow_private=True, ssl_context=trusting)

    async def story() -> None:
        async with receiving(responding(200), server) as receiver:
            url = f"{'https' if tls else 'http'}://127.0.0.1:{receiver.port}/"
            target = parse_target(url, allow_private=True)
            for _ in range(2):
                response = await transport.post(1, target, {"webhook-id": "evt_1_1"}, b"{}")
                assert response.status == 200
            assert [request.headers["webhook-id"] for request in receiver.got] == ["evt_1_1"] * 2
            await transport.aclose()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(story())
