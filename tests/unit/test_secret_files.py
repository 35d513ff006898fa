"""A secret can be given as a file, and no message repeats what the file contains."""

import re
from pathlib import Path

import pytest

from profilesvc.settings import PREFIX, Settings, SettingsError, load
from profilesvc.settings.secret_files import variables
from support.repository import DOCS

VALUES = {
    "DATABASE_URL": "postgresql+asyncpg://user:hush-hush@host/name",
    "DATABASE_REPLICA_URL": "postgresql+asyncpg://user:hush-hush@standby/name",
    "LIMITS__STORAGE_URL": "redis://:hush-hush@host/0",
    "MAIL__URL": "smtps://user:hush-hush@host",
}


def named(settings: Settings, variable: str) -> str:
    """Return the value of a setting by its variable."""
    value: object = settings
    for part in variable.removeprefix(PREFIX).lower().split("__"):
        value = getattr(value, part)
    return value if isinstance(value, str) else value.get_secret_value()  # type: ignore[attr-defined]


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text("hush-hush-hush-hush\n", "utf-8")
    return path


def refused(**settings: str | Path | None) -> str:
    with pytest.raises(SettingsError) as error:
        load(**{"_env_file": None, **settings})
    assert "hush" not in str(error.value)
    return str(error.value)


def test_each_secret_can_be_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {}
    for variable in variables(Settings, PREFIX, secret=True):
        wanted[variable] = VALUES.get(variable.removeprefix(PREFIX), f"hush-hush-{variable}")
        (tmp_path / variable).write_text(wanted[variable] + "\n", "utf-8")
        monkeypatch.setenv(f"{variable}_FILE", str(tmp_path / variable))
    settings = load(_env_file=None)
    assert {variable: named(settings, variable) for variable in wanted} == wanted
    assert len(wanted) == 11


def test_the_page_marks_the_same_settings_as_secrets() -> None:
    marked = re.findall(r"^\| `(\w+)` \| [^|]* \| \*\*Secret\.\*\*", (DOCS / "settings.md").read_text("utf-8"), re.M)
    assert {f"{PREFIX}{name}" for name in marked} == set(variables(Settings, PREFIX, secret=True))


@pytest.mark.parametrize(
    ("end", "kept"), [("", ""), ("\n", ""), ("\r\n", ""), ("\n\n", ""), (" ", " "), ("\t\n", "\t")]
)
def test_only_line_breaks_at_the_end_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, kept: str
) -> None:
    (tmp_path / "secret").write_bytes(b" a\nb" + end.encode())
    monkeypatch.setenv("PROFILESVC_SECRET_PEPPER_FILE", str(tmp_path / "secret"))
    assert load(_env_file=None).secret_pepper.get_secret_value() == " a\nb" + kept


def test_a_group_keeps_its_other_settings(secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILESVC_PROVIDER__CLIENT_ID", "id")
    monkeypatch.setenv("profilesvc_provider__client_secret_file", str(secret))
    provider = load(_env_file=None).provider
    assert (provider.client_id, provider.client_secret.get_secret_value()) == ("id", "hush-hush-hush-hush")


def test_the_file_of_settings_can_name_a_secret(secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(secret.parent)
    Path(".env").write_text(f"PROFILESVC_METRICS__TOKEN_FILE={secret}\nPROFILESVC_METRICS__PORT=9100\n", "utf-8")
    monkeypatch.setenv("PROFILESVC_METRICS__TOKEN", "")
    metrics = load().metrics
    assert (metrics.token.get_secret_value(), metrics.port) == ("hush-hush-hush-hush", 9100)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PROFILESVC_TOKENS__KEY_PASSPHRASE", "hush-1"),
        ("PROFILESVC_TOKENS", '{"key_passphrase": "hush-1"}'),
    ],
)
@pytest.mark.parametrize("in_file", [False, True])
def test_both_are_rejected(
    secret: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, in_file: bool
) -> None:
    monkeypatch.setenv("PROFILESVC_TOKENS__KEY_PASSPHRASE_FILE", str(secret))
    settings = secret.parent / "settings"
    settings.write_text(f"{variable}='{value}'\n" if in_file else "", "utf-8")
    if not in_file:
        monkeypatch.setenv(variable, value)
    message = refused(_env_file=settings)
    assert message.startswith("PROFILESVC_TOKENS__KEY_PASSPHRASE and PROFILESVC_TOKENS__KEY_PASSPHRASE_FILE are both")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "No such file"),
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"hush\xff", "is not UTF-8"),
        (b"hush" * 20_000, "is larger"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, problem: str
) -> None:
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv("PROFILESVC_IDENTITY__CLIENT_SECRET_FILE", str(path))
    message = refused()
    assert message.startswith("PROFILESVC_IDENTITY__CLIENT_SECRET_FILE: ")
    assert str(path) in message
    assert problem in message


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, reason in ((tmp_path, "Is a directory"), ("/proc/self/mem", "Input/output error")):
        monkeypatch.setenv("PROFILESVC_SECRET_PEPPER_FILE", str(path))
        assert refused() == f"PROFILESVC_SECRET_PEPPER_FILE: cannot read {path}: {reason}"
    monkeypatch.setenv("PROFILESVC_SECRET_PEPPER_FILE", "")
    assert refused() == "PROFILESVC_SECRET_PEPPER_FILE must be the path of a file"


def test_the_content_is_checked_like_a_value(secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret.write_text("hush hush", "utf-8")
    monkeypatch.setenv("PROFILESVC_METRICS__TOKEN_FILE", str(secret))
    assert refused().startswith("PROFILESVC_METRICS__TOKEN: must have 16 to 512")


def test_other_settings_have_no_file(secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILESVC_SECRET_PEPER_FILE", str(secret))
    assert "Did you mean PROFILESVC_SECRET_PEPPER_FILE?" in refused()
    monkeypatch.delenv("PROFILESVC_SECRET_PEPER_FILE")
    monkeypatch.setenv("PROFILESVC_BASE_URL_FILE", str(secret))
    assert "PROFILESVC_BASE_URL_FILE is not a setting." in refused()
