"""Sockets that systemd passes to a service in its environment: one for reports, and one that already listens."""

import os
import socket

_FIRST_DESCRIPTOR = 3


def notify(state: str) -> None:
    """Report a state such as `READY=1`. Do nothing if systemd does not wait for reports."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # an abstract socket
        address = f"\0{address[1:]}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reports:
        reports.sendto(state.encode(), address)


def inherited_socket() -> socket.socket | None:
    """Return the TCP socket of a socket unit; None if there is none.

    Raises:
        OSError: There are several sockets, or it is not a TCP socket.
    """
    if os.environ.get("LISTEN_PID") != str(os.getpid()):  # those of another process are not ours
        return None
    count = os.environ.get("LISTEN_FDS", "")
    if count != "1":
        raise OSError(f"the socket unit must have one socket, not {count}")
    inherited = socket.socket(fileno=_FIRST_DESCRIPTOR)
    if inherited.family not in (socket.AF_INET, socket.AF_INET6) or inherited.type != socket.SOCK_STREAM:
        raise OSError("the socket unit must have a TCP socket: ListenStream=127.0.0.1:8000")
    inherited.set_inheritable(False)
    inherited.setblocking(False)
    return inherited
