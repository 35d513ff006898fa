"""The same lab against a deployed service: what it cannot do, and that it leaves things as they were."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from profilesvc.client import ProviderFailed
from profilesvc.lab import Lab, NeedsControl, open_lab
from profilesvc.lab.deployed.undo import restoring

LOCATION = "locations/111"


@pytest.fixture
def deployed() -> Iterator[Lab]:
    """A service that the attached lab cannot distinguish from a remote one."""
    with open_lab() as lab:
        yield lab


@pytest.fixture
def attached(deployed: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Lab:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROFILESVC_LAB__TARGET", f"{deployed.url}/")
    monkeypatch.setenv("PROFILESVC_LAB__USER_TOKEN", deployed.user_token("alice"))
    monkeypatch.setenv("PROFILESVC_LAB__LOCATION", "111")
    monkeypatch.setenv("PROFILESVC_LAB__WRITE", "1")
    monkeypatch.setenv("PROFILESVC_LAB__PATIENCE_SECONDS", "0")
    return open_lab()


def state_of(lab: Lab) -> list[object]:
    """Live keys, posts, the profile at the provider, the sync switch, replies, desired values and differences."""
    alice = lab.client.user("alice")
    return [
        alice.list_keys().credentials,
        [post.name for post in alice.iter_posts(LOCATION)],
        lab.provider.profile(LOCATION),
        [entry.syncEnabled for entry in alice.iter_locations() if entry.name == LOCATION],
        [review.reviewReply and review.reviewReply.comment for review in alice.iter_reviews(LOCATION)],
        alice.compare(LOCATION).model_dump(exclude={"lastSync"}),
    ]


def use(lab: Lab) -> None:
    """All that a page may change."""
    alice = lab.client.user("alice")
    key = alice.create_key(name="Smoke", business_id=lab.business_id, assigned_location_id=lab.location)
    site = lab.client.service(key)
    site.create_post(lab.location, {"summary": "Smoke"})
    profile = {"title": "Smoke", "phoneNumbers": {"primaryPhone": "+81 45-555-0000"}, "labels": ["smoke"]}
    assert site.sync(lab.location, profile).fieldsUpdated
    alice.set_sync(lab.location, False)
    for review in list(alice.iter_reviews(lab.location))[:2]:
        assert alice.reply(lab.location, review.name, "Smoke").comment == "Smoke"


def test_everything_is_restored(deployed: Lab, attached: Lab) -> None:
    before = state_of(deployed)
    use(attached)
    assert state_of(deployed) != before
    attached.close()
    assert state_of(deployed) == before


def test_irreversible_changes_are_named(deployed: Lab, attached: Lab) -> None:
    use(attached)
    deployed.operator.logout("alice")
    with pytest.raises(RuntimeError, match=r"may not be restored.*still exists.*reply to review.*still live"):
        attached.close()


def test_control_of_a_deployed_service_is_rejected_with_a_sentence(attached: Lab) -> None:
    with pytest.raises(NeedsControl, match="this needs control of the clock"):
        attached.advance(hours=1)
    with pytest.raises(NeedsControl):
        attached.fault("status")
    with pytest.raises(NeedsControl):
        attached.user("bob")
    attached.close()


def test_a_bad_token_and_a_foreign_location_are_reported_at_once(
    deployed: Lab, monkeypatch: pytest.MonkeyPatch, attached: Lab
) -> None:
    attached.close()
    monkeypatch.setenv("PROFILESVC_LAB__LOCATION", "locations/211")
    with pytest.raises(RuntimeError, match="no locations/211"):
        open_lab()
    monkeypatch.setenv("PROFILESVC_LAB__USER_TOKEN", "nothing")
    with pytest.raises(RuntimeError, match="USER_TOKEN was rejected"):
        open_lab()


def test_a_page_only_reads_unless_it_is_allowed_to_write(deployed: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILESVC_LAB__TARGET", deployed.url)
    monkeypatch.setenv("PROFILESVC_LAB__USER_TOKEN", deployed.user_token("alice"))
    monkeypatch.setenv("PROFILESVC_LAB__LOCATION", "111")
    before = state_of(deployed)
    with open_lab() as lab:
        alice, pier = lab.user("alice"), {"locationId": LOCATION}
        review = next(lab.client.user("alice").iter_reviews(LOCATION)).name.rpartition("/")[2]
        post = next(lab.client.user("alice").iter_posts(LOCATION)).name.rpartition("/")[2]
        for method, path, query in (
            ("POST", "/api/v1/posts", pier),
            ("PATCH", f"/api/v1/posts/{post}", pier),
            ("DELETE", f"/api/v1/posts/{post}", pier),
            ("PUT", f"/api/v1/reviews/{review}/reply", pier),
            ("DELETE", f"/api/v1/reviews/{review}/reply", pier),
            ("POST", "/api/v1/sync/111", {}),
            ("POST", "/api/v1/sync/111", {"validateonly": "true"}),
            ("PATCH", "/api/v1/external-business/locations/111/sync", {}),
            ("POST", "/api/v1/external-business/locations/111/refresh-verification", {}),
            ("POST", "/api/v2/whatever-comes-next", {}),
        ):
            with pytest.raises(NeedsControl, match="this needs SMOKE_WRITE=1"):
                alice.request(method, path, params=query, json={"summary": "Smoke", "title": "Smoke"})
        told = alice.post("/api/v1/sync/111", params={"validateOnly": "true"}, json={"title": "Smoke"})
        assert told.json()["data"]["fieldsUpdated"] == ["title"]
        assert {call.method for call in lab.calls()} == {"GET", "POST"}
    assert state_of(deployed) == before


def test_a_page_makes_only_reversible_changes(attached: Lab) -> None:
    alice, pier = attached.user("alice"), {"locationId": LOCATION}
    post = next(attached.client.user("alice").iter_posts(LOCATION)).name.rpartition("/")[2]
    key = {"name": "Smoke", "business_id": 10, "assigned_location_id": "locations/112"}
    for method, path, query, body, why in (
        ("DELETE", f"/api/v1/posts/{post}", pier, {}, "other posts"),
        ("PATCH", f"/api/v1/posts/{post}", pier, {"summary": "Smoke"}, "other posts"),
        ("POST", "/api/v1/posts", {"locationId": "locations/112"}, {"summary": "Smoke"}, "another location"),
        ("POST", "/api/v1/sync/112", {}, {"title": "Smoke"}, "another location"),
        ("POST", "/api/v1/sync/locations%2F112", {}, {"title": "Smoke"}, "another location"),
        ("POST", "/api/v1/developer/credentials", {}, key, "another location"),
        ("DELETE", "/api/v1/developer/credentials/svcid_1_1_demo", {}, {}, "other keys"),
        ("POST", "/api/v1/sync/111", {}, {"title": "Smoke", "wifi": {"key": 1}}, "no sync can undo wifi.key"),
        ("POST", "/api/v1/sync/111", {}, {"languageCode": "fr"}, "no sync can undo languageCode"),
    ):
        with pytest.raises(NeedsControl, match=why):
            alice.request(method, path, params=query, json=body)
    attached.close()


def test_desired_values_are_restored_even_if_the_provider_rejects_syncs(deployed: Lab, attached: Lab) -> None:
    before = state_of(deployed)
    deployed.fault("status", status=503, times=999, method="PATCH")
    with pytest.raises(ProviderFailed):
        attached.client.user("alice").sync(LOCATION, {"title": "Smoke", "profile": {"description": "Smoke"}})
    assert deployed.client.user("alice").compare(LOCATION).differences
    with suppress(RuntimeError):  # it cannot be sure of the profile at the provider
        attached.close()
    deployed.provider.heal()
    assert state_of(deployed) == before


def test_a_post_whose_response_was_lost_is_found_and_removed(
    deployed: Lab, attached: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, alice = state_of(deployed), attached.user("alice")
    send = httpx.HTTPTransport.handle_request

    def lose(self: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        send(self, request).read()
        raise httpx.ReadError("lost")

    with monkeypatch.context() as network:
        network.setattr(httpx.HTTPTransport, "handle_request", lose)
        key = {"name": " Smoke ", "business_id": attached.business_id, "assigned_location_id": "111"}
        for path, query, body in (
            ("/api/v1/developer/credentials", {}, key),
            ("/api/v1/posts", {"locationId": "111"}, {"summary": "Smoke"}),
            ("/api/v1/sync/111", {}, {"title": "Smoke"}),
        ):
            with pytest.raises(httpx.ReadError):
                alice.post(path, params=query, json=body)
    made = state_of(deployed)
    assert len(made[0]) == len(before[0]) + 1  # type: ignore[arg-type]  # lists, both
    assert len(made[1]) == len(before[1]) + 1  # type: ignore[arg-type]
    attached.close()
    assert state_of(deployed) == before


def test_a_location_that_could_not_be_restored_is_rejected(
    deployed: Lab, attached: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    attached.close()
    alice = deployed.client.user("alice")
    deployed.provider.change(LOCATION, title="Changed there")
    with pytest.raises(RuntimeError, match="differs from the provider at title"):
        open_lab()
    alice.set_sync(LOCATION, False)
    with pytest.raises(RuntimeError, match="its sync is off"):
        open_lab()
    monkeypatch.setenv("PROFILESVC_LAB__WRITE", "0")
    open_lab().close()
    monkeypatch.setenv("PROFILESVC_LAB__LOCATION", "locations/119")
    with pytest.raises(RuntimeError, match="belongs to no business"):
        open_lab()
    key = alice.create_key(name="Plugin", business_id=10, assigned_location_id=LOCATION)
    token = deployed.service(key).headers["Authorization"].removeprefix("Bearer ")
    monkeypatch.setenv("PROFILESVC_LAB__USER_TOKEN", token)
    with pytest.raises(RuntimeError, match="not a user's token"):
        open_lab()
    monkeypatch.setenv("PROFILESVC_LAB__TARGET", f"{deployed.url}/dashboard")
    with pytest.raises(RuntimeError, match="not in this service's format"):
        open_lab()
    monkeypatch.setenv("PROFILESVC_LAB__TARGET", "http://127.0.0.1:1")
    with pytest.raises(RuntimeError, match="does not respond"):
        open_lab()


def test_restoring_clears_new_fields() -> None:
    was = {"title": "A", "phoneNumbers": {"primaryPhone": "1"}, "same": 1, "gone": [1], "cleared": None}
    touched = {"title": "B", "phoneNumbers": {"primaryPhone": "2", "additionalPhones": ["3"]}, "labels": ["x"]}
    assert restoring({**touched, "gone": None, "cleared": {"x": 1}}, was) == {
        "title": "A",
        "phoneNumbers": {"primaryPhone": "1", "additionalPhones": None},
        "labels": None,
        "gone": [1],
        "cleared": None,
    }
