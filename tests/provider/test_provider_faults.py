"""The client's errors for a failing provider, over both transports."""

import pytest

from profilesvc.provider.port import ProviderError
from support.provider.rig import Rig

PIER, ALICE = "locations/111", "accounts/1"
POST = {"topicType": "STANDARD", "summary": "once"}


async def _error(rig: Rig) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await rig.provider.location(PIER)
    return caught.value


@pytest.mark.parametrize(
    ("status", "reason", "retryable"),
    [
        (400, "rejected", False),
        (403, "rejected", False),
        (404, "rejected", False),
        (409, "rejected", False),
        (412, "rejected", False),
        (429, "rate_limited", True),
        (500, "unavailable", True),
        (502, "unavailable", True),
        (503, "unavailable", True),
    ],
)
async def test_status_is_mapped(rig: Rig, status: int, reason: str, retryable: bool) -> None:
    await rig.fault("status", status=status, times=3, reason="STALE_DATA", message="words")
    error = await _error(rig)
    assert (error.reason, error.retryable, error.http_status) == (reason, retryable, status)
    assert (error.provider_reason, error.provider_message) == ("STALE_DATA", "words")


@pytest.mark.parametrize(
    ("kind", "retryable"),
    [("broken_body", True), ("truncated", True), ("disconnect", True), ("huge", False), ("redirect", False)],
)
async def test_unreadable_response_is_unavailable(rig: Rig, kind: str, retryable: bool) -> None:
    await rig.fault(kind, times=3)
    error = await _error(rig)
    assert (error.reason, error.retryable) == ("unavailable", retryable)


@pytest.mark.parametrize("kind", ["status", "broken_body", "truncated", "disconnect"])
async def test_a_passing_failure_is_retried_for_reads_and_masked_patches(rig: Rig, kind: str) -> None:
    await rig.fault(kind, times=2)
    assert (await rig.provider.location(PIER))["name"] == PIER
    await rig.fault(kind, times=1, after=True)
    assert (await rig.provider.patch_location(PIER, {"title": "New"}, ["title"]))["title"] == "New"


@pytest.mark.parametrize("kind", ["status", "broken_body", "disconnect"])
async def test_a_post_is_never_created_twice(rig: Rig, kind: str) -> None:
    await rig.fault(kind, match={"method": "POST", "path": "/v4/"}, after=True)
    with pytest.raises(ProviderError) as caught:
        await rig.provider.create_post(ALICE, PIER, POST)
    assert caught.value.reason == "unavailable"
    summaries = [post["summary"] for post in await rig.provider.posts(ALICE, PIER)]
    assert summaries.count("once") == 1


async def test_slow_response_is_a_timeout(rig: Rig) -> None:
    await rig.provider.location(PIER)
    await rig.fault("delay", seconds=1, times=1)
    with pytest.raises(ProviderError) as caught:
        await rig.adapter(timeout_seconds=0.4).location(PIER)
    assert (caught.value.reason, caught.value.retryable) == ("timeout", True)


async def test_a_closed_port_is_unavailable(rig: Rig) -> None:
    with pytest.raises(ProviderError) as caught:
        await rig.adapter(information_url="http://127.0.0.1:1/nowhere").location(PIER)
    assert caught.value.reason in ("unavailable", "rejected")  # in the process every host is the emulator


async def test_token_endpoint_that_fails_is_unavailable(rig: Rig) -> None:
    await rig.fault("status", status=503, match={"path": "/token"}, times=3)
    assert (await _error(rig)).retryable
    await rig.fault("broken_body", match={"path": "/token"}, times=3)
    error = await _error(rig)
    assert (error.reason, error.retryable) == ("unavailable", True)


async def test_html_404_is_rejected_and_not_a_missing_resource(rig: Rig) -> None:
    with pytest.raises(ProviderError) as caught:
        await rig.adapter(information_url=f"{rig.http.base_url}/v9").location(PIER)
    assert (caught.value.reason, caught.value.http_status, caught.value.not_found) == ("rejected", 404, False)
