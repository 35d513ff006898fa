"""A lab that is closed, opened again, given what it does not know; and its dashboard."""

import re
import tempfile
import threading
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import nbformat
import pytest

from profilesvc.lab import Lab, LabClosed, open_lab
from profilesvc.lab.kernels import kernel_for


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PROFILESVC_LAB__TARGET", raising=False)


ASKED: dict[str, Callable[[Lab], object]] = {
    "clock": lambda lab: lab.advance(hours=1),
    "user": lambda lab: lab.user("alice"),
    "client": lambda lab: lab.client.user("alice"),
    "anonymous client": lambda lab: lab.client.anonymous(),
    "connection": lambda lab: lab.anonymous.get("/healthz"),
    "identity": lambda lab: lab.id_token("alice"),
    "fault": lambda lab: lab.fault("status"),
    "provider": lambda lab: lab.provider.profile("locations/111"),
    "operator": lambda lab: lab.operator.signing_keys(),
    "dashboard": lambda lab: lab.dashboard,
}


def test_every_use_of_a_closed_lab_is_an_error() -> None:
    with open_lab() as lab:
        profiles, key = lab.client.user("alice"), {"client_id": "x", "client_secret": "y"}
        before = lab.summary()
    asked: dict[str, Callable[[Lab], object]] = {
        **ASKED,
        "older client": lambda _: profiles.list_keys(),
        "service": lambda lab: lab.service(key),
    }
    for name, ask in asked.items():
        with pytest.raises(LabClosed, match="Run the first cell of the page again"):
            print(name, ask(lab))
    assert lab.summary() == before, "what was recorded can still be read"


def test_a_page_shows_one_line_for_it(tmp_path: Path) -> None:
    sources = [
        "from profilesvc.lab import open_lab\nlab = open_lab()\nalice = lab.user('alice')",
        "lab.close()",
        "lab.advance(days=1)",
        "for _ in range(2):\n    alice.get('/api/v1/businesses')",
    ]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    client = kernel_for(nbformat.v4.new_notebook(cells=cells), tmp_path)
    client.allow_errors = True
    page = client.execute()
    shown = [output for cell in page.cells[2:] for output in cell.outputs]
    assert [output.ename for output in shown] == ["LabClosed", "LabClosed"]
    assert all(len(output.traceback) == 1 and "\n" not in output.traceback[0] for output in shown)


def test_another_lab_closes_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    first = open_lab()
    with open_lab() as second:
        with pytest.raises(LabClosed):
            first.user("alice")
        assert len(list(tmp_path.glob("profilesvc-lab-*"))) == 1
        third = open_lab()
        assert second.user("alice").get("/api/v1/businesses").status_code == 200, "its own block closes it"
        open_lab(keep_open=True).close()
        assert third.user("alice").get("/api/v1/businesses").status_code == 200
        third.close()


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [
        ({"limts": {"enabled": False}}, "limits"),
        ({"limits": {"enbled": False}}, "limits.enabled"),
        ({"post_a_month": 3}, "posts_a_month"),
        ({"provider": {"timeout_second": 1}}, "provider.timeout_seconds"),
    ],
)
def test_an_unknown_setting_is_rejected_with_a_suggestion(wrong: dict[str, Any], nearest: str) -> None:
    with pytest.raises(TypeError, match=f"Did you mean '{re.escape(nearest)}'"):
        open_lab(**wrong)


def form_of(page: str) -> dict[str, str]:
    found = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', page)
    return {name: unescape(value) for name, value in found}


@pytest.mark.parametrize("link", ["dashboard", "url"])
def test_a_browser_can_sign_in_to_the_dashboard_of_the_lab(link: str) -> None:
    """Under the address that a browser has, whatever the lab's service calls itself; over the same data and clock."""
    threads = threading.active_count()
    with open_lab() as lab, httpx.Client(follow_redirects=True, trust_env=False, timeout=60) as browser:
        body = {"name": "Made in the page", "business_id": 10, "assigned_location_id": lab.location}
        assert lab.user("alice").post("/api/v1/developer/credentials", json=body).status_code == 201
        lab.advance(days=40)
        page = browser.get(lab.dashboard if link == "dashboard" else f"{lab.url}/dashboard")
        (start,) = re.findall(r'href="([^"]*/sign-in/start[^"]*)"', page.text)
        page = browser.get(unescape(start))
        page = browser.post(str(page.url.copy_with(query=None)), data={**form_of(page.text), "subject": "demo-1"})
        assert page.status_code == 200, page.text
        assert str(page.url).startswith(lab.dashboard)
        assert "Made in the page" in browser.get(f"{lab.dashboard}/keys").text
    assert threading.active_count() == threads
