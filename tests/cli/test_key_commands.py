"""The life of a key by commands: roll, deactivate, reactivate, audit, billing, slots (A121, A122; D-26, D-27, D-61)."""

import re
from typing import Any

from support.api import ALICE
from support.command_line import Run, create_key, printed, refused


def holds(run: Run, *words: str) -> Any:
    return printed(run("keys", *words, "--json"))


class TestNames:
    """Owners choose the names, and the operator reads them in a terminal."""

    NAME = "a\x1b[2J\x9b1m\r\nsvcid_9_9_x\u202e\u2028 \u00a0Café 🙂"

    def test_names_have_their_control_characters_escaped(self, run: Run) -> None:
        site = ("--business", "10", "--location", "111")
        client_id = printed(run("keys", "create", ALICE, "--name", self.NAME, *site, "--json"))["client_id"]
        for words in (("list",), ("list", ALICE), ("audit", client_id)):
            result = run("keys", *words)
            assert result.exit_code == 0
            assert result.stdout.count("\n") == len(result.stdout.splitlines())
            assert not set(result.stdout).intersection("\x1b\x9b\r\u202e\u2028")
        listed = run("keys", "list").stdout.splitlines()
        assert len(listed) == 2
        assert "a\\x1b[2J\\x9b1m\\r\\nsvcid_9_9_x\\u202e\\u2028 \u00a0Café 🙂" in listed[1]

    def test_names_are_unchanged_for_programs(self, run: Run) -> None:
        run("keys", "create", ALICE, "--name", self.NAME, "--business", "10", "--location", "111")
        assert [key["name"] for key in printed(run("keys", "list", "--json"))] == [self.NAME]

    def test_names_in_errors_are_one_line(self, run: Run) -> None:
        assert refused(run("users", "token", "\x1b[2J\n")) == "profilesvc: There is no active user \\x1b[2J\\n.\n"


def test_keys_roll_shows_the_new_secret(run: Run) -> None:
    key = create_key(run)
    rolled = holds(run, "roll", key["client_id"], "--overlap", "60")
    assert len(rolled["client_secret"]) == 64
    assert rolled["client_secret"] != key["client_secret"]
    assert "still valid" in refused(run("keys", "roll", key["client_id"]))
    assert holds(run, "roll", key["client_id"], "--overlap", "0")["client_secret"]


def test_an_overlap_beyond_a_week_is_wrong_usage(run: Run) -> None:
    for overlap in ("-1", "604801", "x"):
        assert "--overlap" in refused(run("keys", "roll", "x", "--overlap", overlap), 2)


def test_A122_a_security_concern_is_lifted_only_with_a_roll(run: Run) -> None:
    client_id = create_key(run)["client_id"]
    run("keys", "deactivate", client_id, "--reason", "security_concern")
    assert "--roll" in refused(run("keys", "reactivate", client_id))
    lifted = holds(run, "reactivate", client_id, "--roll")
    assert (lifted["status"], lifted["lifted"], lifted["left"]) == ("active", ["security_concern"], [])
    assert len(lifted["client_secret"]) == 64


def test_keys_reactivate_lists_the_remaining_holds(run: Run) -> None:
    client_id = create_key(run)["client_id"]
    for reason in ("billing_issue", "user_requested"):
        run("keys", "deactivate", client_id, "--reason", reason)
    lifted = holds(run, "reactivate", client_id, "--reason", "billing_issue")
    assert (lifted["status"], lifted["left"]) == ("deactivated", ["user_requested"])


def test_A121_only_a_billing_hold_has_a_version(run: Run) -> None:
    client_id = create_key(run)["client_id"]
    billing = ("--reason", "billing_issue", "--version")
    assert holds(run, "deactivate", client_id, *billing, "2")["changed"]
    assert holds(run, "reactivate", client_id, *billing, "1")["lifted"] == []
    assert holds(run, "reactivate", client_id, *billing, "3")["lifted"] == ["billing_issue"]
    assert not holds(run, "deactivate", client_id, *billing, "3")["changed"]
    assert "--version" in refused(run("keys", "reactivate", client_id, "--version", "4"), 2)
    other = ("--reason", "user_requested", "--version", "4")
    assert "--version" in refused(run("keys", "deactivate", client_id, *other), 2)


def test_A121_users_billing_holds_and_frees_all_keys_of_a_user(run: Run) -> None:
    client_id = create_key(run)["client_id"]
    failed = printed(run("users", "billing", ALICE, "--failed", "--version", "1", "--json"))
    assert failed == {"email": ALICE, "held": [client_id], "lifted": []}
    paid = printed(run("users", "billing", ALICE, "--paid", "--version", "2", "--json"))
    assert paid == {"email": ALICE, "held": [], "lifted": [client_id]}
    assert "no user" in refused(run("users", "billing", "no@example.com", "--paid", "--version", "1"))
    assert run("users", "billing", ALICE, "--version", "1").exit_code == 2


def test_a_location_without_live_keys_gives_its_slot_back(run: Run) -> None:
    create_key(run)
    assert "live keys" in refused(run("locations", "unassign", "111"))
    freed = printed(run("locations", "unassign", "114", "--json"))
    assert freed == {"location": "locations/114", "lifted": []}
    assert "no assigned location" in refused(run("locations", "unassign", "114"))


def test_keys_audit_lists_events_of_a_key_a_user_and_all_users(run: Run) -> None:
    client_id = create_key(run)["client_id"]
    run("keys", "deactivate", client_id, "--reason", "billing_issue")
    for words in ([client_id], ["--user", ALICE], []):
        trail = holds(run, "audit", *words)
        assert [event["event"] for event in trail["events"]] == ["key.deactivated", "key.created"]
        assert trail["next_before"] is None
        assert {event["actor"] for event in trail["events"]} == {"operator"}
    page = holds(run, "audit", client_id, "--limit", "1")
    rest = holds(run, "audit", client_id, "--before", page["next_before"])
    assert [event["event"] for event in rest["events"]] == ["key.created"]
    printed_for_people = run("keys", "audit").stdout
    assert "reason=billing_issue" in printed_for_people
    assert re.search(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC", printed_for_people)
    assert not re.search(r"\dT\d", printed_for_people)


def test_keys_audit_rejects_unknown_keys_and_users(run: Run) -> None:
    assert "API key" in refused(run("keys", "audit", "svcid_1_1_x"))
    assert "no user" in refused(run("keys", "audit", "--user", "no@example.com"))
    assert "before" in refused(run("keys", "audit", "--before", "x"))
    assert "--user" in refused(run("keys", "audit", "x", "--user", ALICE), 2)
