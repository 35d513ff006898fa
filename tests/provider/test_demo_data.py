"""The demo data is as its page describes it, in the provider's own format."""

from collections import Counter
from typing import Any

import pytest

from profilesvc.contract.provider.location import Location
from profilesvc.contract.provider.post import LocalPost
from profilesvc.fixtures import fixture_path, load_world

WORLD = load_world()
LOCATIONS = {place["profile"]["name"]: place for place in WORLD["locations"]}


@pytest.mark.parametrize("name", LOCATIONS)
def test_profile_is_a_provider_location(name: str) -> None:
    place = LOCATIONS[name]
    Location.model_validate({**place["profile"], **place["provider_profile"]})
    Location.model_validate(place["profile"])
    Location.model_validate(place["last_sync"] or {})
    assert place["profile"]["storefrontAddress"]["regionCode"]


@pytest.mark.parametrize("name", LOCATIONS)
def test_posts_are_provider_posts_of_their_location(name: str) -> None:
    place = LOCATIONS[name]
    for post in place["posts"]:
        LocalPost.model_validate(post)
        assert post["name"].startswith(f"{place['account']}/{name}/localPosts/")


def test_users_businesses_and_flags_are_those_of_the_page() -> None:
    assert [(user["id"], user["email"], user["plan"]) for user in WORLD["users"]] == [
        (1, "alice@example.com", "pro"),
        (2, "bob@example.com", "pro"),
        (3, "carol@example.com", "starter"),
    ]
    assert [(firm["id"], firm["user_id"]) for firm in WORLD["businesses"]] == [(10, 1), (11, 1), (20, 2), (30, 3)]
    flags = {
        name: (place["user_id"], place["business_id"], _verified(place), place["sync_enabled"])
        for name, place in LOCATIONS.items()
    }
    assert flags == {
        "locations/111": (1, 10, True, True),
        "locations/112": (1, 10, True, False),
        "locations/113": (1, 10, False, False),
        "locations/114": (1, 11, True, True),
        "locations/119": (1, None, True, False),
        "locations/211": (2, 20, True, True),
        "locations/219": (2, None, True, False),
        "locations/311": (3, 30, True, True),
    }


def _verified(place: dict[str, Any]) -> bool:
    """Said twice in the provider's format, and the same both times."""
    said: bool = place["voice_of_merchant"].get("hasVoiceOfMerchant", False)
    assert place["profile"]["metadata"].get("hasVoiceOfMerchant", False) == said
    return said


def test_posts_are_counted_as_on_the_page() -> None:
    pier = LOCATIONS["locations/111"]["posts"]
    assert Counter(post["state"] for post in pier) == {"LIVE": 11, "PROCESSING": 1}
    assert {post["topicType"] for post in pier} == {"STANDARD", "EVENT", "OFFER", "ALERT"}
    assert len(LOCATIONS["locations/211"]["posts"]) == 3


def test_bookshop_phone_changed_at_the_provider_since_the_last_sync() -> None:
    books = LOCATIONS["locations/114"]
    assert books["provider_profile"]["phoneNumbers"] != books["last_sync"]["phoneNumbers"]
    assert books["last_sync"]["phoneNumbers"] == books["profile"]["phoneNumbers"]


def test_profiles_come_from_several_countries_and_scripts() -> None:
    regions = {place["profile"]["storefrontAddress"]["regionCode"] for place in LOCATIONS.values()}
    assert len(regions) >= 3
    assert not fixture_path("world.json").read_text(encoding="utf-8").isascii()


def test_missing_fixture_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="fixture nothing"):
        fixture_path("nothing.json")
