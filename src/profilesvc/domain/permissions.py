"""What a key may do, and what one token of it gets."""

from collections.abc import Sequence
from enum import StrEnum
from typing import get_args

from profilesvc.contract.common import PermissionName
from profilesvc.contract.errors import AUTH_INSUFFICIENT_PERMISSIONS
from profilesvc.domain.errors import ServiceError


class Permission(StrEnum):
    """The two permissions of the API document; write does not imply read (D-17)."""

    READ = "business.read"
    WRITE = "business.write"


ALL: tuple[Permission, ...] = tuple(Permission)
_NAMES: tuple[PermissionName, ...] = get_args(PermissionName)


def grant(allowed: Sequence[str], requested: Sequence[str] | None) -> list[PermissionName]:
    """The permissions of a token: what the key allows and the caller asked for, read before write, each once.

    None or an empty list asks for all that the key allows. Names that nobody knows drop out. Raises ServiceError
    AUTH_INSUFFICIENT_PERMISSIONS with `requested` and `allowed` when nothing is left (D-18).
    """
    wanted = requested or allowed
    granted = [name for name in _NAMES if name in allowed and name in wanted]
    if not granted:
        raise ServiceError(
            AUTH_INSUFFICIENT_PERMISSIONS,
            "None of the requested permissions is allowed for this key.",
            requested=list(requested or ()),
            allowed=list(allowed),
        )
    return granted
