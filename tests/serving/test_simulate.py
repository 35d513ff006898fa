"""The simulated plugin against a served service: what it does, and what it says when its key ends."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from profilesvc.cli.simulate import Plugin, Stopped
from profilesvc.lab import Lab, open_lab
from support.program import COMMAND, command, environment, serving


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


def test_a_simulated_plugin_makes_the_calls_of_a_plugin(lab: Lab) -> None:
    key, said = key_of(lab, primary_domain="harbour.example"), list[str]()
    with closing(plugin_of(lab, key, said, "harbour.example")) as plugin:
        plugin.run(60, 120, beats=3)
    assert [line.partition(":")[0] for line in said] == [
        *("validate", "token", "sync", "heartbeat", "heartbeat", "refresh", "heartbeat")
    ]
    status = lab.user("alice").get(f"/api/v1/api-keys/{key['client_id']}/status").json()["data"]
    assert (status["connection_status"], status["plugin_version"]) == ("online", "2.4.1")
    assert "warnings" not in status


REASONS = ("billing_issue", "plan_downgrade", "user_requested", "security_concern")
RESUMED = "resumed: the key is active again"


def kinds(said: list[str]) -> list[str]:
    return [line.partition(":")[0] for line in said]


def test_a_revoked_key_ends_it_with_a_clear_line(lab: Lab) -> None:
    key, said = key_of(lab), list[str]()

    def pause(_: float) -> None:
        assert lab.user("alice").delete(f"/api/v1/developer/credentials/{key['client_id']}").status_code == 200

    with pytest.raises(Stopped, match="the key was revoked"), closing(plugin_of(lab, key, said, pause=pause)) as plugin:
        plugin.run(1, 1000, beats=2)
    assert key["client_secret"] not in "".join(said)


@pytest.mark.parametrize("reason", REASONS)
def test_a_deactivated_key_pauses_it_until_the_key_is_active_again(lab: Lab, reason: str) -> None:
    """With a new secret after a security concern, so that the old one ends it; otherwise by itself."""
    key, said = key_of(lab), list[str]()
    rolled = reason == "security_concern"
    steps: dict[int, Callable[[], object]] = {
        1: lambda: lab.operator.deactivate(key["client_id"], reason),
        4: lambda: lab.operator.reactivate(key["client_id"], roll=rolled),
    }
    pauses = iter(range(1, 10))

    def pause(seconds: float) -> None:
        assert seconds == 60
        steps.get(next(pauses), lambda: None)()

    with closing(plugin_of(lab, key, said, pause=pause)) as plugin:
        if rolled:
            with pytest.raises(Stopped, match="its secret was replaced; enter new credentials"):
                plugin.run(60, 150, beats=6)
        else:
            plugin.run(60, 150, beats=6)
    paused = said[4]
    assert paused.startswith(f"paused: the key is deactivated ({reason.replace('_', ' ')}); see http")
    after = (
        ["token"] if rolled else ["resumed", "refresh", "heartbeat", "heartbeat"]
    )  # the refresh became due meanwhile
    assert kinds(said) == ["validate", "token", "sync", "heartbeat", "paused", *after]
    assert said.count(RESUMED) == (not rolled)


def test_each_reason_is_printed_once(lab: Lab) -> None:
    key, said = key_of(lab), list[str]()
    pauses = iter(["user_requested", "user_requested", "billing_issue", None, "reactivated"])

    def pause(_: float) -> None:
        step = next(pauses, None)
        if step == "reactivated":
            lab.operator.reactivate(key["client_id"])
        elif step:
            lab.operator.deactivate(key["client_id"], step)

    with closing(plugin_of(lab, key, said, pause=pause)) as plugin:
        plugin.run(60, 1000, beats=6)
    assert kinds(said)[4:] == ["paused", "paused", "resumed", "heartbeat"]


def test_a_key_that_is_deactivated_before_the_start_is_waited_for(lab: Lab) -> None:
    key, said = key_of(lab), list[str]()
    lab.operator.deactivate(key["client_id"], "billing_issue")
    pauses = iter(range(1, 10))

    def pause(_: float) -> None:
        if next(pauses) == 2:
            lab.operator.reactivate(key["client_id"])

    with closing(plugin_of(lab, key, said, pause=pause)) as plugin:
        plugin.run(60, 1000, beats=1)
    assert kinds(said) == ["paused", "resumed", "validate", "token", "sync", "heartbeat"]


def test_the_command_comes_back_after_a_reactivation_and_ends_after_a_revocation(tmp_path: Path) -> None:
    """Against the demo in a process of its own, over HTTP and by the real clock."""
    with serving(tmp_path, "demo", "--port", "0") as demo:
        demo.introduction()
        key = json.loads((tmp_path / "var" / "demo.json").read_text("utf-8"))
        pair = ["--client-id", key["client_id"], "--client-secret", key["client_secret"]]
        with subprocess.Popen(
            [*COMMAND, "simulate", "plugin", "--url", demo.url, "--every", "0.5", *pair],
            cwd=tmp_path,
            env=environment() | {"PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            text=True,
        ) as site:
            assert site.stdout is not None
            try:
                for line in site.stdout:
                    if line.startswith("sync"):
                        operate(tmp_path, "deactivate", key["client_id"], "--reason", "billing_issue")
                    elif line.startswith("paused"):
                        operate(tmp_path, "reactivate", key["client_id"])
                    elif line.startswith("resumed"):
                        operate(tmp_path, "revoke", key["client_id"])
                assert line == "stopped: the key was revoked or its secret was replaced; enter new credentials\n"
                assert site.wait(30) == 1
            finally:
                site.kill()


def operate(folder: Path, *words: str) -> None:
    """A command of the operator's."""
    done = command(folder, "keys", *words)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("site", "reason"), [("", "invalid credentials"), ("evil.example", "domain not allowed")])
def test_credentials_that_are_rejected_stop_it_at_once(lab: Lab, site: str, reason: str) -> None:
    key, said = key_of(lab, primary_domain="harbour.example"), list[str]()
    wrong = key if site else {**key, "client_secret": "x" * 64}
    with pytest.raises(Stopped, match=reason), closing(plugin_of(lab, wrong, said, site)) as plugin:
        plugin.run(1, 1)
    assert said == []
