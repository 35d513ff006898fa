"""What the operator does by commands and a page has to show: holds on keys, plans, suspended users, signing keys."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from profilesvc.lab.embedded import Embedded
from profilesvc.operations import counts, operator
from profilesvc.services import holds, keys, locations

EMAILS = {"alice": "alice@example.com", "bob": "bob@example.com", "carol": "carol@example.com"}


class OperatorControl:
    """The operator's side of the lab; needs the embedded service. Users go by first name or e-mail address."""

    def __init__(self, embedded: Callable[[], Embedded], note: Callable[[], object]) -> None:
        self._embedded, self._note = embedded, note

    def deactivate(self, client_id: str, reason: str) -> None:
        """`profilesvc keys deactivate`: one of the four reasons."""
        lab = self._embedded()
        lab.run(keys.deactivate(lab.services, client_id, reason))

    def reactivate(self, client_id: str, *, roll: bool = False) -> str | None:
        """`profilesvc keys reactivate`; with `roll` the new secret. ServiceError (CONFLICT) for a security concern."""
        lab = self._embedded()
        rolled = lab.run(keys.reactivate(lab.services, client_id, roll=roll)).rolled
        return None if rolled is None else rolled.client_secret

    def billing(self, user: str, *, paid: bool, version: int) -> None:
        """`profilesvc users billing`: what the billing side says, in the order of its versions."""
        lab = self._embedded()
        lab.run(holds.billing_event(lab.services, EMAILS.get(user, user), paid, version))

    def assign_plan(self, user: str, plan: str) -> None:
        """`profilesvc plans assign`: starter, growth, pro or agency."""
        lab = self._embedded()
        lab.run(operator.assign_plan(lab.services, EMAILS.get(user, user), plan))

    def import_locations(self, user: str, account: str) -> list[str]:
        """`profilesvc locations import`: their names. ServiceError for another user's, or when the provider fails."""
        lab = self._embedded()
        try:
            return lab.run(locations.import_account(lab.services, EMAILS.get(user, user), account))
        finally:
            self._note()  # so that its calls to the provider do not pass for those of the next request

    def assign(self, location: str, business_id: int) -> None:
        """`profilesvc locations assign`. ServiceError when the plan has no room."""
        lab = self._embedded()
        lab.run(locations.assign(lab.services, location, business_id))

    def doctor(self, **provider: object) -> str:
        """What `profilesvc doctor` prints on a new machine; `provider` are settings in place of the lab's own."""
        return self._embedded().doctor(provider)

    def drain(self) -> None:
        """Do the first step after SIGTERM: `/readyz` reports not ready, and requests are still accepted."""
        self._embedded().drain()

    def restart(self) -> None:
        """`systemctl restart`: requests in flight are answered, then the service starts again on the same database."""
        self._embedded().restart()

    def database_held(self) -> AbstractContextManager[None]:
        """A block in which another program holds the database, so that no write gets through."""
        return self._embedded().database_held()

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

    def signing_keys(self) -> list[tuple[str, str]]:
        """`profilesvc signing-keys list` of access tokens: (kid, state), oldest first. New kids differ in every run."""
        lab = self._embedded()
        infos = lab.run(lab.services.signing_keys.listing())
        return [(info.dates.kid, info.state) for info in infos if info.dates.alg == "RS256"]

    def rotate_signing_key(self, *, now: bool = False) -> str:
        """`profilesvc signing-keys rotate`; the kid of the next key. With `now` it signs 10 s from now."""
        lab = self._embedded()
        return lab.run(lab.services.signing_keys.rotate(at_once=now)).dates.kid

    def remove_signing_key(self, kid: str) -> None:
        """`profilesvc signing-keys remove`: every token that the key signed ends. ServiceError for an unknown one."""
        lab = self._embedded()
        lab.run(lab.services.signing_keys.remove(kid))

    def count(self) -> None:
        """What the service does by itself every minute: count keys, sites and posts for `/metrics`."""
        lab = self._embedded()
        lab.run(counts.count(lab.services))

    def keep_signing_schedule(self) -> None:
        """What the service does by itself every few seconds: announce what is due, remove what outlived its tokens."""
        lab = self._embedded()
        lab.run(lab.services.signing_keys.keep_schedule())
