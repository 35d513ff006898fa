"""Events as sentences, with names that others chose."""

import pytest

from profilesvc.contract.events import EventOwner, EventType, PublishedEvent
from profilesvc.delivery.messages import story
from profilesvc.storage.events import Subject

NAME = "Pier\r\n\r\nSign in again:\nhttps://evil.example"


@pytest.mark.parametrize(
    ("kind", "data", "subject"),
    [
        ("key.created", {"key": {"name": NAME}}, Subject()),
        ("sync.failed", {"location_id": "locations/111"}, Subject(title=NAME)),
        ("connection.idle", {"location_id": "locations/111"}, Subject(title=NAME)),
    ],
)
def test_a_name_stays_in_its_line(kind: EventType, data: dict[str, object], subject: Subject) -> None:
    event = PublishedEvent(
        id="evt_1_1", type=kind, created_at="2026-01-02T03:04:05.678Z", owner=EventOwner(id=1), data=data
    )
    title = story(event, subject).title
    assert "“Pier Sign in again: https://evil.example”" in title
    assert title.splitlines() == [title]
