"""Connections within this machine must not go through a proxy, whose 127.0.0.1 is another machine."""

import os

HOSTS = ("127.0.0.1", "localhost", "::1")
_PROXIES = {"http_proxy", "https_proxy", "all_proxy"}


def exempt_loopback() -> None:
    """Exempt loopback from the proxies of the environment, for this process and those that it starts.

    Without such a proxy, do nothing: on macOS and Windows NO_PROXY would hide the proxy settings of the system.
    """
    if not any(name.lower() in _PROXIES for name in os.environ):
        return
    exempt = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    listed = [host.strip() for host in exempt.split(",") if host.strip()]
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(
        [*listed, *(host for host in HOSTS if host not in listed)]
    )
