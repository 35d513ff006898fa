"""The provider's quota through the client: its own 429, and the refusals before it."""

from profilesvc.domain.time import FrozenClock
from profilesvc.provider.quota import Counters, Quota
from profilesvc.settings import ProviderSettings
from support.provider.rig import Rig, refused_by
from support.work import counted

PIER, OTHER, ALICE = "locations/111", "locations/112", "accounts/1"
SAMPLE = {  # format.md, 10.3
    "error": {
        "code": 429,
        "message": "Quota exceeded for quota metric 'Requests' and limit 'Requests per minute' of service "
        "'mybusinessbusinessinformation.googleapis.com' for consumer 'project_number:1'.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "RATE_LIMIT_EXCEEDED",
                "domain": "googleapis.com",
                "metadata": {
                    "service": "mybusinessbusinessinformation.googleapis.com",
                    "quota_metric": "mybusinessbusinessinformation.googleapis.com/default_requests",
                    "quota_limit": "DefaultRequestsPerMinutePerProject",
                    "quota_location": "global",
                    "quota_limit_value": "300",
                    "quota_unit": "1/min/{project}",
                    "consumer": "projects/1",
                },
            }
        ],
    }
}


async def test_emulator_refuses_in_the_providers_words(emulator: Rig) -> None:
    await emulator.put_state(switches={"requests_per_minute": 300})
    for _ in range(300):
        assert (await emulator.read(PIER, "title")).status_code == 200
    refused = await emulator.read(PIER, "title")
    assert (refused.status_code, refused.json()) == (429, SAMPLE)
    assert (await emulator.http.get(f"/v1/{PIER}/VoiceOfMerchantState")).status_code == 200


async def test_emulator_limits_updates_per_day(emulator: Rig) -> None:
    await emulator.put_state(switches={"updates_per_day": 2})
    for name in (PIER, OTHER):
        assert (await emulator.patch(name, {"title": "New"}, "title")).status_code == 200
    error = (await emulator.patch(PIER, {"title": "Newer"}, "title")).json()["error"]
    assert error["details"][0]["metadata"]["quota_unit"] == "1/d/{project}"
    assert (await emulator.read(PIER)).json()["title"] == "New"
    await emulator.http.post("/__emulator/clock", json={"advance_seconds": 86_400})
    await emulator.log_in()
    assert (await emulator.patch(PIER, {"title": "Newer"}, "title")).status_code == 200


async def test_429_of_the_project_is_reported(emulator: Rig) -> None:
    await emulator.put_state(switches={"requests_per_minute": 1})
    await emulator.provider.location(PIER)
    error = await refused_by(emulator.provider.location(PIER))
    assert (error.reason, error.provider_reason, error.retryable) == ("rate_limited", "RATE_LIMIT_EXCEEDED", True)


async def test_request_over_the_quota_does_not_reach_the_provider(emulator: Rig) -> None:
    provider = emulator.adapter(requests_per_minute=2)
    await provider.location(PIER)
    await provider.for_owner(7).location(PIER)
    sent = await emulator.calls(PIER)
    error = await refused_by(provider.for_owner(8).location(PIER))
    assert (error.reason, error.retryable, error.reached, error.retry_after) == ("quota", True, False, 60)
    assert await emulator.calls(PIER) == sent
    await provider.accounts()  # each API has its own
    emulator.clock.advance(minutes=1)
    await provider.location(PIER)


async def test_refusals_do_not_open_the_breaker(emulator: Rig) -> None:
    provider = emulator.adapter(requests_per_minute=1)
    await provider.location(PIER)
    for _ in range(20):
        assert (await refused_by(provider.location(PIER))).reason == "quota"
    emulator.clock.advance(minutes=1)
    await provider.location(PIER)


async def test_updates_per_day_are_refused_by_the_client(emulator: Rig) -> None:
    provider = emulator.adapter(updates_per_day=1)
    await provider.patch_location(PIER, {"title": "New"}, ["title"])
    error = await refused_by(provider.patch_location(OTHER, {"title": "New"}, ["title"]))
    assert (error.reason, error.retry_after) == ("quota", 86_400)
    await provider.create_post(ALICE, PIER, {"topicType": "STANDARD", "summary": "a post is no update"})


async def test_token_that_is_replaced_costs_a_second_request(emulator: Rig) -> None:
    provider = emulator.adapter(requests_per_minute=2, owner_share_percent=100)
    await emulator.fault("status", status=401, match={"path": ".*/locations/111"})
    await provider.location(PIER)
    assert (await refused_by(provider.location(PIER))).reason == "quota"


async def test_a_turn_costs_as_little_after_ten_thousand(clock: FrozenClock) -> None:
    quota = Quota(ProviderSettings(requests_per_minute=100_000), Counters.in_memory(clock), ("posts",))
    for number in range(10_000):
        await quota.turn("posts", number % 500, 1.0)
    with counted() as work:
        for number in range(500):
            await quota.turn("posts", number, 1.0)
    assert work.calls / 500 < 500  # a call by httpx makes thousands
