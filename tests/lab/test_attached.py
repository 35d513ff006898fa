"""The same lab against a deployed service: what it cannot do, and that it leaves things as they were."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from profilesvc.lab import Lab, NeedsControl, open_lab
from profilesvc.lab.undo import going_back

LOCATION = "locations/111"


@pytest.fixture
def deployed() -> Iterator[Lab]:
    """A service that is somewhere else, as far as the attached lab can tell."""
    with open_lab() as lab:
        yield lab


@pytest.fixture
def attached(deployed: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Lab:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROFILESVC_LAB__TARGET", f"{deployed.url}/")
    monkeypatch.setenv("PROFILESVC_LAB__USER_TOKEN", deployed.user_token("alice"))
    monkeypatch.setenv("PROFILESVC_LAB__LOCATION", "111")
    return open_lab()


def state_of(lab: Lab) -> list[object]:
    """Live keys, posts, the profile at the provider, the sync switch."""
    alice = lab.client.user("alice")
    return [
        alice.list_keys().credentials,
        [post.name for post in alice.iter_posts(LOCATION)],
        lab.provider.profile(LOCATION),
        [entry.syncEnabled for entry in alice.iter_locations() if entry.name == LOCATION],
        [review.reviewReply and review.reviewReply.comment for review in alice.iter_reviews(LOCATION)],
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


def test_everything_is_as_before(deployed: Lab, attached: Lab) -> None:
    before = state_of(deployed)
    use(attached)
    assert state_of(deployed) != before
    attached.close()
    assert state_of(deployed) == before


def test_what_cannot_be_taken_back_is_named(deployed: Lab, attached: Lab) -> None:
    use(attached)
    deployed.operator.logout("alice")
    with pytest.raises(RuntimeError, match=r"not as it was.*still there.*reply to review.*still live"):
        attached.close()


def test_what_needs_control_is_skipped_with_a_sentence(attached: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    assert not attached.controls("the clock")
    assert capsys.readouterr().out.startswith("Skipped here: this needs control of the clock")
    with pytest.raises(NeedsControl):
        attached.advance(hours=1)
    with pytest.raises(NeedsControl):
        attached.fault("status")
    with pytest.raises(NeedsControl):
        attached.user("bob")
    attached.close()


def test_a_bad_token_and_a_foreign_location_are_said_at_once(
    deployed: Lab, monkeypatch: pytest.MonkeyPatch, attached: Lab
) -> None:
    attached.close()
    monkeypatch.setenv("PROFILESVC_LAB__LOCATION", "locations/211")
    with pytest.raises(RuntimeError, match="no locations/211"):
        open_lab()
    monkeypatch.setenv("PROFILESVC_LAB__USER_TOKEN", "nothing")
    with pytest.raises(RuntimeError, match="USER_TOKEN is not accepted"):
        open_lab()


def test_going_back_clears_what_was_not_there() -> None:
    was = {"title": "A", "phoneNumbers": {"primaryPhone": "1"}, "same": 1, "gone": [1]}
    now = {"title": "B", "phoneNumbers": {"primaryPhone": "2", "additionalPhones": ["3"]}, "same": 1, "labels": ["x"]}
    assert going_back(now, was) == {
        "title": "A",
        "phoneNumbers": {"primaryPhone": "1", "additionalPhones": None},
        "gone": [1],
        "labels": None,
    }
