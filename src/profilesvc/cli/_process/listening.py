"""The address of a server: binding it, telling it, publishing it for the commands."""

import socket
from collections.abc import Callable
from typing import Annotated

import typer

from profilesvc.cli.opening import BASE_URL_FILE, write_private
from profilesvc.settings import Settings, SettingsError

Host = Annotated[str, typer.Option(help="The address to listen on.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")]
_REACHED_BY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # no client can call a wildcard


def bound(host: str, port: int) -> socket.socket:
    """A listening socket; SettingsError with one line when that is not possible."""
    from profilesvc.server.serving import bind

    try:
        return bind(host, port)
    except OSError as error:
        raise SettingsError(f"cannot listen on {_url(host, port)}: {error.strerror or error}") from None


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def url_of(host: str, listener: socket.socket) -> str:
    """Where the socket is reached, as it was asked for."""
    return _url(host, listener.getsockname()[1])


def with_base_url(settings: Settings, host: str, listener: socket.socket) -> Settings:
    """The settings with the address as base URL, unless one is configured."""
    if settings.base_url:
        return settings
    return settings.model_copy(update={"base_url": url_of(_REACHED_BY.get(host, host), listener)})


def publish(settings: Settings) -> None:
    """Tell the commands whose tokens the server takes (issuer and audience)."""
    write_private(settings.data_dir / BASE_URL_FILE, settings.base_url + "\n")


def announce(host: str, listener: socket.socket) -> Callable[[], None]:
    """The first line on stdout, once requests are answered; programs wait for it."""
    line = f"listening on {url_of(host, listener)}"
    return lambda: print(line, flush=True)
