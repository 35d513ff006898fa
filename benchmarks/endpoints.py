"""Many receivers of webhooks in one process: `python -m benchmarks.endpoints GOOD HANGING`.

It prints their ports, and for each line on stdin the number of deliveries since the last one and their delays.
"""

import asyncio
import json
import re
import sys
import time

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_CREATED = re.compile(rb'"sent_at":(\d+)')
_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Receivers:
    """The count and the delays of what arrived, in milliseconds since `sent_at` of the data of the event."""

    def __init__(self) -> None:
        self.delays: list[float] = []

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Respond to each request at once."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                found = _LENGTH.search(head)
                assert found is not None
                sent = _CREATED.search(await reader.readexactly(int(found[1])))
                if sent is not None:
                    self.delays.append(time.time() * 1000 - int(sent[1]))
                writer.write(_OK)
        except (EOFError, OSError):
            writer.close()

    async def hang(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Accept a request and never respond."""
        await reader.read()
        writer.close()


async def main(good: int, hanging: int) -> None:
    """Serve until stdin ends."""
    receivers = Receivers()
    servers = [await asyncio.start_server(receivers.accept, "127.0.0.1", 0) for _ in range(good)]
    servers += [await asyncio.start_server(receivers.hang, "127.0.0.1", 0) for _ in range(hanging)]
    print(json.dumps([server.sockets[0].getsockname()[1] for server in servers]), flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        delays, receivers.delays = receivers.delays, []
        print(json.dumps(delays), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:3])))
