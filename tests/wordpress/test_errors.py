"""Every code of the error table has words for the owner, and a decision whether to repeat the request."""

import html
import json
import re
from pathlib import Path

import pytest

from support.clients.recording_proxy import RecordingProxy, Scripted
from support.clients.wordpress import Site
from support.repository import DOCS, sections

pytestmark = pytest.mark.wordpress

HEARTBEAT = "/api/v1/api-keys/heartbeat"
ROW = re.compile(r"^\| `([A-Z_]+)` \| (\d+) \|", re.MULTILINE)
REPEATED = {
    "REQUEST_TIMEOUT", "CONFLICT", "IDEMPOTENCY_IN_PROGRESS", "RATE_LIMITED", "INTERNAL_ERROR", "SERVICE_UNAVAILABLE",
}  # fmt: skip
REASONS = ["billing_issue", "plan_downgrade", "security_concern", "user_requested", "a_new_reason"]
UNEXPECTED = "Something unexpected went wrong"
TRY = """
foreach (json_decode(getenv('CODES')) as $code) {
    $store->forget(Store::PROBLEMS, Store::PAUSE, Store::STOPPED);
    $result = $heartbeat->beat();
    $found[] = [$result->code, $result->isFinal(), notices()];
}
return $found;
"""


def codes() -> dict[str, int]:
    """The error table of the contract: codes and their statuses."""
    return {
        code: int(status) for code, status in ROW.findall(sections(Path(DOCS / "api-contract.md"))["error-catalogue"])
    }


def failure(status: int, code: str, **details: object) -> Scripted:
    error = {"code": code, "message": "A message for developers.", "details": details}
    return Scripted(status, {"status": "error", "error": error}, {"X-Request-Id": "request-of-the-test"})


def tried(site: Site, service: RecordingProxy, *responses: Scripted) -> list[tuple[str, bool, str]]:
    """Send a heartbeat for each response, and return the codes, whether they are final, and the notices."""
    twice = [response for each in responses for response in ([each, each] if each.status == 401 else [each])]
    service.script(HEARTBEAT, *twice)
    found = site.run(TRY, CODES=json.dumps([0 for _ in responses]))
    return [(code, final, html.unescape(shown)) for code, final, shown in found]


def test_every_code_has_words_and_a_decision(connected: Site, service: RecordingProxy) -> None:
    table = codes()
    assert len(table) >= 20
    found = tried(connected, service, *(failure(status, code) for code, status in table.items()))
    assert [code for code, _, _ in found] == list(table)
    assert {code for code, final, _ in found if not final} == REPEATED
    for code, _, shown in found:
        assert shown.count("<p>") == 1, code
        assert UNEXPECTED not in shown, code
        assert "developers" not in shown, code
        assert "request-of-the-test" in shown, code


def test_every_reason_of_a_deactivation_has_words(connected: Site, service: RecordingProxy) -> None:
    details = {"deactivated_at": "2026-01-02T03:04:05Z", "upgrade_url": "https://bills.example/?a=1&b=2"}
    answers = [failure(403, "AUTH_INSUFFICIENT_PERMISSIONS", deactivation_reason=each, **details) for each in REASONS]
    found = tried(connected, service, *answers)
    assert len({shown for _, _, shown in found}) == len(REASONS)
    linked = ['<a href="https://bills.example/?a=1&b=2">Open billing</a>' in shown for _, _, shown in found]
    assert linked == [True, True, False, False, False]


def test_other_responses_are_handled(connected: Site, service: RecordingProxy) -> None:
    pages: list[Scripted] = [
        Scripted(502, "<html>Bad gateway</html>"),
        Scripted(200, "<html>Log in to the hotel's network</html>"),
        Scripted(200, "[]"),
        Scripted(500, '{"error": "text"}'),
        Scripted(200, ""),
        Scripted(0, ""),
        failure(418, "A_NEW_CODE"),
    ]
    found = tried(connected, service, *pages)
    assert [code for code, _, _ in found] == ["UNREADABLE"] * 5 + ["NO_CONNECTION", "A_NEW_CODE"]
    assert UNEXPECTED in found[-1][2]


def test_texts_of_the_api_are_escaped(connected: Site, service: RecordingProxy) -> None:
    urls = [("<script>", "https://bills.example"), ("billing_issue", "javascript:alert(1)")]
    answers = [
        failure(403, "AUTH_INSUFFICIENT_PERMISSIONS", deactivation_reason=reason, upgrade_url=url)
        for reason, url in urls
    ]
    fields = failure(400, "VALIDATION_ERROR", errors=[{"in": "body", "field": "<script>", "problem": "x"}])
    found = tried(connected, service, *answers, fields)
    assert ["<script" in shown or "javascript" in shown for _, _, shown in found[:2]] == [False, False]
    raw = connected.run("return notices();")
    assert "&lt;script&gt;" in raw
    assert "<script" not in raw


def test_a_rejected_field_is_named_in_the_words_of_the_form(connected: Site, service: RecordingProxy) -> None:
    errors = [{"in": "body", "field": f"storefrontAddress.{name}", "problem": "x"} for name in ("regionCode", "name")]
    provider = failure(502, "PROVIDER_API_ERROR", fields=["phone_numbers.primary_phone"], retryable=False)
    found = tried(connected, service, failure(400, "VALIDATION_ERROR", errors=errors), provider)
    assert "not accepted: Address. Correct" in found[0][2]
    assert "not accepted: Phone. Correct" in found[1][2]


@pytest.mark.parametrize(("status", "code"), [(429, "RATE_LIMITED"), (503, "SERVICE_UNAVAILABLE")])
def test_retry_after_is_respected(connected: Site, service: RecordingProxy, status: int, code: str) -> None:
    service.error(HEARTBEAT, status, code, Retry_After="900")
    assert connected.beat() == code
    scheduled = connected.run("return wp_next_scheduled('profilesvc_heartbeat', ['once']) - time();")
    assert 800 <= scheduled <= 900
    before = len(service.requests)
    problem = connected.run("return $problems->all();")
    assert connected.beat() == "WAITING"
    assert len(service.requests) == before
    assert connected.run("return $problems->all();") == problem  # what waits has not hidden the cause
    assert problem["connection"]["code"] == code
    service.reset(service.target)
    assert connected.beat(days=0.02) == "OK"
