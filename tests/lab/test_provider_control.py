"""The provider's side of the lab: what pages about faults, reviews and drift are made of."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from profilesvc.client import ProviderFailed
from profilesvc.lab import Lab, open_lab
from profilesvc.provider.breaker import COOL_DOWN_MS
from support.waiting import in_time

TOLD = {
    "status": ("unavailable", True),
    "delay": ("timeout", True),
    "broken_body": ("unavailable", True),
    "truncated": ("unavailable", True),
    "disconnect": ("unavailable", True),
    "huge": ("unavailable", False),
    "redirect": ("unavailable", False),
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with pytest.MonkeyPatch.context() as patch, open_lab(provider={"timeout_seconds": 3.0}) as opened:
        patch.chdir(tmp_path_factory.mktemp("lab"))
        yield opened


@pytest.mark.parametrize("kind", TOLD)
def test_each_kind_of_fault_takes_little_real_time_and_no_restart(lab: Lab, kind: str) -> None:
    alice = lab.client.user("alice")
    with in_time(15, "a failure and a comparison"):
        lab.fault(kind, times=99, seconds=30)
        with pytest.raises(ProviderFailed) as caught:
            alice.compare(lab.location)
        assert (caught.value.details["reason"], caught.value.retryable) == TOLD[kind]
        lab.provider.heal()
        lab.advance(milliseconds=COOL_DOWN_MS)
        assert alice.compare(lab.location).provider


def test_a_call_is_held_until_the_provider_heals() -> None:
    with open_lab(provider={"timeout_seconds": 60.0}) as lab, ThreadPoolExecutor(1) as pool:
        alice = lab.user("alice")
        lab.fault("hold")
        under_way = pool.submit(alice.get, "/api/v1/sync/comparison/111")
        lab.provider.wait_for_faults()
        assert not under_way.done()
        lab.provider.heal()
        assert under_way.result().status_code == 200


def test_short_faults_are_not_noticed(lab: Lab) -> None:
    lab.fault("flapping", times=2)
    assert lab.client.user("alice").compare(lab.location).provider
    assert [line.rpartition(" ")[2] for line in lab.calls()[-1].provider] == ["503", "200"]


def test_customers_write_reviews_and_replies_are_seen_at_the_provider(lab: Lab) -> None:
    alice = lab.client.user("alice")
    name = lab.provider.write_review(lab.location, "ONE", "Closed on a Monday.")
    assert next(alice.iter_reviews(lab.location)).name == name
    alice.reply(lab.location, name, "Sorry! We open at ten.")
    document = lab.provider.document(name)
    assert document["name"] == f"accounts/1/{name}"
    assert document["reviewReply"]["comment"] == "Sorry! We open at ten."
    with pytest.raises(ValueError, match="no review"):
        lab.provider.document(f"{lab.location}/reviews/0")


def test_a_dry_run_reads_and_validates(lab: Lab) -> None:
    alice, before = lab.client.user("alice"), lab.provider.profile(lab.location)
    told = alice.preview_sync(lab.location, {"title": "Other", "wifi": True})
    assert (told.fieldsUpdated, told.fieldsFiltered, told.checked) == (["title"], ["wifi"], "provider")
    assert lab.provider.profile(lab.location) == before
    calls = [line for line in lab.calls()[-1].provider if "/token" not in line]  # the first request gets one
    assert [line.partition(" ")[0] for line in calls] == ["GET", "PATCH"]
