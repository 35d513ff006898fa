"""Rates as they are written, and what is said where processes would count them apart."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import make_settings
from profilesvc.cli._process.workers import workers_warning
from profilesvc.domain.rates import Window
from profilesvc.domain.time import HOUR, MINUTE, SECOND
from profilesvc.limits.settings import LimitSettings
from profilesvc.settings import SettingsError, load


@pytest.mark.parametrize(
    ("text", "limit", "length"),
    [
        ("300/minute", 300, MINUTE),
        ("10/15 minutes", 10, 15 * MINUTE),
        ("1/day", 1, 24 * HOUR),
        ("600/minute burst 200", 800, 80 * SECOND),
        ("120/minute burst 60", 180, 90 * SECOND),
    ],
)
def test_a_rate_is_a_moving_window(text: str, limit: int, length: int) -> None:
    assert Window.of(text) == Window(limit, length)


@pytest.mark.parametrize(
    "text", ["", "0/minute", "10", "10/week", "-1/hour", "10/minute burst", "1e3/minute", "\u0661/hour"]
)
def test_invalid_rates_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="must be a rate such as 300/minute"):
        Window.of(text)


@given(limit=st.integers(1, 999_999), burst=st.integers(1, 999_999))
def test_a_burst_does_not_raise_the_rate(limit: int, burst: int) -> None:
    window = Window.of(f"{limit}/minute burst {burst}")
    assert window.limit == limit + burst
    assert window.length % SECOND == 0
    assert window.rate <= limit / MINUTE < window.limit / (window.length - SECOND)


@pytest.mark.parametrize(
    ("workers", "limits", "warns"),
    [
        (1, LimitSettings(), False),
        (2, LimitSettings(), True),
        (2, LimitSettings(enabled=False), False),
        (2, LimitSettings.model_validate({"storage_url": "redis://127.0.0.1"}), False),
    ],
)
def test_several_workers_with_their_own_counters_log_it(
    workers: int, limits: LimitSettings, warns: bool, tmp_path: Path
) -> None:
    said = workers_warning(make_settings(tmp_path, limits=limits), workers)
    assert (said is not None) is warns
    assert said is None or "PROFILESVC_LIMITS__STORAGE_URL=redis://" in said


def test_a_setting_is_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILESVC_LIMITS__READS_PER_KEY", "5/minute burst 2")
    assert load(_env_file=None).limits.reads_per_key == Window(7, 84 * SECOND)
    monkeypatch.setenv("PROFILESVC_LIMITS__READS_PER_KEY", "many")
    with pytest.raises(SettingsError, match=r"LIMITS__READS_PER_KEY: .*must be a rate such as 300/minute"):
        load(_env_file=None)
    monkeypatch.setenv("PROFILESVC_LIMITS__READS_PER_KEY", "5/minute")
    monkeypatch.setenv("PROFILESVC_LIMITS__STORAGE_URL", "mysql://x")
    with pytest.raises(SettingsError, match=r"LIMITS__STORAGE_URL: .*must be memory://"):
        load(_env_file=None)
