"""A start that fails ends with one line that names the setting."""

import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from profilesvc.cli import failures
from profilesvc.fixtures import fixture_path
from profilesvc.server.serving import bind
from profilesvc.settings import load
from support.api import ALICE
from support.command_line import Run, create_key, printed, refused
from support.repository import ROOT

if TYPE_CHECKING:
    from conftest import Postgres

PRODUCTION = {
    "ENVIRONMENT": "production",
    "BASE_URL": "https://profiles.example",
    "PROVIDER__URL": "https://provider.example",
    "TOKENS__KEY_PASSPHRASE": "correct horse battery staple",
}


@pytest.mark.parametrize(
    ("words", "missing", "named"),
    [
        (["demo"], [], "PROFILESVC_ENVIRONMENT"),
        (["demo"], ["BASE_URL"], "PROFILESVC_ENVIRONMENT"),
        (["emulator", "serve"], [], "PROFILESVC_ENVIRONMENT"),
        (["serve", "--demo"], [], "PROFILESVC_ENVIRONMENT"),
        (["db", "seed"], [], "PROFILESVC_ENVIRONMENT"),
        (["db", "generate"], [], "PROFILESVC_ENVIRONMENT"),
        (["serve"], ["BASE_URL"], "PROFILESVC_BASE_URL"),
        (["serve"], ["PROVIDER__URL"], "PROFILESVC_PROVIDER__URL"),
        (["serve"], ["TOKENS__KEY_PASSPHRASE"], "PROFILESVC_TOKENS__KEY_PASSPHRASE"),
        (["users", "list"], ["TOKENS__KEY_PASSPHRASE"], "owners' logins at the provider"),
    ],
)
def test_production_rejects_and_names_the_setting(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: list[str], missing: list[str], named: str
) -> None:
    for name, value in PRODUCTION.items():
        if name not in missing:
            monkeypatch.setenv(f"PROFILESVC_{name}", value)
    monkeypatch.setenv("PROFILESVC_DATA_DIR", "untouched")
    assert named in refused(run(*words))
    assert not Path("untouched").exists()


def test_production_rejects_the_issuer_that_signs_anyone_in(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**PRODUCTION, "IDENTITY__DEV_ISSUER": "true"}.items():
        monkeypatch.setenv(f"PROFILESVC_{name}", value)
    assert "PROFILESVC_IDENTITY__DEV_ISSUER" in refused(run("serve"))


class TestDemoData:
    """The demo users are public, and anyone may have one of their keys."""

    @pytest.fixture(autouse=True)
    def production(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
        """Set the environment from then on."""

        def switch() -> None:
            for name, value in PRODUCTION.items():
                monkeypatch.setenv(f"PROFILESVC_{name}", value)

        return switch

    def test_production_rejects_demo_data_and_names_it(self, run: Run, production: Callable[[], None]) -> None:
        key = create_key(run)["client_id"]
        kids = [row["kid"] for row in printed(run("signing-keys", "list", "--json"))]
        Path("var/demo.json").write_text("{}")
        before = Path("var/profilesvc.db").read_bytes()
        production()
        for words in (["serve", "--port", "0"], ["users", "list"], ["users", "token", ALICE], ["signing-keys", "list"]):
            line = refused(run(*words))
            for named in ("user alice@example.com", "user carol@example.com", f"key {key}", "demo.json", *kids):
                assert named in line
            assert "PROFILESVC_DATABASE_URL" in line
        assert Path("var/profilesvc.db").read_bytes() == before
        result = run("doctor", "--json")
        [found] = [row for row in json.loads(result.stdout) if row["name"] == "readiness"]
        assert (result.exit_code, found["status"]) == (1, "fail")
        assert "alice@example.com" in found["message"]

    def test_production_rejects_each_trace_of_demo_data(
        self, run: Run, production: Callable[[], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PROFILESVC_DATA_DIR", "new")
        printed(run("users", "add", "bob@example.com", "--name", "Bob", "--json"))
        monkeypatch.setenv("PROFILESVC_DATA_DIR", "generated")
        printed(run("db", "generate", "--keys", "1", "--posts", "0", "--history", "0", "--json"))
        for folder, file in (("demo", "demo.json"), ("test", "signing_key.pem")):
            Path(folder).mkdir()
            shutil.copy(fixture_path("signing_key.pem"), Path(folder, file))
        production()
        for folder, named in (
            ("new", "user bob@example.com"),
            ("generated", "@generated.example"),
            ("demo", "demo.json"),
            ("test", "published test key"),
        ):
            monkeypatch.setenv("PROFILESVC_DATA_DIR", folder)
            assert named in refused(run("users", "list"))

    def test_production_starts_on_data_of_its_own(
        self, run: Run, production: Callable[[], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PROFILESVC_DATA_DIR", "new")
        production()
        printed(run("users", "add", "owner@example.com", "--json"))
        assert [user["email"] for user in printed(run("users", "list", "--json"))] == ["owner@example.com"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"CLIENT_ID": ""}, "CLIENT_ID"),
        ({"JWKS_URL": ""}, "JWKS_URL"),
        ({"JWKS_URL": "http://login.example/keys"}, "JWKS_URL"),
        ({"JWKS_URL": "ftp://login.example/keys"}, "JWKS_URL"),
        ({"JWKS_URL": "https://"}, "JWKS_URL"),
        ({"JWKS_URL": "https://[bad/keys"}, "JWKS_URL"),
        ({"ALGORITHMS": "RS256,HS256"}, "ALGORITHMS"),
        ({"ALGORITHMS": "none"}, "ALGORITHMS"),
        ({"ALGORITHMS": ""}, "ALGORITHMS"),
        ({"ISSUER": "x" * 256}, "ISSUER"),
    ],
)
def test_an_identity_provider_needs_all_settings_and_https(
    run: Run, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], named: str
) -> None:
    good = {"ISSUER": "https://login.example", "JWKS_URL": "https://login.example/keys", "CLIENT_ID": "us"}
    for name, value in good.items():
        monkeypatch.setenv(f"PROFILESVC_IDENTITY__{name}", value)
    printed(run("users", "list", "--json"))
    for name, value in changes.items():
        monkeypatch.setenv(f"PROFILESVC_IDENTITY__{name}", value)
    assert f"PROFILESVC_IDENTITY__{named}" in refused(run("users", "list"))


def test_only_development_reads_the_keys_of_an_issuer_over_http(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    here = {"ISSUER": "https://login.example", "JWKS_URL": "http://127.0.0.1:9/keys", "CLIENT_ID": "us"}
    for name, value in here.items():
        monkeypatch.setenv(f"PROFILESVC_IDENTITY__{name}", value)
    printed(run("users", "list", "--json"))
    for name, value in PRODUCTION.items():
        monkeypatch.setenv(f"PROFILESVC_{name}", value)
    assert "PROFILESVC_IDENTITY__JWKS_URL" in refused(run("users", "list"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BASE_URL", "http://profiles.example"),
        ("BASE_URL", "https://"),
        ("BASE_URL", "https://user@profiles.example"),
        ("BASE_URL", "https://user:word@profiles.example"),
        ("BASE_URL", "https://profiles.example/api"),
        ("BASE_URL", "https://profiles.example?a=b"),
        ("BASE_URL", "https://profiles.example/?"),
        ("BASE_URL", "https://profiles.example#top"),
        ("BASE_URL", "https://profiles.example:0"),
        ("BASE_URL", "https://profiles.example:65536"),
        ("BASE_URL", "https://profiles.example:port"),
        ("BASE_URL", "https://profiles example"),
        ("BASE_URL", "https://profiles.example\nx"),
        *(
            (f"PROVIDER__{name}", f"{scheme}provider.example")
            for name in (
                "URL",
                "INFORMATION_URL",
                "VERIFICATIONS_URL",
                "ACCOUNTS_URL",
                "POSTS_URL",
                "NOTIFICATIONS_URL",
                "TOKEN_URL",
            )
            for scheme in ("http://", "HTTP://", "", "ftp://")
        ),
        ("PROVIDER__URL", "https://"),
        ("PROVIDER__URL", "https://user:word@provider.example"),
        ("PROVIDER__URL", "https://provider example"),
        ("PROVIDER__URL", "https://provider.example\thttp://x"),
        ("PROVIDER__URL", "https://provider.example:port"),
        ("PROVIDER__TOKEN_URL", "https://provider.example:99999/token"),
        ("DATABASE_URL", "postgresql+asyncpg://user:word@127.0.0.1:port/db"),
        ("DATABASE_URL", "postgresql+asyncpg://user:word@127.0.0.1:99999/db"),
        ("DATABASE_URL", "postgresql+asyncpg://user:word@[::1/db"),
        ("PROVIDER__TOKEN_URL", "http://127.0.0.1:9"),
        ("SECRET_PEPPER", "change-me"),
        ("TOKENS__KEY_PASSPHRASE", "CHANGE_ME"),
        ("PROVIDER__CLIENT_SECRET", "changeme"),
        ("PROVIDER__REFRESH_TOKEN", "…"),
        ("PROVIDER__CLIENT_ID", "<client id>"),
        ("LIMITS__STORAGE_URL", "redis://:change-me@127.0.0.1"),
        ("DATABASE_URL", "postgresql+asyncpg://profilesvc:change-me@/profilesvc"),
        ("UPGRADE_URL", "javascript:alert(1)"),
        ("UPGRADE_URL", "data:text/html,x"),
        ("UPGRADE_URL", "//plans.example"),
        ("UPGRADE_URL", "https:plans"),
        ("UPGRADE_URL", "https://user@plans.example"),
        ("UPGRADE_URL", "http://plans.example"),
        ("TRACING__ENDPOINT", "http://collector.example:4318"),
        ("TRACING__ENDPOINT", "http://127.0.0.1@collector.example"),
        ("TRACING__ENDPOINT", "http://localhost.example:4318"),
        ("LIMITS__STORAGE_URL", "redis://redis.example:6379/0"),
        ("LIMITS__STORAGE_URL", "valkey://:word@10.0.0.31"),
        ("LIMITS__STORAGE_URL", "redis://127.0.0.1:word@redis.example"),
        ("LIMITS__STORAGE_URL", "redis+cluster://127.0.0.1:6379,10.0.0.2:6379"),
        ("LIMITS__STORAGE_URL", "redis://[2001:db8::1]:6379"),
        ("TRACING__ENDPOINT", "http://collector.example\\@127.0.0.1"),
    ],
)
def test_production_rejects_unsafe_settings_and_names_them(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    for variable, good in {**PRODUCTION, name: value}.items():
        monkeypatch.setenv(f"PROFILESVC_{variable}", good)
    said = refused(run("users", "list"))
    assert said.startswith(f"profilesvc: PROFILESVC_{name}")
    assert "word" not in said


@pytest.mark.parametrize(
    ("name", "value", "network"),
    [
        ("UPGRADE_URL", "https://plans.example/change?from=us", "false"),
        ("TRACING__ENDPOINT", "https://collector.example", "false"),
        ("TRACING__ENDPOINT", "http://127.0.0.1:4318", "false"),
        ("TRACING__ENDPOINT", "http://[::1]:4318", "false"),
        ("TRACING__ENDPOINT", "http://collector:4318", "true"),
        ("LIMITS__STORAGE_URL", "redis://:word@localhost:6379/0", "false"),
        ("LIMITS__STORAGE_URL", "redis://127.0.0.2", "false"),
        ("LIMITS__STORAGE_URL", "valkey://[::1]:6379", "false"),
        ("LIMITS__STORAGE_URL", "rediss://redis.example", "false"),
        ("LIMITS__STORAGE_URL", "valkeys+cluster://a.example:1,b.example:2", "false"),
        ("LIMITS__STORAGE_URL", "redis+cluster://127.0.0.1:1,[::1]:2", "false"),
        ("LIMITS__STORAGE_URL", "unix:///run/redis.sock", "false"),
        ("LIMITS__STORAGE_URL", "redis://valkey:6379/0", "true"),
    ],
)
def test_production_accepts_tls_this_machine_and_a_private_network(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, network: str
) -> None:
    for variable, good in {**PRODUCTION, name: value, "PRIVATE_NETWORK": network}.items():
        monkeypatch.setenv(f"PROFILESVC_{variable}", good)
    assert load(_env_file=None).production


def test_the_issuer_of_production_must_be_an_https_url(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    login = {"ISSUER": "http://login.example", "JWKS_URL": "https://login.example/keys", "CLIENT_ID": "us"}
    for variable, value in {**PRODUCTION, **{f"IDENTITY__{name}": value for name, value in login.items()}}.items():
        monkeypatch.setenv(f"PROFILESVC_{variable}", value)
    assert "PROFILESVC_IDENTITY__ISSUER must be an https:// URL" in refused(run("users", "list"))


@pytest.mark.parametrize(
    "value",
    [
        "postgresql+asyncpg://u:p%40ss@127.0.0.1:5432/db",
        "postgresql+asyncpg://u@[::1]:5432/db",
        "postgresql+asyncpg://u@/db?host=a:5432&host=b:5432",
        "postgresql+asyncpg://u@/db?host=/run/postgresql",
    ],
)
def test_a_url_of_a_database_is_accepted(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("PROFILESVC_DATABASE_URL", value)
    assert load(_env_file=None).database_url == value


@pytest.mark.parametrize("value", ["https://profiles.example/", "https://profiles.example:8443", "https://[::1]"])
def test_production_accepts_an_origin_as_its_base_url(run: Run, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    for variable, good in {**PRODUCTION, "BASE_URL": value}.items():
        monkeypatch.setenv(f"PROFILESVC_{variable}", good)
    assert load().base_url == value.rstrip("/")


@pytest.mark.parametrize(
    ("name", "value"),
    [("DATABASE_URL", "mysql://x"), ("DATABSE_URL", "x"), ("TOKENS__ACCESS_TTL_SECONDS", "soon")],
)
def test_a_setting_that_cannot_be_used_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"PROFILESVC_{name}", value)
    assert f"PROFILESVC_{name}" in refused(run("users", "list"))


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("redis://:hush@127.0.0.1:1/0?ssl_cert_reqs=none", "must not have the parameter 'ssl_cert_reqs'"),
        ("unix:///no/such/socket?x=1", "must not have the parameter 'x'"),
        ("redis://:hush@127.0.0.1:1/0?retry=5", "must not have the parameter 'retry'"),
        ("redis://:hush@127.0.0.1:1/0?redis_connect_func=x", "must not have the parameter 'redis_connect_func'"),
        ("redis+cluster://:hush@127.0.0.1:1?db=0", "must have no parameters for a cluster"),
        ("rediss://:hush@127.0.0.1:1/0?ssl_cert_reqs=some", "Invalid SSL Certificate Requirements Flag: some"),
    ],
)
def test_a_parameter_of_the_counters_is_checked_before_the_start(
    run: Run, monkeypatch: pytest.MonkeyPatch, url: str, problem: str
) -> None:
    """It was an internal error of each request that is counted."""
    monkeypatch.setenv("PROFILESVC_LIMITS__STORAGE_URL", url)
    line = refused(run("serve", "--port", "0"))
    assert line == f"profilesvc: PROFILESVC_LIMITS__STORAGE_URL: {problem}\n"
    [found] = [row for row in json.loads(run("doctor", "--json").stdout) if row["name"] == "limits"]
    assert (found["status"], problem in found["message"]) == ("fail", True)


def test_a_data_folder_that_cannot_be_written_is_reported_in_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("file").write_text("")
    for folder in ("file", "file/below/it"):
        monkeypatch.setenv("PROFILESVC_DATA_DIR", folder)
        for words in (["users", "list"], ["serve", "--port", "0"]):
            line = refused(run(*words))
            assert line.startswith("profilesvc: PROFILESVC_DATA_DIR: "), line
            assert "[Errno" not in line


def test_the_error_of_an_unknown_database_host_names_its_setting(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILESVC_DATABASE_URL", "postgresql+asyncpg://user:word@database.invalid/x")
    for words in (["users", "list"], ["serve", "--port", "0"], ["db", "upgrade"]):
        line = refused(run(*words))
        assert line.startswith("profilesvc: PROFILESVC_DATABASE_URL: the name of the host cannot be resolved: ")
        assert "word" not in line


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (PermissionError(13, "Permission denied", "data/sub"), "PROFILESVC_DATA_DIR: data/sub: Permission denied"),
        (OSError(30, "Read-only file system", "data"), "PROFILESVC_DATA_DIR: data: Read-only file system"),
        (FileNotFoundError(2, "No such file or directory", "other.pem"), "other.pem: No such file or directory"),
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused; check PROFILESVC_DATABASE_URL"),
        (socket.gaierror(-3, "Temporary failure"), "PROFILESVC_DATABASE_URL: the name of the host cannot be resolved"),
    ],
)
def test_an_error_of_the_system_names_the_setting(monkeypatch: pytest.MonkeyPatch, error: OSError, line: str) -> None:
    monkeypatch.setenv("PROFILESVC_DATA_DIR", "data")
    found = failures.expected(error) or ""
    assert line in found
    assert "[Errno 13]" not in found


def test_a_used_port_is_one_line(run: Run) -> None:
    with bind("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])
        for words in (["demo"], ["serve"], ["emulator", "serve"]):
            said = refused(run(*words, "--port", port))
            assert said.startswith(f"profilesvc: cannot listen on http://127.0.0.1:{port}: ")
            assert "choose another port with --port" in said


def test_a_used_port_of_the_metrics_is_one_line_with_its_setting(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with bind("127.0.0.1", 0) as taken:
        monkeypatch.setenv("PROFILESVC_METRICS__PORT", str(taken.getsockname()[1]))
        said = refused(run("serve", "--port", "0"))
    assert "Address already in use; choose another port with PROFILESVC_METRICS__PORT" in said


def test_make_run_checks_the_port_before_the_installation() -> None:
    prerequisites = re.search(r"^run: (.+?) ##", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert prerequisites is not None
    assert prerequisites[1].split() == ["port", "$(RUNTIME)"]
    with bind("127.0.0.1", 0) as taken:
        number = taken.getsockname()[1]
        command = ["make", "--no-print-directory", "-C", str(ROOT), "port", f"PYTHON={sys.executable}"]
        done = subprocess.run([*command, f"PORT={number}"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"Port {number} is taken or not allowed. Choose another one: make run PORT=9000" in done.stderr
    assert subprocess.run([*command, "PORT=0"], check=False).returncode == 0


@pytest.mark.parametrize("name", ["SECRET_PEPPER", "TOKENS__KEY_PASSPHRASE"])
@pytest.mark.parametrize("secret", ["x", "correct horse", "a" * 64])
def test_production_rejects_a_secret_that_can_be_guessed(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, secret: str
) -> None:
    for variable, value in {**PRODUCTION, name: secret}.items():
        monkeypatch.setenv(f"PROFILESVC_{variable}", value)
    line = refused(run("serve", "--port", "0"))
    assert f"PROFILESVC_{name} must have at least 16 characters, 6 of them different" in line
    assert secret not in line.replace("must have at least", "") or len(secret) == 1


def test_a_database_with_other_users_is_not_a_demo(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILESVC_DATA_DIR", "other")
    printed(run("users", "add", "zoe@example.com", "--json"))
    assert "PROFILESVC_DATA_DIR" in refused(run("demo", "--port", "0"))


def test_generated_rows_stay_out_of_a_database_with_users_of_its_own(run: Run) -> None:
    few = ("db", "generate", "--keys", "3", "--posts", "5", "--history", "4", "--json")
    assert printed(run(*few))["keys"] == 3
    run("users", "add", "zoe@example.org", "--name", "Zoe", "--plan", "pro")
    assert "--yes" in refused(run(*few))
    assert printed(run(*few, "--yes"))["posts"] == 5


def test_generated_data_needs_a_checkout(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("profilesvc.cli.db.CHECKOUT", tmp_path)
    assert "`db generate` needs a checkout of the source" in refused(run("db", "generate"))


def test_several_workers_are_rejected_on_sqlite(run: Run) -> None:
    assert "several workers need PostgreSQL" in refused(run("serve", "--workers", "2", "--port", "0"))


@pytest.mark.postgres
def test_a_database_that_was_not_migrated_is_rejected(
    run: Run, postgres: "Postgres", monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.create("behind")
    monkeypatch.setenv("PROFILESVC_DATABASE_URL", postgres.url("behind"))
    for words in (
        ["serve", "--port", "0"],
        ["serve", "--workers", "2", "--port", "0"],
        ["users", "list"],
        ["db", "seed"],
    ):
        assert "the database is empty and must be at " in (said := refused(run(*words)))
        assert "Run `profilesvc db upgrade`" in said
    assert printed(run("db", "current", "--json"))["current"] is None
    printed(run("db", "upgrade", "--json"))
    assert printed(run("users", "list", "--json")) == []
    postgres.drop("behind")


def test_a_database_that_does_not_respond_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILESVC_DATABASE_URL", "postgresql+asyncpg://postgres:secret@127.0.0.1:1/none")
    for words in (["serve", "--port", "0"], ["users", "list"], ["db", "upgrade"]):
        assert "the database does not respond" in (said := refused(run(*words)))
        assert "secret" not in said
    monkeypatch.setenv("PROFILESVC_DATABASE_URL", f"postgresql+asyncpg://postgres:secret@/none?host={Path.cwd()}")
    for words in (["serve", "--port", "0"], ["users", "list"], ["db", "upgrade"]):
        assert f"the database does not respond: no server has its socket in {Path.cwd()}" in refused(run(*words))
