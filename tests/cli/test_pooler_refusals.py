"""Commands behind a pooler that breaks statements, and for a role without time limits."""

import asyncio
from pathlib import Path

import pytest

from conftest import Postgres, make_settings
from profilesvc.bootstrap import Runtime, open_services
from profilesvc.database import time_limits
from profilesvc.settings import SettingsError
from support.command_line import Run, refused
from support.database.pgbouncer import pooling

pytestmark = pytest.mark.postgres
REMEDY = "use PgBouncer 1.21 or later with max_prepared_statements above 0, or set pool_mode = session"


@pytest.mark.parametrize(
    ("mode", "newer", "reason"),
    [
        ("transaction", False, "it pools by transaction and does not support prepared statements"),
        ("transaction", True, "it pools by transaction and does not support prepared statements"),
        ("statement", False, "it pools by statement"),
    ],
)
async def test_one_that_breaks_statements_is_refused_at_the_start(
    postgres: Postgres, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, newer: bool, reason: str
) -> None:
    with pooling(postgres, mode, newer=newer, more="max_prepared_statements = 0" if newer else "") as url:
        for _ in range(2):  # the first one may leave a statement behind
            with pytest.raises(SettingsError) as refusal:
                async with open_services(make_settings(tmp_path, url), Runtime()):
                    pass
            assert reason in str(refusal.value)
            assert REMEDY in str(refusal.value)
        monkeypatch.setenv("PROFILESVC_DATABASE_URL", url)
        line = await asyncio.to_thread(lambda: refused(run("db", "upgrade")))
        assert reason in line


def test_if_they_cannot_be_set_the_statements_are_printed(
    postgres: Postgres, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.create("unlimited")
    monkeypatch.setenv("PROFILESVC_DATABASE_URL", postgres.url("unlimited"))
    assert run("db", "upgrade").exit_code == 0
    postgres.run("ALTER ROLE postgres IN DATABASE unlimited RESET ALL")
    postgres.run("ALTER DATABASE unlimited SET default_transaction_read_only = on")
    result = run("db", "upgrade")
    assert result.exit_code == 0
    for name, value in time_limits.LIMITS.items():
        assert f"ALTER ROLE postgres IN DATABASE unlimited SET {name} = '{value}';" in result.stderr
    assert "read-only transaction" in result.stderr
    postgres.drop("unlimited")
