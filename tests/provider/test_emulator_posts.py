"""Local posts at the emulator: shapes, rules of the strict mode, and the review."""

from typing import Any

import pytest

from support.provider.rig import Rig

POSTS = "/v4/accounts/1/locations/111/localPosts"
DAY = {"year": 2026, "month": 12, "day": 4}
SCHEDULE = {"startDate": DAY, "startTime": {"hours": 18}, "endDate": DAY, "endTime": {"hours": 21}}
EVENT = {"title": "Open evening", "schedule": SCHEDULE}


async def _make(emulator: Rig, **body: Any) -> dict[str, Any]:
    answer = await emulator.http.post(POSTS, json={"topicType": "STANDARD", "summary": "Hello", **body})
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def _state(emulator: Rig, post: dict[str, Any]) -> str:
    return str((await emulator.http.get(f"/v4/{post['name']}")).json()["state"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"summary": "x"}, "topic_type"),
        ({"topicType": "STANDARD", "summary": "x" * 1501}, "summary"),
        ({"topicType": "EVENT", "event": {"title": "x" * 59}}, "event.title"),
    ],
)
async def test_bad_post_is_rejected_in_every_mode(emulator: Rig, body: dict[str, Any], field: str) -> None:
    answer = await emulator.http.post(POSTS, json=body)
    assert answer.status_code == 400
    detail = answer.json()["error"]["details"][0]
    assert detail["@type"] == "type.googleapis.com/google.mybusiness.v4.ValidationError"
    assert detail["errorDetails"][0]["field"] == field


@pytest.mark.parametrize(
    "body", [{"topicType": "PRODUCT"}, {"callToAction": {"actionType": "LICK"}}, {"mood": "x"}, {"summary": 1}]
)
async def test_invalid_shape_is_rejected(emulator: Rig, body: dict[str, Any]) -> None:
    answer = await emulator.http.post(POSTS, json={"topicType": "STANDARD", **body})
    assert answer.status_code == 400


async def test_video_is_an_internal_error(emulator: Rig) -> None:
    media = [{"mediaFormat": "VIDEO", "sourceUrl": "https://harbour.example/v.mp4"}]
    answer = await emulator.http.post(POSTS, json={"topicType": "STANDARD", "media": media})
    assert (answer.status_code, answer.json()["error"]["status"]) == (500, "INTERNAL")


STRICT_CASES = [
    ({"topicType": "STANDARD"}, "summary"),
    ({"topicType": "STANDARD", "summary": "x", "event": EVENT}, "event"),
    ({"topicType": "EVENT", "summary": "x"}, "event"),
    ({"topicType": "EVENT", "event": {"schedule": SCHEDULE}}, "event.title"),
    ({"topicType": "EVENT", "event": {"title": "x", "schedule": {"startDate": DAY}}}, "event.schedule"),
    ({"topicType": "EVENT", "event": EVENT, "offer": {"couponCode": "x"}}, "offer"),
    ({"topicType": "OFFER", "summary": "x"}, "event"),
    ({"topicType": "OFFER", "event": EVENT, "callToAction": {"actionType": "CALL"}}, "call_to_action"),
    ({"topicType": "ALERT", "summary": "x", "alertType": "COVID_19"}, "topic_type"),
    ({"topicType": "STANDARD", "summary": "x", "callToAction": {"actionType": "BOOK"}}, "call_to_action.url"),
    (
        {"topicType": "STANDARD", "summary": "x", "callToAction": {"actionType": "CALL", "url": "https://x.example"}},
        "call_to_action.url",
    ),
]


@pytest.mark.parametrize(("body", "field"), STRICT_CASES)
async def test_topic_rules_hold_in_strict_mode_only(emulator: Rig, body: dict[str, Any], field: str) -> None:
    assert (await emulator.http.post(POSTS, json=body)).status_code == 200
    await emulator.put_state(switches={"strict": True})
    answer = await emulator.http.post(POSTS, json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["details"][0]["errorDetails"][0]["field"] == field


@pytest.mark.parametrize(
    "body",
    [
        {"topicType": "STANDARD", "summary": "x", "callToAction": {"actionType": "CALL"}},
        {"topicType": "EVENT", "event": EVENT},
        {"topicType": "OFFER", "event": EVENT, "offer": {"couponCode": "x"}},
    ],
)
async def test_complete_post_passes_strict_mode(emulator: Rig, body: dict[str, Any]) -> None:
    await emulator.put_state(switches={"strict": True})
    assert (await emulator.http.post(POSTS, json=body)).status_code == 200


async def test_new_post_is_in_review_and_its_read_only_fields_are_ignored(emulator: Rig) -> None:
    post = await _make(
        emulator, state="LIVE", name="forged", createTime="2020-01-01T00:00:00Z", searchUrl="https://x.example"
    )
    assert post["state"] == "PROCESSING"
    assert post["name"].startswith("accounts/1/locations/111/localPosts/")
    assert post["createTime"] == "2026-03-04T05:06:07.890Z"
    assert post["searchUrl"].startswith("https://search.example/")
    emulator.clock.advance(seconds=19)
    assert await _state(emulator, post) == "PROCESSING"
    emulator.clock.advance(seconds=1)
    assert await _state(emulator, post) == "LIVE"


async def test_review_period_is_a_switch_and_the_emulators_clock_ends_it(emulator: Rig) -> None:
    await emulator.put_state(switches={"review_seconds": 60})
    post = await _make(emulator)
    await emulator.http.post("/__emulator/clock", json={"advance_seconds": 59})
    assert await _state(emulator, post) == "PROCESSING"
    await emulator.http.post("/__emulator/clock", json={"advance_seconds": 1})
    assert await _state(emulator, post) == "LIVE"


async def test_seeded_post_in_review_ends_it_after_the_period_of_the_demo_data(emulator: Rig) -> None:
    seeded = {"name": "accounts/1/locations/111/localPosts/11112"}
    emulator.clock.advance(hours=23)
    await emulator.log_in()
    assert await _state(emulator, seeded) == "PROCESSING"
    emulator.clock.advance(hours=1)
    await emulator.log_in()
    assert await _state(emulator, seeded) == "LIVE"


async def test_flagged_post_is_rejected_and_reviewed_again_after_a_change(emulator: Rig) -> None:
    await emulator.put_state(switches={"reject_phrase": "casino"})
    post = await _make(emulator, summary="Best casino in town")
    emulator.clock.advance(seconds=20)
    assert await _state(emulator, post) == "REJECTED"
    await emulator.http.patch(f"/v4/{post['name']}?updateMask=summary", json={"summary": "Best café in town"})
    assert await _state(emulator, post) == "PROCESSING"
    emulator.clock.advance(seconds=20)
    assert await _state(emulator, post) == "LIVE"


async def test_scheduled_post_waits_for_its_time(emulator: Rig) -> None:
    post = await _make(emulator, scheduledTime="2026-03-04T06:06:07Z")
    assert post["state"] == "PROCESSING"
    emulator.clock.advance(seconds=20)
    assert await _state(emulator, post) == "SCHEDULED"
    emulator.clock.advance(minutes=59, seconds=40)
    await emulator.log_in()
    assert await _state(emulator, post) == "LIVE"


async def test_recurring_event_becomes_recurring(emulator: Rig) -> None:
    event = {**EVENT, "recurrenceInfo": {"dailyPattern": {}}}
    post = await _make(emulator, topicType="EVENT", event=event)
    assert post["event"]["recurrenceInfo"] == {"dailyPattern": {}}
    emulator.clock.advance(seconds=20)
    assert await _state(emulator, post) == "RECURRING"


@pytest.mark.parametrize("mask", ["", "media", "state", "name", "nope"])
async def test_patch_needs_a_writable_mask(emulator: Rig, mask: str) -> None:
    post = await _make(emulator)
    answer = await emulator.http.patch(f"/v4/{post['name']}", params={"updateMask": mask}, json={"summary": "x"})
    assert answer.status_code == 400
    assert answer.json()["error"]["details"][0]["fieldViolations"][0]["field"] == "update_mask"


async def test_a_location_without_posts_rejects_them(emulator: Rig) -> None:
    await emulator.put_state(locations={"locations/111": {"metadata": {"canOperateLocalPost": False}}})
    body = {"topicType": "STANDARD", "summary": "Open late"}
    answer = await emulator.http.post(POSTS, json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["details"][0]["reason"] == "LOCATION_DISABLED_FOR_LOCAL_POST_API"
    assert (await emulator.http.get(POSTS)).status_code == 200
