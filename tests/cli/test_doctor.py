"""`profilesvc doctor`: from inside, by the settings, and from outside, by a URL."""

import base64
import json
import shutil
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import redis
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from conftest import make_settings
from profilesvc.bootstrap import Runtime, create_app
from profilesvc.cli.doctor import disk as checks_disk
from profilesvc.cli.doctor.checks import clock
from profilesvc.cli.doctor.outside import outside
from profilesvc.domain.entropy import SystemEntropy
from profilesvc.domain.time import SystemClock
from profilesvc.emulator.app import create_emulator
from profilesvc.fixtures import load_world
from profilesvc.server.serving import EmbeddedServer
from support.command_line import Run, create_key, printed
from support.database.pgbouncer import pooling
from support.identity.issuer import FakeIssuer
from support.network.ports import free_port
from support.network.tls import certificate

if TYPE_CHECKING:
    from conftest import Postgres
    from support.database.redis_server import RedisServer

HEALTHY: dict[str, tuple[int, Any]] = {
    "/healthz": (200, {"status": "ok"}),
    "/readyz": (200, {"status": "ok", "checks": {"database": True, "migrations": True, "accepting": True}}),
    "/.well-known/oauth-authorization-server": (200, {"issuer": "https://profiles.example"}),
    "/.well-known/jwks.json": (200, {"keys": [{"kid": "a", "kty": "RSA"}]}),
}


def statuses(rows: list[dict[str, str]]) -> dict[str, str]:
    return {row["name"]: row["status"] for row in rows}


def looked_at(url: str = "https://profiles.example", **changed: tuple[int, Any]) -> dict[str, str]:
    """The report of `doctor` on a service with the responses of HEALTHY, some of them changed."""
    answers = {**HEALTHY, **{f"/{name}": answer for name, answer in changed.items()}}

    def answer(request: httpx.Request) -> httpx.Response:
        status, body = answers[request.url.path]
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx.Response(status, content=content, headers={"Date": formatdate(time.time(), usegmt=True)})

    return {check.name: check.status for check in outside(url, httpx.MockTransport(answer))}


@contextmanager
def serving_tls(folder: Path) -> Iterator[str]:
    """Something that answers by TLS; gives its origin."""
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "certificate.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@contextmanager
def mail_server() -> Iterator[int]:
    """A mail server that requires a login; gives its port."""

    def authenticate(_server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
        return AuthResult(success=(data.login, data.password) == (b"user", b"p@ss"), handled=False)

    port = free_port()
    controller = Controller(object(), "127.0.0.1", port, authenticator=authenticate, auth_require_tls=False)
    controller.start()
    try:
        yield port
    finally:
        controller.stop()


def test_the_demo_data_has_no_problems(run: Run) -> None:
    rows = printed(run("doctor", "--json"))
    assert set(statuses(rows)) == {
        "settings",
        "pepper",
        "passphrase",
        "sign-in",
        "limits",
        "mail",
        "disk",
        "database",
        "migrations",
        "signing keys",
        "readiness",
        "clock",
        "provider",
    }
    assert set(statuses(rows).values()) == {"ok"}
    assert all(set(row) == {"name", "status", "message", "hint"} for row in rows)


def test_the_output_for_people_has_a_line_for_each_check(run: Run) -> None:
    result = run("doctor")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["ok"] * 13


@pytest.mark.parametrize(
    ("setting", "status"),
    [({}, "warn"), ({"TOKEN": "a-secret-of-the-operators"}, "ok"), ({"PORT": "9100"}, "ok")],
)
def test_production_needs_protected_metrics(
    run: Run, monkeypatch: pytest.MonkeyPatch, setting: dict[str, str], status: str
) -> None:
    production = {
        "ENVIRONMENT": "production",
        "BASE_URL": "https://x.example",
        "PROVIDER__URL": "https://127.0.0.1:1",
        "TOKENS__KEY_PASSPHRASE": GOOD,
    }
    named = {f"METRICS__{name}": value for name, value in setting.items()}
    for name, value in {**production, **named}.items():
        monkeypatch.setenv(f"PROFILESVC_{name}", value)
    (found,) = [row for row in json.loads(run("doctor", "--json").stdout) if row["name"] == "metrics"]
    assert (found["status"], bool(found["hint"])) == (status, status == "warn")


def test_a_database_that_is_not_made_yet_is_a_warning_and_is_not_made(run: Run) -> None:
    Path("var/profilesvc.db").unlink()
    assert statuses(printed(run("doctor", "--json")))["database"] == "warn"
    assert not Path("var/profilesvc.db").exists()


def test_a_database_and_a_provider_that_do_not_respond_fail(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILESVC_DATABASE_URL", "postgresql+asyncpg://nobody@127.0.0.1:1/none")
    monkeypatch.setenv("PROFILESVC_PROVIDER__URL", "http://127.0.0.1:1")
    result = run("doctor", "--json")
    assert result.exit_code == 1
    found = statuses(json.loads(result.stdout))
    assert {"settings": "ok", "database": "fail", "clock": "warn", "provider": "fail"}.items() <= found.items()


def test_an_invalid_setting_fails(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILESVC_BASE_UR", "x")
    result = run("doctor", "--json")
    assert (result.exit_code, len(json.loads(result.stdout))) == (1, 1)
    assert "Did you mean PROFILESVC_BASE_URL" in result.stdout


@pytest.mark.parametrize("refuses", [False, True])
def test_doctor_calls_the_provider(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: bool) -> None:
    app = create_emulator(tmp_path / "provider.db", clock=SystemClock(), entropy=SystemEntropy(), world=load_world())
    with EmbeddedServer(app) as server:
        switches = {"switches": {"refuse_refresh": refuses}}
        httpx.put(f"{server.base_url}/__emulator/state", json=switches).raise_for_status()
        monkeypatch.setenv("PROFILESVC_PROVIDER__URL", server.base_url)
        rows = json.loads(run("doctor", "--json").stdout)
    provider = next(row for row in rows if row["name"] == "provider")
    assert statuses(rows)["clock"] == "ok"
    assert provider["status"] == ("fail" if refuses else "ok")
    assert ("consent again" in provider["hint"]) == refuses
    assert ("3 accounts: accounts/1, accounts/2, accounts/3" in provider["message"]) != refuses


def test_doctor_checks_the_change_feed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_emulator(tmp_path / "provider.db", clock=SystemClock(), entropy=SystemEntropy(), world=load_world())

    def feed() -> dict[str, str]:
        rows: list[dict[str, str]] = json.loads(run("doctor", "--json").stdout)
        return next(row for row in rows if row["name"] == "change feed")

    with EmbeddedServer(app) as server:
        monkeypatch.setenv("PROFILESVC_PROVIDER__URL", server.base_url)
        assert feed()["status"] == "ok"
        monkeypatch.setenv("PROFILESVC_NOTIFICATIONS__TOPIC", "projects/p/topics/profiles")
        monkeypatch.setenv("PROFILESVC_NOTIFICATIONS__SERVICE_ACCOUNT", "push@p.iam.gserviceaccount.com")
        monkeypatch.setenv("PROFILESVC_NOTIFICATIONS__JWKS_URL", f"{server.base_url}/nothing")
        assert (feed()["status"], "AUDIENCE" in feed()["hint"]) == ("fail", True)
        monkeypatch.setenv("PROFILESVC_NOTIFICATIONS__AUDIENCE", "https://profiles.example/provider/notifications")
        assert (feed()["status"], "JWKS_URL" in feed()["hint"]) == ("fail", True)
        monkeypatch.setenv("PROFILESVC_NOTIFICATIONS__JWKS_URL", f"{server.base_url}/oauth2/v3/certs")
        assert (feed()["status"], "enable" in feed()["hint"]) == ("warn", True)
        run("provider", "notifications", "enable")
        assert feed()["status"] == "ok"
        monkeypatch.setenv("PROFILESVC_PROVIDER__NOTIFICATIONS_URL", "http://127.0.0.1:9")
        assert (feed()["status"], "NOTIFICATIONS_URL" in feed()["hint"]) == ("warn", True)


PRODUCTION = {
    "ENVIRONMENT": "production",
    "BASE_URL": "https://profiles.example",
    "PROVIDER__URL": "https://127.0.0.1:1",
    "DATA_DIR": "new",
}
GOOD = base64.b64encode(bytes(range(32))).decode()
PRODUCTION["TOKENS__KEY_PASSPHRASE"] = GOOD


class TestProduction:
    """Each setting that is missing or does not work is reported with the variable to set."""

    @pytest.fixture
    def found(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
        """The checks of `doctor` with these settings, by name."""

        def look(**settings: str) -> dict[str, Any]:
            for name, value in {**PRODUCTION, **settings}.items():
                monkeypatch.setenv(f"PROFILESVC_{name}", value)
            return {row["name"]: row for row in json.loads(run("doctor", "--json").stdout)}

        return look

    def test_settings_that_production_lacks_are_warnings(self, found: Callable[..., dict[str, Any]]) -> None:
        rows = found()
        for name, variable in (
            ("pepper", "SECRET_PEPPER"),
            ("sign-in", "IDENTITY__ISSUER"),
            ("proxy", "TRUSTED_HOPS"),
            ("mail", "MAIL__URL"),
        ):
            assert rows[name]["status"] == "warn"
            assert f"PROFILESVC_{variable}" in rows[name]["hint"]

    def test_production_with_all_settings_has_no_warnings(
        self, found: Callable[..., dict[str, Any]], redis_server: "RedisServer"
    ) -> None:
        rows = found(
            SECRET_PEPPER=GOOD,
            TOKENS__KEY_PASSPHRASE=GOOD,
            TRUSTED_HOPS="1",
            LIMITS__STORAGE_URL=redis_server.url.replace("redis://", "valkey://"),
        )
        for name in ("settings", "pepper", "passphrase", "proxy", "limits"):
            assert rows[name]["status"] == "ok", rows[name]
            assert GOOD not in rows[name]["message"]

    @pytest.mark.parametrize(
        ("answered", "status"),
        [({}, "ok"), ({"content": b'{"keys": []}'}, "fail"), ({"content": b"{}", "status": 404}, "fail")],
    )
    def test_the_keys_of_the_identity_provider_are_read(
        self, found: Callable[..., dict[str, Any]], answered: dict[str, Any], status: str
    ) -> None:
        with FakeIssuer() as issuer:
            if answered:
                issuer.serve(**answered)
            login = {"ISSUER": "https://login.example", "JWKS_URL": issuer.url, "CLIENT_ID": "us"}
            named = {f"IDENTITY__{name}": value for name, value in login.items()}
            row = found(ENVIRONMENT="development", **named)["sign-in"]
        assert row["status"] == status, row
        assert ("JWKS" in row["hint"]) is (status == "fail")

    @pytest.mark.parametrize("secret", ["secret", "pepper", "correct horse", "a" * 64, "abcabcabcabcabcabcabc"])
    def test_a_secret_that_can_be_guessed_fails(self, found: Callable[..., dict[str, Any]], secret: str) -> None:
        rows = found(ENVIRONMENT="development", SECRET_PEPPER=secret, TOKENS__KEY_PASSPHRASE=secret)
        for name in ("pepper", "passphrase"):
            assert (rows[name]["status"], "openssl" in rows[name]["hint"]) == ("warn", True)
        for name in ("SECRET_PEPPER", "TOKENS__KEY_PASSPHRASE"):
            row = found(**{"SECRET_PEPPER": GOOD, "TOKENS__KEY_PASSPHRASE": GOOD, name: secret})["settings"]
            assert (row["status"], f"PROFILESVC_{name} must have at least 16" in row["message"]) == ("fail", True)

    def test_a_wrong_pepper_fails(self, found: Callable[..., dict[str, Any]], run: Run) -> None:
        create_key(run)
        row = found(ENVIRONMENT="development", DATA_DIR="var", SECRET_PEPPER=GOOD)["readiness"]
        assert (row["status"], "PROFILESVC_SECRET_PEPPER is not the one" in row["message"]) == ("fail", True)

    def test_a_placeholder_instead_of_a_secret_fails(self, found: Callable[..., dict[str, Any]]) -> None:
        rows = found(SECRET_PEPPER="change-me")
        assert (list(rows), rows["settings"]["status"]) == (["settings"], "fail")
        assert "PROFILESVC_SECRET_PEPPER" in rows["settings"]["message"]
        rows = found(ENVIRONMENT="development", TOKENS__KEY_PASSPHRASE="Change_Me_")
        assert (rows["pepper"]["status"], rows["passphrase"]["status"]) == ("warn", "warn")

    def test_a_private_certificate_authority_is_named_as_the_reason(
        self, found: Callable[..., dict[str, Any]], tmp_path: Path
    ) -> None:
        certificate(tmp_path, 30)
        with serving_tls(tmp_path) as url:
            login = {"ISSUER": url, "JWKS_URL": f"{url}/keys", "CLIENT_ID": "us"}
            rows = found(PROVIDER__URL=url, **{f"IDENTITY__{name}": value for name, value in login.items()})
        for name in ("sign-in", "provider", "clock"):
            assert "SSL_CERT_FILE" in rows[name]["hint"], rows[name]

    def test_guides_that_are_not_there_are_a_warning(
        self, found: Callable[..., dict[str, Any]], tmp_path: Path
    ) -> None:
        assert found(GUIDES_FOLDER=str(tmp_path))["guides"]["status"] == "ok"
        row = found(GUIDES_FOLDER=str(tmp_path / "missing"))["guides"]
        assert (row["status"], "PROFILESVC_GUIDES_FOLDER" in row["hint"]) == ("warn", True)

    @pytest.mark.parametrize(
        ("login", "sender", "status", "reason"),
        [
            ("user:p%40ss", "a@p.example", "ok", ""),
            ("user:wrong", "a@p.example", "fail", "responds 535"),
            ("user:p%40ss", None, "fail", "messages are from alerts@profilesvc.invalid"),
        ],
    )
    def test_the_login_at_the_mail_server_is_tried(
        self, found: Callable[..., dict[str, Any]], login: str, sender: str | None, status: str, reason: str
    ) -> None:
        with mail_server() as port:
            named = {"MAIL__URL": f"smtp://{login}@127.0.0.1:{port}"} | ({"MAIL__FROM": sender} if sender else {})
            row = found(ENVIRONMENT="development", **named)["mail"]
        assert (row["status"], "PROFILESVC_MAIL__" in row["hint"]) == (status, status == "fail")
        assert reason in row["message"]
        assert login.partition(":")[2] not in row["message"]

    @pytest.mark.parametrize(
        ("login", "message"), [("user:p%40ss@", "accepts the login"), ("", "accepts connections; there is no login")]
    )
    def test_a_login_at_the_mail_server_is_reported_only_where_there_is_one(
        self, found: Callable[..., dict[str, Any]], login: str, message: str
    ) -> None:
        with mail_server() as port:
            named = {"MAIL__URL": f"smtp://{login}127.0.0.1:{port}", "MAIL__FROM": "a@p.example"}
            assert found(ENVIRONMENT="development", **named)["mail"]["message"] == f"the mail server {message}"

    @pytest.mark.parametrize(
        ("free", "status"),
        [(10**9, "ok"), (10**9 - 1, "warn"), (2 * 10**8, "warn"), (2 * 10**8 - 1, "fail"), (0, "fail")],
    )
    def test_a_disk_with_little_free_space_is_a_problem(self, tmp_path: Path, free: int, status: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
            check = checks_disk.disk(tmp_path / "not-made-yet" / "profilesvc.db")[0]
        assert (check.name, check.status, str(tmp_path) in check.message) == ("disk", status, True)

    @pytest.mark.parametrize(
        ("mount", "kind", "is_network"),
        [
            *(("/", kind, True) for kind in ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "fuse", "virtiofs")),
            *(("/", kind, False) for kind in ("ext4", "xfs", "btrfs", "zfs", "overlay", "tmpfs", "fuseblk")),
            ("DATA", "nfs4", True),
            ("DATA-other", "nfs4", False),
        ],
    )
    def test_a_network_disk_is_a_warning(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mount: str, kind: str, is_network: bool
    ) -> None:
        folder = tmp_path / "with space"
        folder.mkdir()
        point = mount.replace("DATA", str(folder)).replace(" ", "\\040")
        lines = f"21 1 8:1 / / rw shared:1 - ext4 /dev/sda rw\n36 21 0:31 / {point} rw - {kind} host:/x rw\n"
        (tmp_path / "mounts").write_text(lines)
        monkeypatch.setattr(checks_disk, "_MOUNTS", tmp_path / "mounts")
        found = {check.name: check for check in checks_disk.disk(folder / "profilesvc.db")}
        assert ("file system" in found) is is_network
        if is_network:
            assert (found["file system"].status, kind in found["file system"].message) == ("warn", True)

    def test_a_mail_server_that_does_not_respond_fails(self, found: Callable[..., dict[str, Any]]) -> None:
        row = found(MAIL__URL="smtps://user:hush-hush@127.0.0.1:1", MAIL__FROM="a@p.example")["mail"]
        assert (row["status"], "hush" in str(row)) == ("fail", False)

    def test_a_password_for_the_mail_server_in_plain_text_is_rejected(
        self, found: Callable[..., dict[str, Any]]
    ) -> None:
        rows = found(MAIL__URL="smtp://user:hush-hush@mail.example", MAIL__FROM="a@p.example")
        assert (list(rows), rows["settings"]["status"]) == (["settings"], "fail")
        assert "PROFILESVC_MAIL__URL must not send a password in plain text" in rows["settings"]["message"]
        assert "hush" not in rows["settings"]["message"]

    def test_counters_that_do_not_respond_fail(self, found: Callable[..., dict[str, Any]]) -> None:
        for url in ("redis://:hush-hush@127.0.0.1:1/0", "valkey://127.0.0.1:1", "unix:///no/such/socket"):
            row = found(LIMITS__STORAGE_URL=url)["limits"]
            assert (row["status"], "LIMITS__STORAGE_URL" in row["hint"]) == ("fail", True)
            assert "hush" not in row["message"]

    def test_counters_that_reject_writes_fail(
        self, found: Callable[..., dict[str, Any]], redis_server: "RedisServer"
    ) -> None:
        with redis.Redis.from_url(redis_server.url) as client:
            client.replicaof("127.0.0.1", "1")
            try:
                row = found(LIMITS__STORAGE_URL=redis_server.url)["limits"]
            finally:
                client.replicaof("NO", "ONE")
        assert row["status"] == "fail"
        assert "read only replica" in row["message"]

    @pytest.mark.parametrize(("url", "status"), [("", "ok"), ("postgresql+asyncpg://nobody@127.0.0.1:1/none", "warn")])
    def test_several_processes_should_count_together(
        self, found: Callable[..., dict[str, Any]], url: str, status: str
    ) -> None:
        assert found(DATABASE_URL=url)["limits"]["status"] == status


@pytest.mark.postgres
class TestPooler:
    """The pooler between the service and PostgreSQL."""

    @pytest.mark.parametrize(
        ("mode", "robin", "status"),
        [("session", 0, "ok"), ("transaction", 0, "fail"), ("transaction", 1, "fail"), ("statement", 0, "fail")],
    )
    def test_an_older_pooler_must_pool_by_session(
        self, run: Run, postgres: "Postgres", monkeypatch: pytest.MonkeyPatch, mode: str, robin: int, status: str
    ) -> None:
        with pooling(postgres, mode, robin=robin) as url:
            monkeypatch.setenv("PROFILESVC_DATABASE_URL", url)
            result = run("doctor", "--json")
            rows = {row["name"]: row for row in json.loads(result.stdout)}
        assert (rows["pooler"]["status"], result.exit_code) == (status, int(status != "ok"))
        assert mode in rows["pooler"]["message"]
        assert ("pool_mode = session" in rows["pooler"]["hint"]) == (status == "fail")
        assert ("database" in rows) == (status == "ok")
        assert "time limits" not in rows

    @pytest.mark.parametrize(("prepared", "status"), [(100, "ok"), (0, "fail")])
    def test_a_newer_pooler_may_pool_by_transaction(
        self, run: Run, postgres: "Postgres", monkeypatch: pytest.MonkeyPatch, prepared: int, status: str
    ) -> None:
        more = f"max_prepared_statements = {prepared}"
        with pooling(postgres, "transaction", newer=True, more=more) as url:
            monkeypatch.setenv("PROFILESVC_DATABASE_URL", url)
            rows = {row["name"]: row for row in json.loads(run("doctor", "--json").stdout)}
        assert rows["pooler"]["status"] == status
        assert ("max_prepared_statements" in rows["pooler"]["hint"]) == (status == "fail")

    def test_missing_time_limits_are_reported_with_the_statements(
        self, run: Run, postgres: "Postgres", monkeypatch: pytest.MonkeyPatch
    ) -> None:
        postgres.create("unlimited")
        try:
            monkeypatch.setenv("PROFILESVC_DATABASE_URL", postgres.url("unlimited"))
            rows = {row["name"]: row for row in json.loads(run("doctor", "--json").stdout)}
            assert rows["time limits"]["status"] == "warn"
            assert "ALTER ROLE postgres IN DATABASE unlimited SET lock_timeout = '4000'" in rows["time limits"]["hint"]
            assert run("db", "upgrade").exit_code == 0
            assert "time limits" not in statuses(json.loads(run("doctor", "--json").stdout))
        finally:
            postgres.drop("unlimited")

    def test_no_pooler_is_reported_without_one(
        self, run: Run, postgres: "Postgres", monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PROFILESVC_DATABASE_URL", postgres.url("work"))
        rows = statuses(printed(run("doctor", "--json")))
        assert "pooler" not in rows
        assert rows["database"] == "ok"


def test_a_server_that_accepts_requests_is_ready(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of a container or of systemd, on the port of the server."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with EmbeddedServer(create_app(make_settings(Path("var")), Runtime())) as server:
        result = run("doctor", "--ready", "--port", str(server.port))
    assert (result.exit_code, result.stdout.split()[:2]) == (0, ["ok", "readiness"])
    result = run("doctor", "--ready", "--port", str(server.port))
    assert result.exit_code == 1
    assert "does not respond" in result.stdout


def test_a_server_that_stops_is_not_ready(run: Run) -> None:
    app = create_app(make_settings(Path("var")), Runtime())
    with EmbeddedServer(app) as server:
        app.extensions["profilesvc.draining"].set()
        result = run("doctor", "--ready", "--port", str(server.port), "--json")
    [row] = json.loads(result.stdout)
    assert (result.exit_code, row["status"], row["hint"]) == (1, "fail", "the service is shutting down")
    assert "HTTP 503; failed: accepting" in row["message"]


def test_a_url_after_ready_is_wrong_usage(run: Run) -> None:
    assert run("doctor", "--ready", "http://127.0.0.1:1").exit_code == 2


def test_a_running_service_has_no_problems(run: Run, sqlite_template: Path) -> None:
    server = EmbeddedServer(create_app(make_settings(Path("var")), Runtime()))
    server.start()
    try:
        result = run("doctor", server.base_url, "--json")
    finally:
        server.stop()
    found = statuses(json.loads(result.stdout))
    assert {"reachable", "tls", "clock", "database", "migrations", "accepting", "public keys"} <= set(found)
    bad = {name for name, status in found.items() if status == "fail"}
    assert bad <= {"metadata"}, "its base URL is not where it serves"


def test_an_unreachable_server_is_one_failed_check(run: Run) -> None:
    result = run("doctor", "http://127.0.0.1:1", "--json")
    assert result.exit_code == 1
    assert statuses(json.loads(result.stdout)) == {"reachable": "fail"}
    assert run("doctor", "no-url").exit_code == 1


def test_a_healthy_service_has_no_problems() -> None:
    assert set(looked_at().values()) == {"ok"}


@pytest.mark.parametrize(
    ("changed", "name", "status"),
    [
        ({"healthz": (200, b"<html>")}, "reachable", "fail"),
        ({"healthz": (301, b"")}, "reachable", "fail"),
        ({"readyz": (503, {"checks": {"migrations": False}})}, "migrations", "fail"),
        ({"readyz": (404, b"")}, "readiness", "fail"),
        ({".well-known/oauth-authorization-server": (404, {})}, "metadata", "warn"),
        ({".well-known/oauth-authorization-server": (200, {"issuer": "http://x"})}, "metadata", "fail"),
        ({".well-known/jwks.json": (404, {})}, "public keys", "warn"),
        ({".well-known/jwks.json": (200, {"keys": []})}, "public keys", "fail"),
        ({".well-known/jwks.json": (200, {"keys": [{"kid": "a", "kty": "RSA", "d": "x"}]})}, "public keys", "fail"),
    ],
)
def test_each_problem_of_a_running_service_is_reported(changed: dict[str, Any], name: str, status: str) -> None:
    found = looked_at(**changed)
    assert found[name] == status
    assert sum(value != "ok" for value in found.values()) == 1


def test_tls_is_needed_away_from_this_machine() -> None:
    assert looked_at("http://profiles.example")["tls"] == "fail"
    assert looked_at("http://127.0.0.1:8000")["tls"] == "ok"


@pytest.mark.parametrize(("days", "status"), [(30, "ok"), (10, "warn")])
def test_a_certificate_that_expires_soon_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int, status: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate(tmp_path, days)))
    with serving_tls(tmp_path) as url:
        assert {check.name: check.status for check in outside(url)}["tls"] == status


def test_a_server_with_an_untrusted_certificate_is_unreachable(tmp_path: Path) -> None:
    certificate(tmp_path, 30)
    with serving_tls(tmp_path) as url:
        [check] = outside(url)
    assert (check.name, check.status) == ("reachable", "fail")
    assert "certificate" in check.message
    assert "SSL_CERT_FILE" in check.hint


def test_a_proxy_without_a_service_is_not_another_server() -> None:
    for status, words in ((503, "no process of the service"), (404, "a different server")):
        answer = httpx.MockTransport(lambda _, status=status: httpx.Response(status))
        assert words in next(outside("http://127.0.0.1:8000", answer)).hint


@pytest.mark.parametrize(("away", "status"), [(0, "ok"), (5, "ok"), (-30, "warn"), (61, "fail")])
def test_the_clock_of_the_server_is_compared_with_ours(away: int, status: str) -> None:
    now = 1_767_323_045.0
    assert clock(formatdate(now + away, usegmt=True), now).status == status
    assert clock(None, now).status == "warn"
