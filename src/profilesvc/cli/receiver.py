"""`profilesvc simulate receiver`: a program in place of the endpoint of an owner, which prints each delivery."""

import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated

import typer

from profilesvc.cli import show
from profilesvc.cli._process.stopping import until_stopped


def receiver(
    secret: Annotated[str, typer.Option(help="Secret of the webhook; without it nothing is verified.")] = "",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port on 127.0.0.1; 0 is any free one.")] = 0,
    status: Annotated[int, typer.Option(min=200, max=599, help="Status of the responses.")] = 204,
    delay: Annotated[float, typer.Option(min=0, help="Seconds before each response.")] = 0.0,
) -> None:
    """Receive webhooks, verify them and print a line for each, until Ctrl-C.

    The service must allow private addresses: PROFILESVC_WEBHOOKS__ALLOW_PRIVATE=true.
    """
    with open_receiver(secret, port, status, delay) as server, until_stopped():
        typer.echo(f"receiving at http://127.0.0.1:{server.server_port}/")
        server.serve_forever(poll_interval=0.1)


def open_receiver(
    secret: str, port: int, status: int, delay: float, say: Callable[[str], None] = show.say
) -> ThreadingHTTPServer:
    """Return the server. `say` gets a line for each request."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            line, is_valid = judged(body, dict(self.headers.items()), secret)
            say(line)
            time.sleep(delay)
            self.send_response(status if is_valid else 401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name in the base class
            """Print nothing else."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    return server


def judged(body: bytes, headers: dict[str, str], secret: str) -> tuple[str, bool]:
    """Return the line for a request, and whether it may be accepted."""
    from profilesvc.client import WebhookRejected, verify_webhook

    message_id = {name.lower(): value for name, value in headers.items()}.get("webhook-id", "without an id")
    if not secret:
        return f"{message_id}: {body.decode('utf-8', 'replace')}", True
    try:
        event = verify_webhook(body, headers, secret)
    except WebhookRejected as error:
        return f"{message_id}: rejected: {error}", False
    return f"{message_id}: verified {event['type']} of {event['created_at']}", True
