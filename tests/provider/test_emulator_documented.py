"""The strict emulator holds the provider's documentation: the cases that the service checks before a push (D-124)."""

import pytest

from profilesvc.emulator.errors import snake
from support.cases.profiles import INVALID, VALID, Case
from support.provider.rig import Rig, refusal

PIER = "locations/111"


async def _validated(emulator: Rig, case: Case) -> tuple[str, str] | None:
    """The refusal of an update, or None; nothing is changed."""
    body = {name: value for name, value in case.body.items() if value is not None}
    query = {"updateMask": ",".join(case.body), "validateOnly": "true"}
    answer = await emulator.http.patch(f"/v1/{PIER}", params=query, json=body)
    return None if answer.status_code == 200 else refusal(answer)


@pytest.fixture
async def strict(emulator: Rig) -> Rig:
    await emulator.put_state(switches={"strict": True})
    return emulator


@pytest.mark.parametrize("case", VALID)
async def test_a_documented_value_is_accepted(strict: Rig, case: Case) -> None:
    assert await _validated(strict, case) is None


@pytest.mark.parametrize("case", INVALID)
async def test_a_value_that_the_documentation_rejects_is_rejected(strict: Rig, case: Case) -> None:
    named, more = await _validated(strict, case) or ("", "")
    names = ".".join(snake(name) for name in case.field.split(".") if not name.isdecimal())
    if case.reason:
        assert (named, more) == (case.reason, names)
    else:
        assert named.removeprefix("location.") == names


async def test_stored_values_do_not_block_the_edit_of_another_field(strict: Rig) -> None:
    odd = {"websiteUri": "x", "phoneNumbers": {"primaryPhone": "call me"}, "labels": ["x"] * 20}
    await strict.put_state(locations={PIER: odd})
    assert await _validated(strict, Case({"title": "New"})) is None
    assert (await strict.read(PIER, "websiteUri,phoneNumbers,labels")).json() == odd


async def test_a_validation_counts_neither_as_an_edit_nor_as_an_update(strict: Rig) -> None:
    await strict.put_state(switches={"edits_per_minute": 1, "updates_per_day": 1})
    for _ in range(3):
        assert await _validated(strict, Case({"title": "New"})) is None
    assert (await strict.patch(PIER, {"title": "New"}, "title")).status_code == 200
    assert (await strict.patch(PIER, {"title": "Newer"}, "title")).status_code == 429
