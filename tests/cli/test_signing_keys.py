"""`profilesvc signing-keys`: what it prints and how it refuses."""

import pytest

from profilesvc.fixtures import fixture_path
from profilesvc.tokens.keys import hmac_key, rsa_key
from support.command_line import Run, printed, refused

KID = rsa_key(fixture_path("signing_key.pem").read_bytes()).kid
REFRESH_KID = hmac_key(fixture_path("refresh_key.pem").read_bytes()).kid


def test_list_is_a_table_or_json(run: Run) -> None:
    lines = run("signing-keys", "list").stdout.splitlines()
    assert lines[0].split() == ["kid", "alg", "state", "created_at", "active_from", "removed_at"]
    assert [line.split()[:3] for line in lines[1:]] == [[KID, "RS256", "active"], [REFRESH_KID, "HS256", "active"]]
    row, _ = printed(run("signing-keys", "list", "--json"))
    assert row == {
        "kid": KID,
        "alg": "RS256",
        "state": "active",
        "created_at": "2026-01-02T03:04:05.678Z",
        "active_from": "2026-01-02T03:04:05.678Z",
        "removed_at": None,
    }


@pytest.mark.parametrize(("options", "alg"), [([], "RS256"), (["--refresh"], "HS256")])
def test_rotate_announces_one_key_and_now_brings_it_forward(run: Run, options: list[str], alg: str) -> None:
    made = printed(run("signing-keys", "rotate", *options, "--json"))
    assert (made["state"], made["alg"]) == ("announced", alg)
    assert f"{made['kid']} is already announced" in refused(run("signing-keys", "rotate", *options))
    hasty = printed(run("signing-keys", "rotate", *options, "--now", "--json"))
    assert hasty["kid"] == made["kid"]
    assert hasty["active_from"] < made["active_from"]
    assert len(printed(run("signing-keys", "list", "--json"))) == 3


@pytest.mark.parametrize(("kid", "alg"), [(KID, "RS256"), (REFRESH_KID, "HS256")])
def test_remove_ends_a_key_permanently_and_another_is_active(run: Run, kid: str, alg: str) -> None:
    removed = printed(run("signing-keys", "remove", kid, "--json"))
    assert (removed["kid"], removed["state"]) == (kid, "removed")
    assert printed(run("signing-keys", "remove", kid, "--json")) == removed
    rows = printed(run("signing-keys", "list", "--json"))
    assert sorted(row["state"] for row in rows if row["alg"] == alg) == ["active", "removed"]
    assert run("users", "token", "alice@example.com").exit_code == 0


@pytest.mark.parametrize("kid", ["x", "-a-kid-may-begin-with-a-dash", "--now"])
def test_an_unknown_key_is_one_line(run: Run, kid: str) -> None:
    assert f"There is no signing key {kid}." in refused(run("signing-keys", "remove", kid))


@pytest.mark.parametrize("words", [["rotate", "x"], ["remove"], ["list", "--now"], ["burn"]])
def test_wrong_usage_has_its_own_exit_code(run: Run, words: list[str]) -> None:
    refused(run("signing-keys", *words), code=2)


def test_a_wrong_passphrase_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILESVC_TOKENS__KEY_PASSPHRASE", "correct horse")
    assert run("signing-keys", "list").exit_code == 0
    monkeypatch.setenv("PROFILESVC_TOKENS__KEY_PASSPHRASE", "wrong")
    line = refused(run("signing-keys", "list"))
    assert line == (
        f"profilesvc: PROFILESVC_TOKENS__KEY_PASSPHRASE does not decrypt the signing key {KID}. "
        "Set the former one; it cannot be replaced (docs/operations.md#secrets)\n"
    )
    assert line == refused(run("users", "token", "alice@example.com"))
