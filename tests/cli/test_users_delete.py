"""`profilesvc users delete`: count, ask, delete, and say so when it was done before."""

from typer.testing import CliRunner

from profilesvc.cli import app
from support.api import ALICE
from support.command_line import Run, create_key, printed, refused


def test_a_dry_run_counts_and_deletes_nothing(run: Run) -> None:
    create_key(run)
    counted = printed(run("users", "delete", ALICE, "--dry-run", "--json"))
    assert (counted["email"], counted["requested_at"]) == (ALICE, None)
    assert (counted["rows"]["keys"], counted["rows"]["locations"], counted["rows"]["drafts"]) == (1, 5, 0)
    text = run("users", "delete", ALICE, "--dry-run").stdout
    assert "locations" in text
    assert "drafts" not in text
    assert text.splitlines()[-1] == f"{ALICE}: would be deleted"
    assert printed(run("users", "list", "--json"))[0]["email"] == ALICE


def test_it_asks_unless_yes(run: Run) -> None:
    asked = CliRunner().invoke(app, ["users", "delete", ALICE], input="n\n")
    assert asked.exit_code == 1
    assert f"Delete {ALICE} and " in asked.output
    assert printed(run("users", "list", "--json"))[0]["email"] == ALICE
    assert CliRunner().invoke(app, ["users", "delete", ALICE], input="y\n").exit_code == 0
    assert "no active user" in refused(run("users", "token", ALICE))


def test_it_deletes_and_remembers(run: Run) -> None:
    deleted = printed(run("users", "delete", ALICE, "--yes", "--json"))
    assert deleted["requested_at"]
    listed = printed(run("users", "list", "--json"))
    assert [user["email"] for user in listed] == ["deleted-1@deleted.invalid", "bob@example.com", "carol@example.com"]
    assert f"The account of {ALICE} was deleted on " in refused(run("users", "delete", ALICE, "--yes"))
    assert "no user yan@example.com" in refused(run("users", "delete", "yan@example.com", "--yes"))
    assert "no user" in refused(run("users", "resume", "deleted-1@deleted.invalid"))
    assert printed(run("users", "add", ALICE, "--json"))["id"] == 4
