"""The tests do not depend on the settings of the machine that they run on."""

import os

import asyncpg
import pytest

from support.machine import NO_SERVER, foreign


def test_the_environment_has_nothing_of_the_machine() -> None:
    assert {name: os.environ[name] for name in foreign(os.environ)} == {"PGHOST": NO_SERVER}  # set by conftest.py


def test_variables_that_lead_elsewhere_are_listed() -> None:
    elsewhere = ["PROFILESVC_DATABASE_URL", "profilesvc_base_url", "PGHOST", "PGSSLMODE", "http_proxy", "ALL_PROXY"]
    assert foreign([*elsewhere, "PATH", "HOME", "PROFILESVC_FUZZ", "PROFILESVC_DEPLOYED"]) == elsewhere


async def test_a_database_url_without_a_host_reaches_no_server_of_the_machine() -> None:
    with pytest.raises(FileNotFoundError):
        await asyncpg.connect(user="nobody", database="nothing")
