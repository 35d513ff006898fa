"""D-90: the packaged catalogue, and files that replace it."""

from pathlib import Path

import pytest

from profilesvc.domain.plans import WRITABLE, Plan, load_catalogue

ROW = """
display_name = "Solo"
sync = true
posts = false
reviews = false
monthly_posts = 0
locations = 1
live_keys_per_location = 2
"""


def test_packaged_catalogue_is_the_table() -> None:
    catalogue = load_catalogue(None)
    rows = [
        (p.name, p.display_name, p.sync, p.posts, p.reviews, p.monthly_posts, p.locations) for p in catalogue.values()
    ]
    assert rows == [
        ("starter", "Starter", True, False, False, 0, 1),
        ("growth", "Growth", True, False, True, 0, 3),
        ("pro", "Pro", True, True, True, 1_000, 10),
        ("agency", "Agency", True, True, True, 10_000, 500),
    ]
    assert {plan.live_keys_per_location for plan in catalogue.values()} == {20}


def test_a_plan_names_its_syncable_fields() -> None:
    catalogue = load_catalogue(None)
    starter, growth = catalogue["starter"].syncable, catalogue["growth"].syncable
    assert starter == ("title", "storefrontAddress", "phoneNumbers", "regularHours", "websiteUri")
    assert growth is not None
    assert growth[:5] == starter
    assert set(growth[5:]) == {
        "specialHours",
        "moreHours",
        "profile",
        "categories",
        "openInfo",
        "labels",
        "serviceArea",
    }
    assert catalogue["pro"].syncable is catalogue["agency"].syncable is None
    assert not {"name", "languageCode", "metadata"} & set(WRITABLE)


def test_a_file_replaces_the_catalogue(tmp_path: Path) -> None:
    path = tmp_path / "plans.toml"
    path.write_text(f'[solo]{ROW}syncable = ["title"]\n[duo]{ROW}')
    catalogue = load_catalogue(path)
    assert list(catalogue) == ["solo", "duo"]
    assert catalogue["solo"].syncable == ("title",)
    assert "starter" not in catalogue
    with pytest.raises(KeyError, match="there is no plan starter; the catalogue has solo, duo"):
        _ = catalogue["starter"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no plan"),
        ("[solo", "table declaration"),
        ("solo = 1", "solo must be a table"),
        (f"[solo]{ROW}price = 3", "solo.price: is not a known field"),
        (f"[solo]{ROW}".replace("sync = true", 'sync = "yes"'), "solo.sync: must be true or false"),
        (f"[solo]{ROW}".replace("locations = 1", "locations = -1"), "solo.locations: must be at least 0"),
        ('[solo]\ndisplay_name = "Solo"', "solo.sync: is required"),
        (f'[solo]{ROW}syncable = ["metadata"]', "solo.syncable: metadata is not a writable field"),
        (f'[solo]{ROW}syncable = ["attributes"]', "solo.syncable: attributes is not a writable field"),
    ],
)
def test_an_invalid_file_is_one_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "plans.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"^plan catalogue ") as error:
        load_catalogue(path)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="absent"):
        load_catalogue(tmp_path / "absent.toml")


def test_a_plan_cannot_be_changed() -> None:
    plan = load_catalogue(None)["pro"]
    with pytest.raises(ValueError, match="frozen"):
        plan.locations = 5  # type: ignore[misc]
    assert isinstance(plan, Plan)
