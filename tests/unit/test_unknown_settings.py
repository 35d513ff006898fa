"""A variable that is no setting is refused, wherever it is written, with the name that was probably meant."""

from collections.abc import Callable
from pathlib import Path

import pytest

from profilesvc.settings import SettingsError, forbid_in_production, load

MEANT = {
    "PROFILESVC_DATABSE_URL": "PROFILESVC_DATABASE_URL",
    "PROFILESVC_PROVIDER_URL": "PROFILESVC_PROVIDER__URL",
    "PROFILESVC_IDENTITY_ISSUER": "PROFILESVC_IDENTITY__ISSUER",
    "PROFILESVC_TOKENS_KEY_PASSPHRASE": "PROFILESVC_TOKENS__KEY_PASSPHRASE",
    "PROFILESVC_LIMITS_STORAGE_URL": "PROFILESVC_LIMITS__STORAGE_URL",
    "PROFILESVC_METRICS_TOKEN": "PROFILESVC_METRICS__TOKEN",
    "PROFILESVC_DATABASE__URL": "PROFILESVC_DATABASE_URL",
    "PROFILESVC_ACCESS_LOG__": "PROFILESVC_ACCESS_LOG",
    "PROFILESVC_SECRET_PEPPER__FILE": "PROFILESVC_SECRET_PEPPER_FILE",
}


@pytest.mark.parametrize(("written", "meant"), MEANT.items())
def test_a_misspelt_setting_gets_a_suggestion(written: str, meant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(written, "x")
    with pytest.raises(SettingsError, match=f"{written} is not a setting\\. Did you mean {meant}\\?"):
        load(_env_file=None)


def test_a_misspelt_setting_in_the_file_is_rejected_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".env").write_text("OTHER=1\nPROFILESVC_DATABSE_URL=x\n", "utf-8")
    with pytest.raises(SettingsError, match="Did you mean PROFILESVC_DATABASE_URL"):
        load()
    Path(".env").write_text("OTHER=1\nPROFILESVC_TRUSTED_HOPS=2\n", "utf-8")
    assert load().trusted_hops == 2


@pytest.mark.parametrize("read", [load, lambda: forbid_in_production("the demo data")])
def test_the_file_is_utf_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[], object]) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".env").write_bytes(b"PROFILESVC_TRUSTED_HOPS=\xff\n")
    with pytest.raises(SettingsError, match=r"^\.env is not UTF-8 text$"):
        read()


def test_a_message_names_the_setting_and_the_rule_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILESVC_DATABASE_URL", "mysql://x")
    with pytest.raises(SettingsError) as refused:
        load(_env_file=None)
    assert str(refused.value).startswith("PROFILESVC_DATABASE_URL: must start with ")


@pytest.mark.parametrize("value", ["x", "1", "[]", "{"])
def test_a_message_names_a_group_that_is_no_object(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILESVC_METRICS", value)
    with pytest.raises(SettingsError, match=r"^PROFILESVC_METRICS: "):
        load(_env_file=None)


@pytest.mark.parametrize("name", ["GUIDES_FOLDER", "PLANS_FILE", "TOKENS__SIGNING_KEY_FILE", "DASHBOARD__LOGO_FILE"])
def test_an_empty_path_is_not_the_current_folder(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"PROFILESVC_{name}", "")
    value: object = load(_env_file=None)
    for part in name.lower().split("__"):
        value = getattr(value, part)
    assert value is None


def test_an_empty_data_dir_is_the_default_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILESVC_DATA_DIR", "")
    assert load(_env_file=None).data_dir == Path("var")
