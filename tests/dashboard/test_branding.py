"""The operator's name and logo: on every page, in mails, and checked at the start."""

from pathlib import Path

import pytest

from conftest import Change
from profilesvc.services.context import Services
from profilesvc.settings import DashboardSettings, SettingsError, load
from support.browser.dashboard import Browser
from support.program import command

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 4"><circle cx="2" cy="2" r="2"/></svg>'
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def logo(folder: Path, name: str = "logo.svg", content: str | bytes = SVG) -> Path:
    """A file with a logo."""
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


async def test_name_and_logo_are_on_every_page(
    alice_there: Browser, visitor: Browser, services: Services, change: Change, tmp_path: Path
) -> None:
    own = DashboardSettings(product_name="Harbour & Sons", logo_file=logo(tmp_path))
    change(settings=services.settings.model_copy(update={"dashboard": own}))
    for browser, path, status in (
        (alice_there, "/dashboard", 200),
        (alice_there, "/dashboard/nothing", 404),
        (visitor, "/dashboard/sign-in", 200),
    ):
        page = await browser.open(path, status)
        assert "Harbour & Sons" in page.text
        assert "· Harbour &amp; Sons</title>" in browser.answer.text
        assert '<img src="/dashboard/logo" alt="">' in browser.answer.text
        assert "profilesvc" not in page.text
    answer = await visitor.http.get("/dashboard/logo")
    assert (answer.text, answer.headers["Content-Type"]) == (SVG, "image/svg+xml")
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert policy.endswith("sandbox")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_without_a_logo_there_is_none(alice_there: Browser) -> None:
    assert "/dashboard/logo" not in alice_there.answer.text
    assert (await alice_there.http.get("/dashboard/logo")).status_code == 404


@pytest.mark.in_process("a process reads the file of a path once")
async def test_a_png_has_its_type(visitor: Browser, services: Services, change: Change, tmp_path: Path) -> None:
    own = DashboardSettings(logo_file=logo(tmp_path, "logo.PNG", PNG))
    change(settings=services.settings.model_copy(update={"dashboard": own}))
    answer = await visitor.http.get("/dashboard/logo")
    assert (answer.content, answer.headers["Content-Type"]) == (PNG, "image/png")


BAD_LOGOS: list[tuple[str, str | bytes, str]] = [
    ("logo.gif", PNG, "must end with .svg or .png"),
    ("logo.png", SVG, "is not a PNG file"),
    ("logo.svg", "<html></html>", "is not an SVG file"),
    ("logo.svg", "<svg", "is not an SVG file"),
    ("logo.svg", SVG.replace("<circle", "<script>alert(1)</script><circle"), "has scripts"),
    ("logo.svg", SVG.replace("<circle", '<circle onload="alert(1)"'), "has scripts"),
    ("logo.svg", '<!DOCTYPE svg [<!ENTITY a "aa">]>' + SVG, "has scripts"),
    ("logo.svg", SVG.replace("<circle", "<script/><circle").encode("utf-16"), "must be in UTF-8"),
    ("logo.svg", f'<?xml version="1.0" encoding="none"?>{SVG}', "logo.svg must be in UTF-8"),
    ("logo.svg", f'<?xml version="1.0" encoding="shift_jis"?>{SVG}', "logo.svg must be in UTF-8"),
    ("logo.svg", SVG + " " * 100_000, "is larger than 100 kB"),
]


@pytest.mark.parametrize(("name", "content", "problem"), BAD_LOGOS, ids=[f"{row[0]}-{row[2]}" for row in BAD_LOGOS])
def test_a_bad_logo_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str | bytes, problem: str
) -> None:
    monkeypatch.setenv("PROFILESVC_DASHBOARD__LOGO_FILE", str(logo(tmp_path, name, content)))
    with pytest.raises(SettingsError, match=f"^PROFILESVC_DASHBOARD__LOGO_FILE: .*{problem}"):
        load(_env_file=None)


@pytest.mark.parametrize("words", [["doctor"], ["serve", "--port", "0"]], ids=" ".join)
def test_a_missing_logo_stops_the_start_and_the_doctor(tmp_path: Path, words: list[str]) -> None:
    done = command(tmp_path, *words, DASHBOARD__LOGO_FILE=str(tmp_path / "none.svg"))
    assert done.returncode != 0
    assert "PROFILESVC_DASHBOARD__LOGO_FILE" in done.stdout + done.stderr
    assert "cannot be read: No such file or directory" in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["", "   ", "x" * 41, "Harbour\r\nBcc: x@example.com"])
def test_a_bad_name_stops_the_start(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("PROFILESVC_DASHBOARD__PRODUCT_NAME", name)
    with pytest.raises(SettingsError, match=r"^PROFILESVC_DASHBOARD__PRODUCT_NAME: must have 1 to 40 printable"):
        load(_env_file=None)
