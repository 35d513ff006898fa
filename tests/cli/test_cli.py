"""Every command in this process: what it prints, as text and as JSON, and how it refuses."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from typer.main import get_command

from profilesvc import __version__
from profilesvc.cli import app
from support.api import ALICE
from support.command_line import Run, create_key, printed, refused
from support.program import COMMAND, environment


def _commands(command: Any, *before: str) -> Iterator[tuple[str, ...]]:
    """The words of every command and group."""
    yield before
    for name, each in getattr(command, "commands", {}).items():
        yield from _commands(each, *before, name)


def test_the_list_of_users_is_a_table_or_json(run: Run) -> None:
    assert run("users", "list").stdout.splitlines()[:2] == [
        "id  email              name        plan     suspended_at",
        "1   alice@example.com  Alice Ito   pro      -",
    ]
    assert printed(run("users", "list", "--json"))[0]["email"] == ALICE


def test_users_add_accepts_a_name_and_a_plan(run: Run) -> None:
    added = printed(run("users", "add", "zoe@example.com", "--name", "Zoë", "--plan", "agency", "--json"))
    assert added == {"id": 4, "email": "zoe@example.com", "name": "Zoë", "plan": "agency", "suspended_at": None}


def test_suspend_resume_and_logout_print_the_user(run: Run) -> None:
    assert printed(run("users", "suspend", ALICE, "--json"))["suspended_at"]
    assert "no active user" in refused(run("users", "token", ALICE))
    assert printed(run("users", "resume", ALICE, "--json"))["suspended_at"] is None
    assert printed(run("users", "logout", ALICE, "--json"))["email"] == ALICE


def test_a_login_is_linked_and_unlinked(run: Run) -> None:
    linked = {"email": ALICE, "issuer": "https://login.example", "subject": "a-1"}
    at = ("--issuer", "https://login.example", "--json")
    assert printed(run("users", "link", ALICE, "a-1", *at)) == linked
    assert "already linked" in refused(run("users", "link", "bob@example.com", "a-1", *at))
    assert "no user" in refused(run("users", "link", "nobody@example.com", "a-2", *at))
    assert "printable" in refused(run("users", "link", ALICE, "", *at))
    assert printed(run("users", "unlink", "a-1", *at)) == linked
    assert "not linked" in refused(run("users", "unlink", "a-1", *at))
    assert printed(run("users", "link", ALICE, "a-1", "--json"))["issuer"] == "http://127.0.0.1:8000/dev/issuer"


def test_a_link_of_a_login_needs_an_issuer(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILESVC_IDENTITY__DEV_ISSUER", "false")
    assert "Name the issuer" in refused(run("users", "link", ALICE, "a-1"))


def test_users_token_prints_a_token_and_nothing_else(run: Run) -> None:
    line = run("users", "token", ALICE).stdout
    assert line.count("\n") == 1
    claims = jwt.decode(line.strip(), options={"verify_signature": False})
    assert (claims["scope"], claims["sub"], claims["iss"]) == ("user", "1", "http://127.0.0.1:8000")
    assert printed(run("users", "token", ALICE, "--json"))["access_token"].count(".") == 2


def test_a_token_has_the_issuer_that_the_server_published(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("var/base_url").write_text("http://127.0.0.1:9999\n")
    token = run("users", "token", ALICE).stdout.strip()
    assert jwt.decode(token, options={"verify_signature": False})["iss"] == "http://127.0.0.1:9999"
    monkeypatch.setenv("PROFILESVC_BASE_URL", "https://profiles.example")
    token = run("users", "token", ALICE).stdout.strip()
    assert jwt.decode(token, options={"verify_signature": False})["iss"] == "https://profiles.example"


@pytest.mark.parametrize("verb", ["token", "suspend", "resume", "logout"])
def test_an_unknown_user_is_reported_in_one_line(run: Run, verb: str) -> None:
    assert refused(run("users", verb, "no@example.com")).startswith("profilesvc: There is no ")


def test_a_business_that_was_added_is_listed(run: Run) -> None:
    added = printed(run("businesses", "add", ALICE, "Harbour Tea", "--json"))
    listed = printed(run("businesses", "list", ALICE, "--json"))
    assert {"id": added["id"], "user_id": 1, "name": "Harbour Tea"} in listed
    assert len(printed(run("businesses", "list", "--json"))) == 5


def test_keys_create_shows_the_secret_once(run: Run) -> None:
    key = create_key(
        run, "--domain", "harbour.example", "--allowed-domain", "b.example", "--permission", "business.read"
    )
    assert len(key["client_secret"]) == 64
    assert key["permissions"] == ["business.read"]
    assert key["allowed_domains"] == ["harbour.example", "www.harbour.example", "b.example"]
    assert key["client_secret"] not in run("keys", "list", "--json").stdout


def test_a_key_is_deactivated_reactivated_and_revoked(run: Run) -> None:
    client_id = create_key(run)["client_id"]
    held = printed(run("keys", "deactivate", client_id, "--reason", "billing_issue", "--json"))
    since = held.pop("deactivated_at")
    assert since.endswith("Z")
    assert held == {
        "client_id": client_id,
        "status": "deactivated",
        "deactivation_reason": "billing_issue",
        "changed": True,
    }
    assert printed(run("keys", "list", ALICE, "--json"))[0]["status"] == "deactivated"
    lifted = printed(run("keys", "reactivate", client_id, "--json"))
    assert (lifted["status"], lifted["lifted"], lifted["left"]) == ("active", ["billing_issue"], [])
    assert printed(run("keys", "revoke", client_id, "--json"))["revoked"] is True
    assert printed(run("keys", "list", "--json")) == []
    assert printed(run("keys", "list", "--revoked", "--json"))[0]["status"] == "revoked"


@pytest.mark.parametrize("words", [["revoke"], ["reactivate"], ["deactivate", "--reason", "billing_issue"]])
def test_an_unknown_key_is_reported_in_one_line(run: Run, words: list[str]) -> None:
    assert "API key" in refused(run("keys", words[0], "svcid_1_1_x", *words[1:]))


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [
        ("--permission", "all", "permissions"),
        ("--location", "a/b", "location"),
        ("--domain", "!", "primary_domain"),
    ],
)
def test_an_invalid_option_of_a_new_key_is_named(run: Run, option: str, value: str, named: str) -> None:
    options = {"--name": "Site", "--business": "10", "--location": "111", option: value}
    words = [word for pair in options.items() for word in pair]
    assert named in refused(run("keys", "create", ALICE, *words))


def test_an_unknown_reason_for_a_hold_is_wrong_usage(run: Run) -> None:
    assert "--reason" in refused(run("keys", "deactivate", "x", "--reason", "mood"), 2)


def test_plans_are_listed_from_the_catalogue(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [plan["name"] for plan in printed(run("plans", "list", "--json"))] == [
        "starter",
        "growth",
        "pro",
        "agency",
    ]
    assert "syncable" not in run("plans", "list").stdout
    monkeypatch.setenv("PROFILESVC_PLANS_FILE", "none.toml")
    assert "PROFILESVC_PLANS_FILE" in refused(run("plans", "list"))


def test_plans_assign_lists_the_keys_that_it_holds_and_frees(run: Run) -> None:
    create_key(run)
    change = printed(run("plans", "assign", ALICE, "starter", "--json"))
    assert change == {"email": ALICE, "plan": "starter", "held": [], "lifted": []}
    assert "no plan gold" in refused(run("plans", "assign", ALICE, "gold"))


def test_locations_are_imported_and_assigned(run: Run) -> None:
    imported = printed(run("locations", "import", ALICE, "--account", "accounts/1", "--json"))
    assert "locations/119" in imported["locations"]
    assert printed(run("locations", "assign", "119", "10", "--json"))["location"] == "locations/119"
    assert "another business" in refused(run("locations", "assign", "119", "11"))


def test_an_import_that_fails_is_reported_in_one_line(run: Run) -> None:
    assert "another user" in refused(run("locations", "import", "bob@example.com", "--account", "accounts/1"))
    assert "not found" in refused(run("locations", "import", ALICE, "--account", "accounts/9"))
    assert "accounts/1" in refused(run("locations", "import", ALICE, "--account", "1"), 2)
    assert "location" in refused(run("locations", "assign", "a/b", "10"), 2)


def test_a_new_database_is_upgraded_and_seeded(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILESVC_DATA_DIR", "new")
    assert printed(run("db", "current", "--json"))["current"] is None
    at = printed(run("db", "upgrade", "--json"))
    assert at["current"] == at["head"]
    assert printed(run("db", "seed", "--json")) == {"users": 3, "businesses": 4, "locations": 8}
    assert "not empty" in refused(run("db", "seed"))


def test_the_openapi_document_is_the_same_on_stdout_and_in_a_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    printed_document = run("openapi").stdout
    monkeypatch.setenv("PROFILESVC_BASE_URL", "https://profiles.example")
    assert run("openapi", "-o", "api.json").stdout == ""
    assert Path("api.json").read_text("utf-8") == printed_document
    assert printed_document.endswith("}\n")
    assert json.loads(printed_document)["openapi"] == "3.1.0"


def test_a_command_does_not_import_the_server() -> None:
    """Half of the time to print a token would be spent on imports."""
    loaded = "import sys, profilesvc.cli, profilesvc.bootstrap, profilesvc.services.tokens; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout
    assert not {"quart", "uvicorn", "httpx", "requests"} & set(modules.split())


def test_the_version_is_shown(run: Run) -> None:
    assert run("--version").stdout == f"profilesvc {__version__}\n"


def test_the_command_names_the_extra_if_the_server_is_not_installed() -> None:
    without = "import sys; sys.modules['typer'] = None; from profilesvc.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        "profilesvc: the commands need the server, which is not installed (no package typer): "
        "pip install '.[server]' in the checkout\n",
    )


def test_ctrl_c_during_the_imports_ends_the_command_in_silence() -> None:
    """They take two seconds on a busy machine. An import of `typer` is interrupted here."""
    program = (
        "import sys, types\n"
        "def find_spec(name, *_more):\n"
        "    if name == 'typer':\n"
        "        raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, types.SimpleNamespace(find_spec=find_spec))\n"
        "from profilesvc.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_every_command_has_two_options_for_help(run: Run) -> None:
    for words in _commands(get_command(app)):
        long, short = run(*words, "--help"), run(*words, "-h")
        assert (short.exit_code, short.stdout) == (0, long.stdout), words
        assert "-h, --help" in long.stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("profilesvc us", "users"), ("profilesvc keys re", "revoke"), ("profilesvc --v", "--version")],
)
def test_a_shell_completes_commands_and_options(tmp_path: Path, typed: str, offered: str) -> None:
    typing = {"_PROFILESVC_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    completed = subprocess.run(
        COMMAND, cwd=tmp_path, env=environment() | typing, capture_output=True, text=True, check=False
    )
    assert offered in completed.stdout.split()


@pytest.mark.parametrize("words", [["none"], ["users"], ["users", "add"], ["serve", "--port", "70000"], ["db", "x"]])
def test_wrong_usage_exits_with_2(run: Run, words: list[str]) -> None:
    assert run(*words).exit_code == 2


def test_a_command_ends_without_a_message_when_its_reader_ends(run: Run) -> None:
    """As after `| head`; the database is not the cause."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*COMMAND, "users", "list"],
        env=environment(),
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("start", [0, 16])
def test_a_damaged_file_of_the_database_is_reported_in_one_line(run: Run, start: int) -> None:
    with Path("var/profilesvc.db").open("r+b") as file:
        file.seek(start)
        file.write(b"\xff" * 20_000)
    for words in (["serve", "--port", "0"], ["users", "list"], ["db", "upgrade"], ["db", "current"]):
        assert "the file of the database is damaged: " in refused(run(*words))
    [found] = [row for row in json.loads(run("doctor", "--json").stdout) if row["name"] == "database"]
    assert (found["status"], "damaged" in found["message"]) == ("fail", True)


def test_a_defect_keeps_its_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise KeyError("defect")

    monkeypatch.setattr("profilesvc.cli.plans.show", lambda *_: broken())
    assert isinstance(run("plans", "list").exception, KeyError)
