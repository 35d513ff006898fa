"""A process whose pepper is not the one of its database does not start, and an operator can replace the pepper."""

import asyncio
import shlex
from pathlib import Path

import pytest

from conftest import make_settings
from profilesvc.bootstrap import Runtime, open_services
from profilesvc.operations import readiness
from profilesvc.services import pepper
from support.command_line import Run, create_key, printed, refused
from support.pages.blocks import proven_by

FIRST, OTHER = "the pepper of the first start", "another pepper, of a wrong file"


@pytest.fixture
def peppered(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Commands with a pepper on a database without keys."""
    monkeypatch.setenv("PROFILESVC_DATA_DIR", "new")
    monkeypatch.setenv("PROFILESVC_SECRET_PEPPER", FIRST)
    printed(run("users", "list", "--json"))
    return run


@pytest.mark.parametrize(
    ("wrong", "words"), [(OTHER, "is not the one with which"), ("", "is not set, and it was set when")]
)
def test_a_wrong_pepper_is_one_line_that_names_the_setting(
    run: Run, monkeypatch: pytest.MonkeyPatch, wrong: str, words: str
) -> None:
    monkeypatch.setenv("PROFILESVC_SECRET_PEPPER", FIRST)
    printed(run("keys", "replace-pepper", "--yes", "--json"))
    create_key(run)
    monkeypatch.setenv("PROFILESVC_SECRET_PEPPER", wrong)
    for command in (["serve", "--port", "0"], ["users", "list"]):
        line = refused(run(*command))
        assert f"PROFILESVC_SECRET_PEPPER {words} the client secrets of this database were stored" in line
        assert FIRST not in line
        assert OTHER not in line
    monkeypatch.setenv("PROFILESVC_SECRET_PEPPER", FIRST)
    assert run("users", "list").exit_code == 0


def test_a_pepper_that_was_added_after_the_first_key_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    create_key(run)
    monkeypatch.setenv("PROFILESVC_SECRET_PEPPER", OTHER)
    assert "PROFILESVC_SECRET_PEPPER is not the one" in refused(run("users", "list"))


def test_before_the_first_key_a_new_pepper_replaces_the_old_one(peppered: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (OTHER, "", FIRST):
        monkeypatch.setenv("PROFILESVC_SECRET_PEPPER", value)
        assert peppered("users", "list").exit_code == 0


def test_the_page_replaces_a_pepper(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    create_key(run)
    monkeypatch.setenv("PROFILESVC_SECRET_PEPPER", OTHER)
    [block] = proven_by("docs/operations.md", "test_the_page_replaces_a_pepper")
    program, *words = shlex.split(block.text)
    assert program == "profilesvc"
    assert printed(run(*words, "--json"))["ended_secrets"] >= 1
    assert run("users", "list").exit_code == 0
    monkeypatch.delenv("PROFILESVC_SECRET_PEPPER")
    assert "is not set, and it was set when" in refused(run("users", "list"))


def test_the_page_asks_before_it_ends_all_secrets(run: Run) -> None:
    create_key(run)
    assert run("keys", "replace-pepper").exit_code == 1


def test_a_process_is_not_ready_after_its_pepper_was_replaced(tmp_path: Path) -> None:
    async def replaced() -> tuple[bool, bool]:
        other = make_settings(tmp_path, secret_pepper=OTHER)
        async with open_services(make_settings(tmp_path), Runtime(), provider=False) as services:
            before = (await readiness.checks(services))["pepper"]
            async with open_services(other, Runtime(accepts_new_pepper=True), provider=False) as renewed:
                await pepper.replace(renewed)
            return before, (await readiness.checks(services))["pepper"]

    assert asyncio.run(replaced()) == (True, False)
