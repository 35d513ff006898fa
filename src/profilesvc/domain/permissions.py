"""The permissions of a key and of its tokens."""

from collections.abc import Sequence
from enum import StrEnum
from typing import get_args

from profilesvc.contract.common import PermissionName
from profilesvc.contract.errors import Forbidden
from profilesvc.domain.errors import forbidden


class Permission(StrEnum):
    """The two permissions (docs/api-contract.md#permissions). WRITE does not include READ."""

    READ = "business.read"
    WRITE = "business.write"


ALL: tuple[Permission, ...] = tuple(Permission)
_NAMES: tuple[PermissionName, ...] = get_args(PermissionName)


def grant(allowed: Sequence[str], requested: Sequence[str] | None) -> list[PermissionName]:
    """Return the permissions of a token: those that the key allows and the caller requested, READ first, each once.

    None or an empty list requests everything the key allows, because PHP clients send `[]` for an unset value (D-18).
    Unknown names are ignored.

    Raises:
        ServiceError: AUTH_INSUFFICIENT_PERMISSIONS with `requested` and `allowed` if nothing is left.
    """
    granted = [name for name in _NAMES if name in allowed and name in (requested or allowed)]
    if not granted:
        raise forbidden(
            Forbidden.PERMISSIONS_NOT_ALLOWED,
            "This key has none of the requested permissions.",
            requested=list(requested or ()),
            allowed=list(allowed),
        )
    return granted
