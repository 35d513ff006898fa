"""Who may call a route, as a value in its declaration (D-17)."""

from dataclasses import dataclass
from typing import cast

from quart import current_app

from profilesvc.contract.errors import AUTH_INSUFFICIENT_PERMISSIONS
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.permissions import Permission
from profilesvc.services.context import Caller, Services


def services() -> Services:
    """The services of the running app."""
    return cast(Services, current_app.extensions["profilesvc"])


@dataclass(frozen=True, slots=True)
class Access:
    """Which kinds of token a route takes, and the permission that a service token must carry.

    `records_contact`: even a deactivated key's request tells that its site is alive (D-28).
    """

    user: bool
    service: bool
    permission: Permission | None = None
    records_contact: bool = False

    @property
    def public(self) -> bool:
        """No bearer token is read at all; an Authorization header is ignored."""
        return not (self.user or self.service)

    def require(self, caller: Caller) -> None:
        """Refuse the wrong kind of token, then a missing permission. AUTH_INSUFFICIENT_PERMISSIONS."""
        if caller.key is None and not self.user:
            raise ServiceError(AUTH_INSUFFICIENT_PERMISSIONS, "This route takes a service token, not a user token.")
        if caller.key is not None and not self.service:
            raise ServiceError(AUTH_INSUFFICIENT_PERMISSIONS, "This route takes a user token, not a service token.")
        if caller.key is not None and self.permission is not None and self.permission not in caller.permissions:
            raise ServiceError(
                AUTH_INSUFFICIENT_PERMISSIONS,
                f"The token lacks the permission {self.permission}.",
                headers={"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{self.permission}"'},
                required=str(self.permission),
            )


PUBLIC = Access(user=False, service=False)
USER = Access(user=True, service=False)


HEARTBEAT = Access(user=False, service=True, records_contact=True)


def either(permission: Permission) -> Access:
    """User tokens, and service tokens with the permission."""
    return Access(user=True, service=True, permission=permission)
