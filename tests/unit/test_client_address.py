"""The client's address behind proxies (D-50)."""

import pytest

from profilesvc.domain.request import client_address

PROXY = "10.0.0.1"


@pytest.mark.parametrize(
    ("entry", "address"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("203.0.113.7:51234", "203.0.113.7"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:DB8::1]:443", "2001:db8::1"),
        ("[::ffff:203.0.113.7]:443", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:443", "2001:db8:1:2:3:4:5:443"),
        *((wrong, PROXY) for wrong in ("", "unknown", "203.0.113.7:", "203.0.113.7:x", "203.0.113.7:123456")),
        *((wrong, PROXY) for wrong in ("203.0.113:80", "1.2.3.4:5:6", "[203.0.113.7:80", "[]:443", "[2001:db8::1]443")),
        *((wrong, PROXY) for wrong in ("203.0.113.7:\u0661", ":51234", "host:80")),
    ],
)
def test_the_entry_of_the_proxy_may_have_a_port(entry: str, address: str) -> None:
    assert client_address(PROXY, [f"198.51.100.1:80, {entry}"], 1) == address


def test_a_port_does_not_move_the_trusted_entry() -> None:
    assert client_address(PROXY, ["198.51.100.1:80", "203.0.113.7:51234, 10.0.0.2:443"], 2) == "203.0.113.7"
    assert client_address(PROXY, ["203.0.113.7:51234"], 0) == PROXY
