"""The token of every form: it shows for which user and session the page with the form was made."""

import hashlib
import hmac

from profilesvc.contract.errors import AUTH_INSUFFICIENT_PERMISSIONS
from profilesvc.domain.errors import ServiceError
from profilesvc.services.context import Services
from profilesvc.tokens.seals import Seal


def make(services: Services, owner_id: int, session: str) -> str:
    """Return the token of the forms of a session, a user token."""
    return _seal(services).seal(_content(owner_id, session))


def require(services: Services, token: str, owner_id: int, session: str) -> None:
    """Reject a form that is not from a page of this session, even if it is sent with a valid cookie.

    Raises:
        ServiceError: AUTH_INSUFFICIENT_PERMISSIONS.
    """
    content = _seal(services).unseal(token)
    if content is None or not hmac.compare_digest(content, _content(owner_id, session)):
        raise _foreign()


def owner_of(services: Services, token: str) -> int:
    """Return the user for whom a page was made, in a session that may have ended.

    Raises:
        ServiceError: AUTH_INSUFFICIENT_PERMISSIONS.
    """
    content = _seal(services).unseal(token)
    if content is None:
        raise _foreign()
    return int(content.partition(" ")[0])


def _content(owner_id: int, session: str) -> str:
    return f"{owner_id} {hashlib.sha256(session.encode()).hexdigest()[:32]}"


def _seal(services: Services) -> Seal:
    return Seal(services.signer.keyring, "dashboard form", services.clock.now())


def _foreign() -> ServiceError:
    return ServiceError(AUTH_INSUFFICIENT_PERMISSIONS, "This form is not from your session. Reload the page.")
