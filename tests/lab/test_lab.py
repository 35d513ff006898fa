"""The lab: starts fast enough, moves by hand only, and leaves nothing behind."""

import logging
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from profilesvc.client import InvalidToken, ProviderFailed
from profilesvc.lab import Lab, open_lab


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the environment nor a .env of the developer takes part."""
    monkeypatch.chdir(tmp_path)
    for name in ("TARGET", "USER_TOKEN", "LOCATION"):
        monkeypatch.delenv(f"PROFILESVC_LAB__{name}", raising=False)


@pytest.fixture
def lab() -> Iterator[Lab]:
    with open_lab() as opened:
        yield opened


def key_of(lab: Lab) -> dict[str, str]:
    body = {"name": "Plugin", "business_id": lab.business_id, "assigned_location_id": lab.location}
    answer = lab.user("alice").post("/api/v1/developer/credentials", json=body)
    assert answer.status_code == 201
    data: dict[str, str] = answer.json()["data"]
    return data


def test_every_run_gives_the_same_secrets_and_times() -> None:
    def run() -> tuple[object, ...]:
        with open_lab() as lab:
            return (key_of(lab), lab.service(key_of(lab)).headers["Authorization"], lab.time)

    assert run() == run()


def test_other_lifetimes_keep_the_labs_signing_key() -> None:
    """A key of its own for each run would change what the pages show."""

    def run() -> str:
        with open_lab(tokens={"access_ttl_seconds": 3600}) as lab:
            token = lab.service(key_of(lab))
            lab.advance(minutes=60)
            refused = token.get("/api/v1/posts", params={"locationId": lab.location})
            assert refused.json()["error"]["details"]["reason"] == "expired"
            return token.headers["Authorization"]

    assert run() == run()


def test_the_operator_rotates_and_removes_signing_keys_while_clients_run(lab: Lab) -> None:
    key = key_of(lab)
    site, where = lab.service(key), {"locationId": lab.location}
    ((first, state),) = lab.operator.signing_keys()
    assert state == "active"
    second = lab.operator.rotate_signing_key(now=True)
    lab.advance(seconds=10)
    assert dict(lab.operator.signing_keys()) == {first: "retired", second: "active"}
    assert site.get("/api/v1/posts", params=where).status_code == 200
    client = lab.client.service(key)
    assert client.heartbeat()
    lab.operator.remove_signing_key(first)
    answer = site.get("/api/v1/posts", params=where)
    assert answer.json()["error"]["details"]["reason"] == "invalid"
    assert client.heartbeat()
    lab.operator.remove_signing_key(second)
    assert client.heartbeat()  # a new token, asked for by itself
    assert sorted(state for _, state in lab.operator.signing_keys()) == ["active", "removed", "removed"]
    lab.advance(days=1)
    lab.operator.keep_signing_schedule()


def test_the_clock_moves_only_by_advance(lab: Lab) -> None:
    assert lab.time == "2026-01-02T03:04:05.678Z"
    site = lab.service(key_of(lab))
    assert site.get("/api/v1/posts", params={"locationId": lab.location}).status_code == 200
    assert lab.advance(days=91) == lab.time == "2026-04-03T03:04:05.678Z"
    answer = site.get("/api/v1/posts", params={"locationId": lab.location})
    assert answer.json()["error"]["details"]["reason"] == "expired"


def test_the_clients_renew_their_tokens_by_the_labs_clock(lab: Lab) -> None:
    site = lab.client.service(key_of(lab))
    assert site.heartbeat(plugin_version="1").received
    lab.advance(days=91)
    assert site.heartbeat(plugin_version="2").received
    assert [call.path for call in lab.calls() if call.caller == "Plugin"].count("/api/v1/auth/token") == 2


def test_faults_reach_the_caller_without_real_pauses(lab: Lab) -> None:
    lab.fault("status", status=503, times=99)
    with pytest.raises(ProviderFailed):
        lab.client.user("alice").compare(lab.location)
    assert lab.time > "2026-01-02T03:04:05.678Z", "the client's pauses moved the clock"
    assert lab.calls()[-1].provider[-1].endswith("503")
    lab.provider.heal()
    assert lab.client.user("alice").compare(lab.location).differences == []


def test_drift_and_reviews_are_made_at_the_provider(lab: Lab) -> None:
    lab.provider.change(lab.location, websiteUri="https://elsewhere.example/")
    alice = lab.client.user("alice")
    assert [found.field for found in alice.compare(lab.location).differences] == ["websiteUri"]
    post = alice.create_post(lab.location, {"summary": "Open late"})
    lab.provider.review(post.name, "REJECTED")
    lab.advance(seconds=30)
    assert next(alice.iter_posts(lab.location)).state == "REJECTED"
    lab.provider.verify("locations/113")
    assert alice.refresh_verification("locations/113").isVerified
    lab.provider.verify("locations/113", False, complyWithGuidelines={})
    assert alice.refresh_verification("locations/113").verificationState == "SUSPENDED"
    with pytest.raises(ValueError, match="no post"):
        lab.provider.review("locations/111/localPosts/1", "LIVE")


def test_the_operator_holds_keys_and_ends_tokens(lab: Lab) -> None:
    key = key_of(lab)
    site = lab.service(key)
    lab.operator.deactivate(key["client_id"], "billing_issue")
    answer = site.post("/api/v1/api-keys/heartbeat", json={})
    assert answer.json()["error"]["details"]["deactivation_reason"] == "billing_issue"
    lab.operator.reactivate(key["client_id"])
    assert site.post("/api/v1/api-keys/heartbeat", json={}).status_code == 200
    alice = lab.client.user("alice")
    lab.operator.logout("alice")
    with pytest.raises(InvalidToken):
        alice.list_keys()


def test_a_small_quota_can_be_reached() -> None:
    with open_lab(posts_a_month=1) as lab:
        alice = lab.user("alice")
        answers = [
            alice.post("/api/v1/posts", params={"locationId": lab.location}, json={"summary": "News"}) for _ in range(2)
        ]
        assert [answer.status_code for answer in answers] == [201, 429]
        assert lab.summary()["codes"] == ["QUOTA_EXCEEDED"]


def test_the_readers_environment_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILESVC_BASE_URL", "https://other.example")
    monkeypatch.setenv("PROFILESVC_DATABASE_URL", "postgresql+asyncpg://nobody@/nothing")
    with open_lab() as lab:
        assert lab.user("alice").get("/api/v1/developer/credentials").status_code == 200


def test_logs_go_to_a_list_and_nowhere_else(lab: Lab, capfd: pytest.CaptureFixture[str]) -> None:
    lab.fault("status", status=503, times=99)
    lab.user("alice").get(f"/api/v1/sync/comparison/{lab.location}")
    assert "PROVIDER_API_ERROR" in lab.logs[-1]
    assert capfd.readouterr() == ("", "")


def test_closing_is_harmless_twice_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lab = open_lab()
    handlers = len(logging.getLogger("profilesvc").handlers)
    lab.close()
    lab.close()
    assert list(tmp_path.iterdir()) == []
    assert len(logging.getLogger("profilesvc").handlers) == handlers - 1


def test_a_lab_that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    handlers = list(logging.getLogger("profilesvc").handlers)
    (tmp_path / "plans.toml").write_text("[pro]\n")
    with pytest.raises(RuntimeError, match=r"PLANS_FILE: plan catalogue .*pro\.display_name"):
        open_lab(plans_file=tmp_path / "plans.toml")
    with pytest.raises(ValueError, match="environment"):
        open_lab(environment="holiday")
    assert logging.getLogger("profilesvc").handlers == handlers


@pytest.mark.thorough
@pytest.mark.parametrize("ending", ["", "raise SystemExit(0)", "lab.client.service"])
def test_a_forgotten_close_leaves_nothing(ending: str, tmp_path: Path) -> None:
    source = f"from profilesvc.lab import open_lab\nlab = open_lab()\nlab.user('alice').get('/healthz')\n{ending}"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        env={"TMPDIR": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_a_user_signs_in_at_the_identity_provider(lab: Lab) -> None:
    alice = lab.client.signed_in("alice", lab.id_token("alice", nonce="n-1"), "n-1")
    assert alice.businesses().businesses[0].name == "Harbour Coffee"
    assert [call.line for call in lab.calls()] == ["POST /api/v1/auth/token 200", "GET /api/v1/businesses 200"]
    with pytest.raises(InvalidToken):
        lab.client.anonymous().exchange_id_token("a.b.c")
    with pytest.raises(InvalidToken):
        lab.client.signed_in("alice", lab.id_token("alice", audience="newsletter"))
    assert lab.client.signed_in("alice", lab.id_token("alice"))
    with pytest.raises(ValueError, match="cannot sign in"):
        lab.id_token("nobody@example.com")


def test_the_operator_restarts_the_service_and_nothing_is_lost(lab: Lab) -> None:
    """A request in flight is answered; keys, tokens and clients go on."""
    key = key_of(lab)
    site, alice = lab.service(key), lab.user("alice")
    assert alice.get("/api/v1/sync/comparison/111").status_code == 200
    lab.operator.drain()
    assert lab.anonymous.get("/readyz").json()["checks"]["accepting"] is False
    lab.fault("delay", seconds=1)
    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(alice.get, "/api/v1/sync/comparison/111")
        while "requests_in_flight 2.0" not in httpx.get(f"{lab.url}/metrics").text:
            assert not under_way.done()
        lab.operator.restart()
        assert under_way.result().status_code == 200
    assert lab.anonymous.get("/readyz").status_code == 200
    assert site.get("/api/v1/posts", params={"locationId": "111"}).status_code == 200
    assert lab.operator.signing_keys()[0][1] == "active"


def test_while_the_database_is_locked_writes_are_rejected_and_reads_continue(lab: Lab) -> None:
    alice = lab.user("alice")
    with lab.operator.database_held():
        body = {"name": "New", "business_id": 10, "assigned_location_id": "locations/111"}
        refused = alice.post("/api/v1/developer/credentials", json=body)
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert alice.get("/api/v1/external-business/locations").status_code == 200
    key_of(lab)
