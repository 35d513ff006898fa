"""D-18: a token gets what the key allows and the caller asked for."""

import pytest

from profilesvc.domain.errors import ServiceError
from profilesvc.domain.permissions import ALL, Permission, grant

READ, WRITE = "business.read", "business.write"


@pytest.mark.parametrize(
    ("allowed", "requested", "granted"),
    [
        ([READ, WRITE], [READ], [READ]),
        ([READ, WRITE], None, [READ, WRITE]),
        ([READ, WRITE], [], [READ, WRITE]),
        ([WRITE, READ], [WRITE, READ, WRITE], [READ, WRITE]),
        ([READ], [WRITE, READ, "business.admin"], [READ]),
        ([WRITE], None, [WRITE]),
    ],
)
def test_grant_is_the_intersection(allowed: list[str], requested: list[str] | None, granted: list[str]) -> None:
    assert grant(allowed, requested) == granted


@pytest.mark.parametrize("requested", [[WRITE], ["business.admin"], ["BUSINESS.READ"], [""]])
def test_nothing_left_is_rejected_without_a_deactivation_reason(requested: list[str]) -> None:
    with pytest.raises(ServiceError) as refusal:
        grant([READ], requested)
    assert refusal.value.kind.code == "AUTH_INSUFFICIENT_PERMISSIONS"
    assert refusal.value.details == {"reason": "permissions_not_allowed", "requested": requested, "allowed": [READ]}


def test_granted_names_are_plain_text() -> None:
    assert ALL == (Permission.READ, Permission.WRITE)
    assert all(type(name) is str for name in grant(ALL, None))
