"""The simulated plugin against a served service: what it does, and what it says when its key ends."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from profilesvc.cli.simulate import Plugin, Stopped
from profilesvc.lab import Lab, open_lab


@pytest.fixture
def lab() -> Iterator[Lab]:
    with open_lab() as opened:
        yield opened


def key_of(lab: Lab, **members: Any) -> dict[str, Any]:
    body = {"name": "Plugin", "business_id": lab.business_id, "assigned_location_id": lab.location, **members}
    made: dict[str, Any] = lab.user("alice").post("/api/v1/developer/credentials", json=body).json()["data"]
    return made


def plugin_of(lab: Lab, key: dict[str, Any], said: list[str], site: str = "", **options: Any) -> Plugin:
    pair = key["client_id"], key["client_secret"]
    return Plugin(lab.url, pair, site, say=said.append, **{"pause": lambda _: None, **options})


def test_a_plugin_does_what_plugins_do(lab: Lab) -> None:
    key, said = key_of(lab, primary_domain="harbour.example"), list[str]()
    with closing(plugin_of(lab, key, said, "harbour.example")) as plugin:
        plugin.run(60, 120, beats=3)
    assert [line.partition(":")[0] for line in said] == [
        *("validate", "token", "sync", "heartbeat", "heartbeat", "refresh", "heartbeat")
    ]
    status = lab.user("alice").get(f"/api/v1/api-keys/{key['client_id']}/status").json()["data"]
    assert (status["connection_status"], status["plugin_version"]) == ("online", "2.4.1")
    assert "warnings" not in status


@pytest.mark.parametrize(
    ("method", "end", "words"),
    [("DELETE", "", "the key was revoked"), ("POST", "/deactivate", "the key was deactivated (user requested)")],
)
def test_a_key_that_ends_stops_it_with_a_clear_line(lab: Lab, method: str, end: str, words: str) -> None:
    key, said = key_of(lab), list[str]()
    path = f"/api/v1/developer/credentials/{key['client_id']}{end}"

    def pause(_: float) -> None:
        assert lab.user("alice").request(method, path).status_code == 200

    with pytest.raises(Stopped) as stopped, closing(plugin_of(lab, key, said, pause=pause)) as plugin:
        plugin.run(1, 1000, beats=2)
    assert words in str(stopped.value)
    assert key["client_secret"] not in "".join(said)


@pytest.mark.parametrize(("site", "reason"), [("", "invalid credentials"), ("evil.example", "domain not allowed")])
def test_credentials_that_are_refused_stop_it_at_once(lab: Lab, site: str, reason: str) -> None:
    key, said = key_of(lab, primary_domain="harbour.example"), list[str]()
    wrong = key if site else {**key, "client_secret": "x" * 64}
    with pytest.raises(Stopped, match=reason), closing(plugin_of(lab, wrong, said, site)) as plugin:
        plugin.run(1, 1)
    assert said == []
