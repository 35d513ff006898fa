"""Every method of the port, over both ways to the provider."""

import asyncio

import pytest

from profilesvc.contract.provider.location import Location
from profilesvc.provider.port import ProviderError
from support.provider.rig import Rig

ALICE, PIER, BOOKS, AIRPORT = "accounts/1", "locations/111", "locations/114", "locations/113"
EVENT_BODY = {
    "languageCode": "en",
    "topicType": "EVENT",
    "summary": "Open evening in the bakery.",
    "event": {
        "title": "Open evening",
        "schedule": {
            "startDate": {"year": 2026, "month": 12, "day": 4},
            "startTime": {"hours": 18},
            "endDate": {"year": 2026, "month": 12, "day": 4},
            "endTime": {},
        },
    },
    "callToAction": {"actionType": "LEARN_MORE", "url": "https://bakery.example/evening"},
}


async def test_accounts_are_listed_personal_first(rig: Rig) -> None:
    assert [account["name"] for account in await rig.provider.accounts()] == ["accounts/1", "accounts/2", "accounts/3"]


async def test_locations_of_an_account_are_complete(rig: Rig) -> None:
    places = await rig.provider.locations(ALICE)
    assert [place["name"] for place in places] == [f"locations/{n}" for n in (111, 112, 113, 114, 119)]
    assert places[0] == await rig.provider.location(PIER)


async def test_location_is_the_provider_document_with_its_drift(rig: Rig) -> None:
    place = await rig.provider.location(BOOKS)
    Location.model_validate(place)
    assert place["phoneNumbers"]["primaryPhone"] == "+81 45-555-0199"
    assert place["openInfo"]["canReopen"] is True


async def test_midnight_is_an_empty_message_and_false_is_left_out(rig: Rig) -> None:
    station = await rig.provider.location("locations/112")
    assert station["regularHours"]["periods"][0]["openTime"] == {}
    assert "hasVoiceOfMerchant" not in (await rig.provider.location(AIRPORT))["metadata"]


async def test_patch_sets_the_masked_fields(rig: Rig) -> None:
    body = {"profile": {"description": "Café 港"}, "title": "not masked"}
    place = await rig.provider.patch_location(PIER, body, ["profile.description", "websiteUri"])
    assert place["profile"] == {"description": "Café 港"}
    assert place["title"] == "Harbour Coffee, Pier"
    assert "websiteUri" not in place
    assert place == await rig.provider.location(PIER)


async def test_unknown_location_is_not_found(rig: Rig) -> None:
    with pytest.raises(ProviderError) as caught:
        await rig.provider.location("locations/999")
    assert caught.value.not_found
    assert (caught.value.reason, caught.value.retryable) == ("rejected", False)


async def test_verification_shows_pending_ones(rig: Rig) -> None:
    verification = await rig.provider.verification(AIRPORT)
    assert verification.voice_of_merchant == {"verify": {"hasPendingVerification": True}}
    assert [one["state"] for one in verification.verifications] == ["PENDING"]
    pier = await rig.provider.verification(PIER)
    assert pier.voice_of_merchant["hasVoiceOfMerchant"]
    assert [one["state"] for one in pier.verifications] == ["FAILED", "COMPLETED"]


async def test_posts_are_newest_first(rig: Rig) -> None:
    posts = await rig.provider.posts(ALICE, PIER)
    times = [post["createTime"] for post in posts]
    assert times == sorted(times, reverse=True)
    assert [post["state"] for post in posts] == ["PROCESSING", *["LIVE"] * 11]
    assert await rig.provider.posts(ALICE, BOOKS) == []


async def test_post_lives_from_creation_to_deletion(rig: Rig) -> None:
    made = await rig.provider.create_post(ALICE, PIER, EVENT_BODY)
    kept = {name: made[name] for name in EVENT_BODY}
    assert kept == EVENT_BODY
    assert made["state"] == "PROCESSING"
    assert made["createTime"] == made["updateTime"] == "2026-03-04T05:06:07.890Z"
    post_id = made["name"].rpartition("/")[2]
    rig.clock.advance(seconds=20)
    assert (await rig.provider.posts(ALICE, PIER))[0]["state"] == "LIVE"
    changed = await rig.provider.patch_post(ALICE, PIER, post_id, {"summary": "Later."}, ["summary", "callToAction"])
    assert changed["summary"] == "Later."
    assert "callToAction" not in changed
    assert changed["state"] == "PROCESSING"
    assert changed["updateTime"] == "2026-03-04T05:06:27.890Z"
    await rig.provider.delete_post(ALICE, PIER, post_id)
    with pytest.raises(ProviderError) as caught:
        await rig.provider.delete_post(ALICE, PIER, post_id)
    assert caught.value.not_found


async def test_all_pages_of_posts_are_read(rig: Rig) -> None:
    for number in range(95):
        await rig.provider.create_post(ALICE, PIER, {"topicType": "STANDARD", "summary": f"{number}"})
    posts = await rig.provider.posts(ALICE, PIER)
    assert len({post["name"] for post in posts}) == len(posts) == 107
    assert [
        call["query"].get("pageToken") is None for call in await rig.calls("localPosts") if call["method"] == "GET"
    ] == [
        True,
        False,
    ]


async def test_post_under_another_account_is_not_found(rig: Rig) -> None:
    with pytest.raises(ProviderError) as caught:
        await rig.provider.posts("accounts/2", PIER)
    assert caught.value.not_found


async def test_rejected_body_names_field_and_reason(rig: Rig) -> None:
    with pytest.raises(ProviderError) as caught:
        await rig.provider.patch_location(PIER, {"openInfo": {"status": "AJAR"}}, ["openInfo.status"])
    error = caught.value
    assert (error.reason, error.retryable, error.http_status) == ("rejected", False, 400)
    assert error.provider_code == "INVALID_ARGUMENT"
    assert error.fields == ("location.open_info.status",)
    assert "AJAR" in (error.provider_message or "")


async def test_business_rule_names_its_reason(rig: Rig) -> None:
    await rig.put_state(switches={"strict": True})
    with pytest.raises(ProviderError) as caught:
        await rig.provider.patch_location(PIER, {"profile": {"description": "see www.x.example"}}, ["profile"])
    assert caught.value.provider_reason == "PROFILE_DESCRIPTION_CONTAINS_URL"
    assert caught.value.fields == ("profile.description",)


async def test_rejected_post_names_its_field(rig: Rig) -> None:
    with pytest.raises(ProviderError) as caught:
        await rig.provider.create_post(ALICE, PIER, {"topicType": "STANDARD", "summary": "x" * 1501})
    assert caught.value.fields == ("summary",)
    assert caught.value.provider_message == "Must be at most 1500 characters"


async def test_one_token_serves_many_waiters(rig: Rig) -> None:
    await asyncio.gather(*(rig.provider.location(PIER) for _ in range(8)))
    calls = (await rig.http.get("/__emulator/requests")).json()["requests"]
    assert [call["path"] for call in calls].count("/token") == 1
    assert not any("ya29." in str(call) or "refresh_token" in str(call) for call in calls)


async def test_token_is_refreshed_before_it_expires(rig: Rig) -> None:
    await rig.provider.location(PIER)
    rig.clock.advance(seconds=3599 - 60)
    await rig.provider.location(PIER)
    assert [call["status"] for call in await rig.calls(PIER)] == [200, 200]


async def test_rejected_token_is_refreshed_once_and_the_call_repeated(rig: Rig) -> None:
    await rig.provider.location(PIER)
    await rig.http.post("/__emulator/clock", json={"advance_seconds": 4000})
    made = await rig.provider.create_post(ALICE, PIER, {"topicType": "STANDARD", "summary": "again"})
    assert made["state"] == "PROCESSING"
    assert [call["status"] for call in await rig.calls() if call["method"] == "POST"] == [401, 200]


async def test_our_own_login_failure_is_not_the_callers(rig: Rig) -> None:
    await rig.put_state(switches={"refuse_refresh": True})
    with pytest.raises(ProviderError) as caught:
        await rig.provider.location(PIER)
    error = caught.value
    assert (error.reason, error.retryable, error.http_status) == ("unavailable", False, None)
    assert error.provider_reason == "invalid_grant"


async def test_a_provider_that_rejects_every_token_is_unavailable(rig: Rig) -> None:
    await rig.fault("status", status=401, times=2)
    with pytest.raises(ProviderError) as caught:
        await rig.provider.location(PIER)
    assert (caught.value.reason, caught.value.http_status) == ("unavailable", None)
    assert (await rig.provider.location(PIER))["name"] == PIER


async def test_quotas_return_429(rig: Rig) -> None:
    await rig.put_state(switches={"edits_per_minute": 1})
    await rig.provider.patch_location(PIER, {"title": "One"}, ["title"])
    with pytest.raises(ProviderError) as caught:
        await rig.provider.patch_location(PIER, {"title": "Two"}, ["title"])
    assert (caught.value.reason, caught.value.retryable) == ("rate_limited", True)
    assert caught.value.provider_reason == "RATE_LIMIT_EXCEEDED"
    rig.clock.advance(minutes=1)
    await rig.provider.patch_location(PIER, {"title": "Two"}, ["title"])
