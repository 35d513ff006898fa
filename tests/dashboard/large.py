"""The oldest data that the limits allow: an owner with as many drafts, posts and events as there may be."""

import json

from benchmarks import bulk

from profilesvc.domain.time import MINUTE, month_start
from profilesvc.services.context import Services
from profilesvc.storage.tables import metadata

DRAFTS, POSTS, EVENTS = 490, 5_000, 12_000
_TEXT = "Freshly roasted beans, and \u00e9clairs. " * 550  # nearly the 20,000 characters of a draft


async def fill(services: Services, owner_id: int, key_id: int, location: str = "locations/111") -> None:
    """Store it. All posts are of one day."""
    now = services.clock.now()
    document = json.dumps({"topicType": "STANDARD", "languageCode": "en", "summary": _TEXT})
    fields = json.dumps({"kind": "STANDARD", "summary": _TEXT})
    drafts = (
        (owner_id, f"draft{number}", location, "scheduled", fields, document, now + number * MINUTE, "UTC", now)
        for number in range(DRAFTS)
    )
    columns = "owner_id id location_name state fields document due_at zone updated_at"
    await bulk.load(services.storage, metadata.tables["drafts"], columns.split(), drafts)
    post = {"topicType": "STANDARD", "languageCode": "en", "summary": _TEXT[:1500], "state": "LIVE"}
    posts = (
        (
            owner_id,
            location,
            f"p{number}",
            now - number,
            "LIVE",
            now,
            json.dumps({**post, "name": f"{location}/localPosts/p{number}"}),
        )
        for number in range(POSTS)
    )
    columns = "owner_id location_name post_id created_at state read_at document"
    await bulk.load(services.storage, metadata.tables["posts"], columns.split(), posts)
    events = (
        (
            owner_id,
            at := now - number * MINUTE,
            month_start(at),
            "key.changed",
            key_id,
            "user:1",
            "192.0.2.0/24",
            "x" * 16,
            1,
        )
        for number in range(EVENTS)
    )
    columns = "owner_id at month event key_id actor ip_prefix request_id times"
    await bulk.load(services.storage, metadata.tables["audit"], columns.split(), events)
