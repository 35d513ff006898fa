"""Reviews and their replies, and the way through a verification, by plain HTTP."""

from typing import Any

import pytest

from support.provider.rig import Rig

PIER, AIRPORT = "locations/111", "locations/113"
REVIEWS = f"/v4/accounts/1/{PIER}/reviews"
UNANSWERED = f"{REVIEWS}/111002"


async def reply(rig: Rig, comment: str, review: str = UNANSWERED) -> Any:
    return await rig.http.put(f"{review}/reply", json={"comment": comment})


async def state(rig: Rig, review: str = UNANSWERED) -> dict[str, Any]:
    reply: dict[str, Any] = (await rig.http.get(review)).json().get("reviewReply", {})
    return reply


async def test_reply_passes_a_review_and_a_flagged_one_does_not(emulator: Rig) -> None:
    await emulator.put_state(switches={"reject_phrase": "casino"})
    assert (await reply(emulator, "Thanks!")).json() == {
        "comment": "Thanks!",
        "updateTime": "2026-03-04T05:06:07.890Z",
        "reviewReplyState": "PENDING",
    }
    emulator.clock.advance(seconds=20)
    assert (await state(emulator))["reviewReplyState"] == "APPROVED"
    await reply(emulator, "Visit our casino")
    assert (await state(emulator))["reviewReplyState"] == "PENDING"
    emulator.clock.advance(seconds=20)
    rejected = await state(emulator)
    assert (rejected["reviewReplyState"], rejected["policyViolation"]) == ("REJECTED", "GENERIC_VIOLATION")
    assert (await emulator.http.delete(f"{UNANSWERED}/reply")).json() == {}
    assert await state(emulator) == {}
    assert (await emulator.http.delete(f"{UNANSWERED}/reply")).status_code == 404


async def test_reply_is_measured_in_bytes(emulator: Rig) -> None:
    assert (await reply(emulator, "é" * 2048)).status_code == 200
    for comment, message in (("é" * 2048 + "x", "Must be at most 4096 bytes"), ("", "Comment is required.")):
        refused = await reply(emulator, comment)
        assert refused.status_code == 400
        problem = refused.json()["error"]["details"][0]["errorDetails"][0]
        assert (problem["field"], problem["message"]) == ("comment", message)


@pytest.mark.parametrize(
    ("order", "stars"),
    [
        ("", ["FIVE", "FOUR", "TWO", "FIVE", "THREE"]),
        ("updateTime desc", ["FIVE", "FOUR", "TWO", "FIVE", "THREE"]),
        ("rating", ["TWO", "THREE", "FOUR", "FIVE", "FIVE"]),
        ("rating desc", ["FIVE", "FIVE", "FOUR", "THREE", "TWO"]),
    ],
)
async def test_reviews_are_ordered(emulator: Rig, order: str, stars: list[str]) -> None:
    answer = (await emulator.http.get(REVIEWS, params={"orderBy": order})).json()
    assert [review["starRating"] for review in answer["reviews"]] == stars
    assert (await emulator.http.get(f"{REVIEWS}?orderBy=mood")).status_code == 400


async def test_reviews_need_a_verified_location_of_the_account(emulator: Rig) -> None:
    unverified = await emulator.http.get(f"/v4/accounts/1/{AIRPORT}/reviews")
    assert (unverified.status_code, unverified.json()["error"]["status"]) == (400, "FAILED_PRECONDITION")
    assert (await emulator.http.get(f"/v4/accounts/2/{PIER}/reviews")).status_code == 404
    assert (await reply(emulator, "x", f"{REVIEWS}/9")).status_code == 404
    assert (await emulator.http.get("/v4/accounts/1/locations/119/reviews")).json() == {}
    foreign = {"locationNames": ["accounts/2/locations/211"]}
    for body in ({}, foreign):
        answer = await emulator.http.post("/v4/accounts/1/locations:batchGetReviews", json=body)
        assert answer.status_code == 400


async def test_control_adds_replaces_and_removes_reviews(emulator: Rig) -> None:
    name = f"accounts/1/{PIER}/reviews/9"
    await emulator.put_state(reviews={name: {"starRating": "TWO", "comment": "Cold."}})
    assert (await emulator.http.get(f"/v4/{name}")).json() == {
        "name": name,
        "reviewId": "9",
        "starRating": "TWO",
        "comment": "Cold.",
        "createTime": "2026-03-04T05:06:07.890Z",
        "updateTime": "2026-03-04T05:06:07.890Z",
    }
    await emulator.put_state(reviews={name: {"starRating": "FIVE"}})
    assert (await emulator.http.get(f"/v4/{name}")).json()["starRating"] == "FIVE"
    await emulator.put_state(reviews={name: None})
    assert (await emulator.http.get(f"/v4/{name}")).status_code == 404
    wrong: dict[str, Any]
    for wrong in ({f"accounts/2/{PIER}/reviews/9": {}}, {f"accounts/1/{PIER}": {}}, {name: None}):
        assert (await emulator.http.put("/__emulator/state", json={"reviews": wrong})).status_code == 404
    bad = {"reviews": {name: {"starRating": "SIX"}}}
    assert (await emulator.http.put("/__emulator/state", json=bad)).status_code == 400


async def post(rig: Rig, path: str, **body: Any) -> Any:
    return await rig.http.post(f"/v1/{AIRPORT}{path}", json=body)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (":fetchVerificationOptions", {}, "INVALID_ARGUMENT"),
        (":fetchVerificationOptions", {"languageCode": "en", "context": {}}, "INVALID_ARGUMENT"),
        (":verify", {}, "INVALID_ARGUMENT"),
        (":verify", {"method": "AUTO"}, "FAILED_PRECONDITION"),
        (":verify", {"method": "SMS", "phoneNumber": "+1 555"}, "INVALID_ARGUMENT"),
        (":verify", {"method": "EMAIL", "emailAddress": "me@elsewhere.example"}, "INVALID_ARGUMENT"),
        ("/verifications/1:complete", {}, "INVALID_ARGUMENT"),
        ("/verifications/1:complete", {"pin": "0"}, "INVALID_ARGUMENT"),
        ("/verifications/9:complete", {"pin": "123456"}, "NOT_FOUND"),
    ],
)
async def test_wrong_step_of_a_verification_is_rejected(
    emulator: Rig, path: str, body: dict[str, Any], status: str
) -> None:
    assert (await post(emulator, path, **body)).json()["error"]["status"] == status


async def test_automatic_verification_is_complete_at_once_and_offers_nothing_more(emulator: Rig) -> None:
    await emulator.put_state(switches={"offer_auto": True})
    made = (await post(emulator, ":verify", method="AUTO")).json()["verification"]
    assert made["state"] == "COMPLETED"
    assert (await post(emulator, ":fetchVerificationOptions", languageCode="en")).json() == {}
    again = await post(emulator, f"/verifications/{made['name'].rpartition('/')[2]}:complete", pin="123456")
    assert again.json()["error"]["status"] == "FAILED_PRECONDITION"


async def test_address_and_mail_are_offered_methods(emulator: Rig) -> None:
    assert (await post(emulator, ":verify", method="ADDRESS", mailerContact="A. Ito")).status_code == 200
    mail = await post(emulator, ":verify", method="EMAIL", emailAddress="info@harbour.example")
    assert mail.status_code == 200


async def test_photos_of_posts_are_hosted_by_the_provider(emulator: Rig) -> None:
    url = f"/v4/accounts/1/{PIER}/localPosts"
    photo = {"mediaFormat": "PHOTO", "sourceUrl": "https://harbour.example/p.jpg"}
    body = {"topicType": "STANDARD", "summary": "x", "media": [photo]}
    made = (await emulator.http.post(url, json=body)).json()
    assert made["media"][0].items() >= photo.items()
    assert made["media"][0]["googleUrl"].startswith("https://photos.example/")
    gone = {**body, "media": [{**photo, "sourceUrl": "https://gone.invalid/p.jpg"}]}
    detail = (await emulator.http.post(url, json=gone)).json()["error"]["details"][0]["errorDetails"][0]
    assert (detail["code"], detail["field"]) == (1000, "media[0].source_url")
    await emulator.put_state(switches={"strict": True})
    for media in ({"mediaFormat": "PHOTO"}, {**photo, "locationAssociation": {"category": "LOGO"}}):
        assert (await emulator.http.post(url, json={**body, "media": [media]})).status_code == 400


async def test_any_envelope_of_the_provider_can_be_scripted(emulator: Rig) -> None:
    links = [{"description": "Enable it", "url": "https://console.example/"}]
    details = [{"@type": "type.googleapis.com/google.rpc.Help", "links": links}]
    await emulator.fault("status", status=403, reason="SERVICE_DISABLED", details=details)
    error = (await emulator.read(PIER)).json()["error"]
    assert error["status"] == "PERMISSION_DENIED"
    assert [detail["@type"].rpartition(".")[2] for detail in error["details"]] == ["Help", "ErrorInfo"]
