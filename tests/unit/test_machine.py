"""The tests do not depend on the settings of the machine that they run on."""

import os

from support.machine import foreign


def test_nothing_of_the_machine_s_is_left_in_the_environment() -> None:
    assert foreign(os.environ) == []


def test_what_would_lead_elsewhere_is_known() -> None:
    elsewhere = ["PROFILESVC_DATABASE_URL", "profilesvc_base_url", "PGHOST", "PGSSLMODE", "http_proxy", "ALL_PROXY"]
    assert foreign([*elsewhere, "PATH", "HOME", "PROFILESVC_FUZZ", "PROFILESVC_DEPLOYED"]) == elsewhere
