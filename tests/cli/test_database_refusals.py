"""A database that refuses its user: each command ends with one line that names the cause and a hint."""

import json
from collections.abc import Iterator

import pytest

from conftest import Postgres
from support.command_line import Run, printed, refused
from support.database.login import PASSWORD, ROLE, Login, login

pytestmark = pytest.mark.postgres
COMMANDS = [("serve", "--port", "0"), ("users", "list"), ("db", "upgrade"), ("db", "current")]
# A fault, by a statement or in the URL (user, database), and the message.
KINDS: dict[str, tuple[str, str, str, str]] = {
    "password": ("", f"{ROLE}:not-that-secret", "", "rejects the login: password authentication failed"),
    "no password": ("", ROLE, "", "rejects the login: password authentication failed"),
    "role": ("", "unknown:not-that-secret", "", 'rejects the login: role "unknown" does not exist'),
    "peer": ("", "stranger", "", "rejects the login: Peer authentication failed"),
    "no login": (f"ALTER ROLE {ROLE} NOLOGIN", "", "", "not permitted to log in"),
    "database": ("", "", "nowhere", 'rejects the connection: database "nowhere" does not exist'),
    "privilege": (
        "REVOKE CONNECT ON DATABASE refusing FROM public",
        "",
        "",
        "denies access: permission denied for",
    ),
    "too many": (f"ALTER ROLE {ROLE} CONNECTION LIMIT 0", "", "", "has no free connection"),
}


@pytest.fixture
def role(postgres: Postgres) -> Iterator[Login]:
    postgres.create("refusing")
    with login(postgres, "refusing") as made:
        yield made
    postgres.drop("refusing")


@pytest.mark.parametrize("kind", KINDS)
def test_a_rejection_by_the_database_is_one_line(
    run: Run, role: Login, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    statement, user, database, said = KINDS[kind]
    if statement:
        role.run(statement)
    url = role.url(user, database) if user else role.url(database=database)
    monkeypatch.setenv("PROFILESVC_DATABASE_URL", url)
    for words in COMMANDS:
        line = refused(run(*words))
        assert said in line
        assert "; " in line, "a hint"
        assert "secret" not in line
        assert PASSWORD not in line
    result = run("doctor", "--json")
    [found] = [row for row in json.loads(result.stdout) if row["name"] == "database"]
    assert (result.exit_code, found["status"]) == (1, "fail")
    assert said in found["message"]
    assert PASSWORD not in result.stdout
    assert "not-that-secret" not in result.stdout


def test_tables_of_another_role_are_one_line(
    run: Run, role: Login, monkeypatch: pytest.MonkeyPatch, postgres: Postgres
) -> None:
    monkeypatch.setenv("PROFILESVC_DATABASE_URL", postgres.url("refusing"))
    printed(run("db", "upgrade", "--json"))
    monkeypatch.setenv("PROFILESVC_DATABASE_URL", role.url())
    assert "denies access: permission denied for table" in refused(run("users", "list"))


@pytest.mark.parametrize(
    ("more", "said"),
    [("&sslmode=require", "sslmode"), ("&pool=3", "pool"), ("&port=x", "port")],
)
def test_a_parameter_of_the_url_that_the_driver_does_not_know_is_named(
    run: Run, role: Login, monkeypatch: pytest.MonkeyPatch, more: str, said: str
) -> None:
    monkeypatch.setenv("PROFILESVC_DATABASE_URL", role.url() + more)
    line = refused(run("users", "list"))
    assert line.startswith("profilesvc: PROFILESVC_DATABASE_URL")
    assert said in line
    assert PASSWORD not in line
