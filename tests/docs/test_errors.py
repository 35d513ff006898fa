"""docs/errors.md and docs/reference.md: each code and each number on them is the one of the code."""

import json
import re

import httpx
import pytest

from profilesvc.client.retries import Retries
from profilesvc.contract.errors import CATALOGUE, ErrorKind, Forbidden
from profilesvc.domain.time import DAY
from profilesvc.services import idempotency
from profilesvc.services.sync import LOCK_WAIT_SECONDS
from support.pages.blocks import proven_by
from support.pages.tables import WITHOUT_RECIPE, retry_of
from support.repository import DOCS, ROOT, sections

ERRORS = sections(DOCS / "errors.md")
CONTRACT = sections(DOCS / "api-contract.md")["error-catalogue"]


def test_every_code_has_a_section_with_advice() -> None:
    described = {name: text for name, text in ERRORS.items() if name.upper() in CATALOGUE}
    assert {name.upper() for name in described} == CATALOGUE.keys()
    assert [name for name, text in described.items() if "**Do:**" not in text] == []


@pytest.mark.parametrize("code", CATALOGUE)
def test_a_code_is_described_with_the_details_of_the_contract(code: str) -> None:
    (row,) = re.findall(rf"^\| `{code}` \|.*\|(.*)\|$", CONTRACT, re.MULTILINE)
    named = set(re.findall(r"`([a-z_]+|[a-z]+[A-Z]\w+)`", row))
    assert named <= set(re.findall(r"`([\w.]+)`", ERRORS[code.lower()])) | {"limit"}


@pytest.mark.parametrize("kind", CATALOGUE.values(), ids=CATALOGUE)
def test_the_retries_of_the_catalogue_are_those_of_our_client(kind: ErrorKind) -> None:
    assert kind.retry == retry_of(kind.code)


def test_the_clients_have_the_reasons_of_the_page() -> None:
    source = (ROOT / "clients/typescript/src/errors.ts").read_text("utf-8")
    typed = re.search(r"AUTH_INSUFFICIENT_PERMISSIONS: \{.*?reason\?:(.*?);", source, re.DOTALL)
    assert typed
    assert re.findall(r'"(\w+)"', typed[1]) == [reason.value for reason in Forbidden]


def test_every_code_has_a_recipe_whose_output_is_the_code() -> None:
    """tests/docs/test_pages.py runs the recipes."""
    recipes = sections(DOCS / "test-errors.md")
    for code in CATALOGUE:
        outputs = re.findall(r"<!-- output -->\n```text\n(\w+)\n", recipes.get(code.lower(), ""))
        assert outputs == ([] if code in WITHOUT_RECIPE else [code]), code
    assert WITHOUT_RECIPE.keys() <= CATALOGUE.keys()


async def test_a_failure_has_the_form_of_the_page(alice: httpx.AsyncClient) -> None:
    (block,) = proven_by("docs/errors.md", "test_a_failure_has_the_form_of_the_page")
    failure = await alice.get("/api/v1/external-business/locations", params={"limit": "0"})
    assert failure.json() == json.loads(block.text)


def test_the_numbers_of_the_pages_are_those_of_the_code() -> None:
    assert idempotency.RETENTION == DAY
    policy = Retries()
    assert (policy.attempts, policy.budget, policy.first, policy.longest) == (4, 20, 0.25, 5)
    assert LOCK_WAIT_SECONDS == 10
    errors = (DOCS / "errors.md").read_text("utf-8")
    for number in ("at most 0.25 s", "up to 5 s", "at\nmost 4 attempts", "waits up to 10 seconds"):
        assert number in errors
    assert "kept for 24 hours" in (DOCS / "reference.md").read_text("utf-8")
    assert "give up after 20 seconds" in (DOCS / "errors.md").read_text("utf-8")
