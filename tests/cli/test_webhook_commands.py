"""`profilesvc webhooks`, `alerts`, `events tail` and `simulate receiver`."""

import json
import threading
from collections.abc import Iterator

import pytest

from profilesvc.cli import opening
from profilesvc.cli.receiver import open_receiver
from profilesvc.lab import Lab, open_lab
from profilesvc.services.context import Services
from profilesvc.storage.notify import channels
from support.api import ALICE
from support.command_line import Run, create_key, printed, refused

KEY = {"name": "Site", "business_id": 10, "assigned_location_id": "locations/111"}


@pytest.fixture
def lab() -> Iterator[Lab]:
    with open_lab() as opened:
        yield opened


def test_the_commands_of_the_operator(run: Run) -> None:
    assert run("webhooks", "list").stdout == ""
    assert printed(run("webhooks", "backlog", "--json")) == {"queued": 0, "oldest_seconds": 0}
    assert "There is no such webhook" in refused(run("webhooks", "enable", "1", "7"))
    assert run("events", "tail", ALICE, "--once").stdout == ""
    key = create_key(run)
    [line] = run("events", "tail", ALICE, "--once").stdout.splitlines()
    event = json.loads(line)
    assert (event["type"], event["data"]["key"]["client_id"]) == ("key.created", key["client_id"])
    assert "nobody@example.com" in refused(run("events", "tail", "nobody@example.com", "--once"))


def test_alarms_that_are_held_back(run: Run) -> None:
    assert printed(run("alerts", "status", "--json")) == {"held_since": None}
    assert printed(run("alerts", "release", "--json")) == {"released": True}


def test_a_webhook_is_disabled_and_enabled_by_the_operator(run: Run) -> None:
    hook = {"kind": "slack", "target": "https://hooks.example/secret", "nonce": "n", "created_at": 0}

    async def add(services: Services) -> None:
        async with services.storage.write() as session:
            await channels.add(session, 1, "digest", confirmed_at=0, **hook)

    opening.run(add)
    shown = {"id": 1, "owner_id": 1, "format": "slack", "host": "hooks.example", "failing_since": None}
    assert printed(run("webhooks", "list", "--json")) == [{**shown, "state": "enabled"}]
    assert printed(run("webhooks", "disable", "1", "1", "--json")) == {**shown, "state": "disabled: operator"}
    assert printed(run("webhooks", "enable", "1", "1", "--json")) == {**shown, "state": "enabled"}


def test_a_simulated_receiver_verifies_the_deliveries_of_the_service(lab: Lab) -> None:
    said: list[str] = []
    owner = lab.user("alice")
    with (
        open_receiver("", 0, 204, 0.0, said.append) as open_one,
        open_receiver("whsec_AAAA", 0, 204, 0.0, said.append) as strict,
    ):
        for server in (open_one, strict):
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            url = f"http://127.0.0.1:{server.server_port}/"
            assert owner.post("/api/v1/webhooks", json={"url": url}).status_code == 201
        assert owner.post("/api/v1/developer/credentials", json=KEY).status_code == 201
        assert lab.operator.deliver() == 2
        assert lab.operator.deliver() == 0
        for server in (open_one, strict):
            server.shutdown()
    first, second = sorted(said, key=len, reverse=True)
    assert '"type":"key.created"' in first
    assert second == "evt_1_1: rejected: the signature is wrong"
    states = [
        owner.get(f"/api/v1/webhooks/{number}/deliveries").json()["data"]["deliveries"][0]["state"] for number in (1, 2)
    ]
    assert states == ["delivered", "pending"]
