"""The control API and the emulator's file."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from profilesvc.domain.time import FrozenClock
from support.provider.drive import no_faults
from support.provider.rig import Rig, in_process
from support.waiting import deadline, until_async

PIER, BOOKS, AIRPORT = "locations/111", "locations/114", "locations/113"
PHONE = {"primaryPhone": "+81 45-555-0177"}


@pytest.mark.parametrize("seconds", [1e308, -1e18, 1e17, -4e9])
async def test_the_clock_stays_within_valid_times(emulator: Rig, seconds: float) -> None:
    answer = await emulator.http.post("/__emulator/clock", json={"advance_seconds": seconds})
    assert answer.status_code == 400, answer.text


async def test_put_state_changes_a_profile(emulator: Rig) -> None:
    state = await emulator.put_state(locations={BOOKS: {"phoneNumbers": PHONE, "labels": None}})
    assert state["locations"][BOOKS]["document"]["phoneNumbers"] == PHONE
    place = (await emulator.read(BOOKS)).json()
    assert place["phoneNumbers"] == PHONE
    assert "labels" not in place
    assert place["title"] == "Harbour Books"


async def test_put_state_grants_and_removes_verification(emulator: Rig) -> None:
    await emulator.put_state(voice_of_merchant={AIRPORT: {"hasVoiceOfMerchant": True}}, verifications={AIRPORT: []})
    assert (await emulator.http.get(f"/v1/{AIRPORT}/VoiceOfMerchantState")).json() == {"hasVoiceOfMerchant": True}
    assert (await emulator.http.get(f"/v1/{AIRPORT}/verifications")).json() == {}
    assert (await emulator.read(AIRPORT, "metadata")).json()["metadata"]["hasVoiceOfMerchant"] is True


async def test_put_state_decides_a_review(emulator: Rig) -> None:
    name = "accounts/1/locations/111/localPosts/11112"
    await emulator.put_state(posts={name: {"state": "REJECTED"}})
    assert (await emulator.http.get(f"/v4/{name}")).json()["state"] == "REJECTED"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"locations": {"locations/9": {}}}, 404),
        ({"locations": {PIER: {"nope": 1}}}, 400),
        ({"switches": {"nope": 1}}, 400),
        ({"switches": {"strict": "yes"}}, 400),
        ({"nope": 1}, 400),
    ],
)
async def test_put_state_is_all_or_nothing(emulator: Rig, body: dict[str, Any], status: int) -> None:
    before = (await emulator.http.get("/__emulator/state")).json()
    mixed = {"voice_of_merchant": {AIRPORT: {"hasVoiceOfMerchant": True}}, **body}
    assert (await emulator.http.put("/__emulator/state", json=mixed)).status_code == status
    assert (await emulator.http.get("/__emulator/state")).json() == before


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("faults", b"{"),
        ("faults", b'{"kind": "flood"}'),
        ("faults", b'{"kind": "delay", "match": {"path": "("}}'),
        ("clock", b"{}"),
        ("clock", b'{"advance_seconds": NaN}'),
    ],
)
async def test_bad_control_call_is_rejected(emulator: Rig, path: str, content: bytes) -> None:
    assert (await emulator.http.post(f"/__emulator/{path}", content=content)).status_code == 400


async def test_faults_hit_what_they_match_and_are_used_up(emulator: Rig) -> None:
    await emulator.fault("status", status=503, match={"method": "PATCH", "path": "/v1/locations/111"})
    assert (await emulator.read(PIER)).status_code == 200
    assert (await emulator.patch(BOOKS, {"title": "x"}, "title")).status_code == 200
    assert (await emulator.patch(PIER, {"title": "x"}, "title")).status_code == 503
    assert (await emulator.patch(PIER, {"title": "x"}, "title")).status_code == 200
    await emulator.fault("status", headers={"Retry-After": "7"}, times=9)
    assert (await emulator.read(PIER)).headers["Retry-After"] == "7"
    await emulator.http.delete("/__emulator/faults")
    assert (await emulator.read(PIER)).status_code == 200


async def test_calls_are_held_until_the_queue_is_emptied(emulator: Rig) -> None:
    await emulator.fault("hold", times=2)
    waiting = [asyncio.create_task(emulator.read(PIER)) for _ in range(2)]
    await until_async(lambda: no_faults(emulator.http), "the emulator to hold both calls", every=0)
    assert not any(call.done() for call in waiting)
    await emulator.http.delete("/__emulator/faults")
    async with deadline(30, "the calls that were held"):
        assert [call.status_code for call in await asyncio.gather(*waiting)] == [200, 200]


async def test_calls_are_recorded_without_credentials(emulator: Rig) -> None:
    await emulator.http.delete("/__emulator/requests")
    await emulator.patch(PIER, {"title": "New"}, "title")
    await emulator.log_in()
    first, second = (await emulator.http.get("/__emulator/requests")).json()["requests"]
    assert first == {
        "time": "2026-03-04T05:06:07.890Z",
        "method": "PATCH",
        "path": f"/v1/{PIER}",
        "query": {"updateMask": "title"},
        "body": {"title": "New"},
        "status": 200,
    }
    assert (second["path"], second["body"]) == ("/token", None)


async def test_reset_restores_the_demo_data_and_keeps_tokens(emulator: Rig) -> None:
    before = (await emulator.http.get("/__emulator/state")).json()
    await emulator.patch(PIER, {"title": "New"}, "title")
    await emulator.http.delete("/v4/accounts/1/locations/111/localPosts/11101")
    await emulator.put_state(switches={"strict": True})
    assert (await emulator.http.post("/__emulator/reset")).json() == before
    assert (await emulator.read(PIER, "title")).json() == {"title": "Harbour Coffee, Pier"}


async def test_a_restart_loses_nothing(tmp_path: Path, clock: FrozenClock) -> None:
    async with in_process(tmp_path, clock) as first:
        await first.log_in()
        await first.patch(PIER, {"title": "New"}, "title")
        await first.put_state(switches={"review_seconds": 5})
        made = await first.provider.create_post("accounts/1", PIER, {"topicType": "STANDARD", "summary": "kept"})
        before = (await first.http.get("/__emulator/state")).json()
        bearer = first.http.headers["Authorization"]
    async with in_process(tmp_path, clock) as second:
        assert (await second.http.get("/__emulator/state")).json() == before
        second.http.headers["Authorization"] = bearer
        assert (await second.read(PIER, "title")).json() == {"title": "New"}
        again = await second.provider.create_post("accounts/1", PIER, {"topicType": "STANDARD", "summary": "new"})
        assert again["name"] != made["name"]


CRASHING = """
import asyncio, os, signal, sys
from pathlib import Path
from profilesvc.domain.entropy import SystemEntropy
from profilesvc.domain.time import SystemClock
from profilesvc.fixtures import load_world
from profilesvc.emulator.embedded import open_emulator
from profilesvc.settings import Settings

async def main():
    settings = Settings(data_dir=Path(sys.argv[1]), environment="development")
    world = load_world()
    async with open_emulator(settings, clock=SystemClock(), entropy=SystemEntropy(), world=world) as (provider, _):
        await provider.patch_location("locations/111", {"title": "Kept"}, ["title"])
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_a_kill_loses_nothing_that_was_confirmed(tmp_path: Path, clock: FrozenClock) -> None:
    killed = await anyio.run_process([sys.executable, "-c", CRASHING, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    async with in_process(tmp_path, clock) as rig:
        assert (await rig.provider.location(PIER))["title"] == "Kept"


async def test_concurrent_patches_of_different_fields_are_all_stored(emulator: Rig) -> None:
    changes = {"title": "New", "websiteUri": "https://n.example/", "labels": ["n"], "storeCode": "N"}
    answers = await asyncio.gather(*(emulator.patch(PIER, {key: value}, key) for key, value in changes.items()))
    assert all(answer.status_code == 200 for answer in answers)
    assert (await emulator.read(PIER, ",".join(changes))).json() == changes
