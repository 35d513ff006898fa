"""What the operator does by commands and a page has to show: holds on keys, plans, suspended users."""

from collections.abc import Callable

from profilesvc.lab.embedded import Embedded
from profilesvc.services import keys, operator

EMAILS = {"alice": "alice@example.com", "bob": "bob@example.com", "carol": "carol@example.com"}


class OperatorControl:
    """The operator's side of the lab; needs the embedded service. Users go by first name or e-mail address."""

    def __init__(self, embedded: Callable[[], Embedded]) -> None:
        self._embedded = embedded

    def deactivate(self, client_id: str, reason: str) -> None:
        """`profilesvc keys deactivate`: one of the four reasons."""
        lab = self._embedded()
        lab.run(keys.deactivate(lab.services, client_id, reason))

    def reactivate(self, client_id: str) -> None:
        """`profilesvc keys reactivate`. ServiceError (CONFLICT) for a security concern."""
        lab = self._embedded()
        lab.run(keys.reactivate(lab.services, client_id))

    def assign_plan(self, user: str, plan: str) -> None:
        """`profilesvc plans assign`: starter, growth, pro or agency."""
        lab = self._embedded()
        lab.run(operator.assign_plan(lab.services, EMAILS.get(user, user), plan))

    def suspend(self, user: str) -> None:
        """`profilesvc users suspend`."""
        lab = self._embedded()
        lab.run(operator.suspend(lab.services, EMAILS.get(user, user)))

    def resume(self, user: str) -> None:
        """`profilesvc users resume`."""
        lab = self._embedded()
        lab.run(operator.resume(lab.services, EMAILS.get(user, user)))

    def logout(self, user: str) -> None:
        """`profilesvc users logout`: ends every token of the user."""
        lab = self._embedded()
        lab.run(operator.logout(lab.services, EMAILS.get(user, user)))
