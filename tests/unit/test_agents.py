"""The names of browsers and systems in User-Agents."""

import pytest

from profilesvc.domain.agents import summary

_KIT = "AppleWebKit/537.36 (KHTML, like Gecko)"
_APPLE = "AppleWebKit/605.1.15 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("user_agent", "browser", "system"),
    [
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0", "Firefox", "Windows"),
        (f"Mozilla/5.0 (X11; Linux x86_64) {_KIT} Chrome/126.0.0.0 Safari/537.36", "Chrome", "Linux"),
        (f"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) {_KIT} Chrome/126.0 Safari/537.36", "Chrome", "ChromeOS"),
        (f"Mozilla/5.0 (Windows NT 10.0) {_KIT} Chrome/126.0 Safari/537.36 Edg/126.0.0.0", "Edge", "Windows"),
        (f"Mozilla/5.0 (Windows NT 10.0) {_KIT} Chrome/126.0 Safari/537.36 OPR/112.0", "Opera", "Windows"),
        (f"Mozilla/5.0 (Macintosh; Intel Mac OS X 14_5) {_APPLE} Version/17.5 Safari/605.1.15", "Safari", "macOS"),
        (
            f"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) {_APPLE} Version/17.5 Mobile/15E148 Safari/604.1",
            "Safari",
            "iPhone",
        ),
        (
            f"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) {_APPLE} CriOS/126.0 Safari/604.1",
            "Chrome",
            "iPhone",
        ),
        (f"Mozilla/5.0 (iPad; CPU OS 17_5 like Mac OS X) {_APPLE} FxiOS/127.0 Safari/605.1.15", "Firefox", "iPad"),
        (
            f"Mozilla/5.0 (Linux; Android 14; SM-S901B) {_KIT} SamsungBrowser/25.0 Chrome/121.0 Mobile Safari/537.36",
            "Samsung Internet",
            "Android",
        ),
        ("Mozilla/5.0 (compatible; Somebot/1.0)", "", ""),
        ("curl/8.8.0", "curl", ""),
        ("profilesvc-client", "profilesvc-client", ""),
        ("python-httpx/0.28.1", "python-httpx", ""),
        ("", "", ""),
        ("<script>alert(1)</script>", "", ""),
        ("x" * 5_000, "x" * 40, ""),
    ],
)
def test_a_user_agent_is_named(user_agent: str, browser: str, system: str) -> None:
    assert summary(user_agent) == (browser, system)
