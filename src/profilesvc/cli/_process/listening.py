"""The address of a server: bind it, print it, and store it for the other commands."""

import errno
import os
import socket
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from profilesvc.cli.opening import BASE_URL_FILE, write_private
from profilesvc.settings import Settings, SettingsError

Host = Annotated[str, typer.Option(help="The address to listen on.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 picks a free one.")]
_CLIENT_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # clients cannot connect to a wildcard


def bound(host: str, port: int, option: str = "--port") -> socket.socket:
    """Reserve an address, whose port comes from an option or setting.

    Raises:
        SettingsError: it cannot be reserved.
    """
    from profilesvc.server.serving import bind

    try:
        return bind(host, port)
    except OSError as error:
        advice = f"; choose another port with {option}" if error.errno == errno.EADDRINUSE else ""
        raise SettingsError(f"cannot listen on {_url(host, port)}: {error.strerror or error}{advice}") from None


def bound_or_inherited(host: str, port: int) -> socket.socket:
    """Return the socket that systemd passed to this process, or reserve an address.

    Raises:
        SettingsError: The address cannot be reserved, or the socket of systemd cannot be used.
    """
    from profilesvc.server.systemd import inherited_socket

    try:
        inherited = inherited_socket()
    except OSError as error:
        raise SettingsError(f"cannot use the socket of systemd: {error}") from None
    return bound(host, port) if inherited is None else inherited


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def url_of(host: str, listener: socket.socket) -> str:
    """Return the URL of a socket, with the host as the caller wrote it."""
    return _url(host, listener.getsockname()[1])


def with_base_url(settings: Settings, host: str, listener: socket.socket) -> Settings:
    """Return the settings with the address as base URL, unless one is configured."""
    if settings.base_url:
        return settings
    return settings.model_copy(update={"base_url": url_of(_CLIENT_HOSTS.get(host, host), listener)})


def publish(settings: Settings) -> None:
    """Store the base URL, from which the other commands learn the issuer and audience of the tokens."""
    write_private(settings.data_dir / BASE_URL_FILE, settings.base_url + "\n")


def announce(host: str, listener: socket.socket) -> Callable[[], None]:
    """Return a function that prints the first line on stdout and reports to systemd; callers wait for either."""
    from profilesvc.server.systemd import notify

    line = f"listening on {url_of(host, listener)}"

    def ready() -> None:
        print_once(line)
        notify("READY=1")

    return ready


def print_once(text: str) -> None:
    """Print what a server prints when it is ready. It also serves if the reader has ended or the disk is full."""
    try:
        print(text, flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  else Python writes the rest at its end, and exits with 120
