"""The operator's commands for notebooks: holds on keys, plans, suspended users, signing keys."""

from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from datetime import timedelta
from email import message_from_bytes, policy
from typing import TypeVar

from profilesvc.delivery import kinds, worker
from profilesvc.domain.plans import load_catalogue
from profilesvc.domain.time import iso
from profilesvc.lab.embedded import Embedded
from profilesvc.lab.views.cards import part_of
from profilesvc.operations import census, operator
from profilesvc.operations.notify import sweep
from profilesvc.services import holds, keys, locations
from profilesvc.services.context import Services
from profilesvc.services.logins import importing

T = TypeVar("T")
EMAILS = {"alice": "alice@example.com", "bob": "bob@example.com", "carol": "carol@example.com"}


class OperatorControl:
    """The operator of the embedded service. Users are named by first name or e-mail address."""

    def __init__(self, embedded: Callable[[], Embedded], record: Callable[[], object]) -> None:
        self._embedded, self._record = embedded, record

    def _run(self, work: Callable[[Services], Coroutine[object, None, T]]) -> T:
        lab = self._embedded()
        return lab.run(work(lab.services))

    def deactivate(self, client_id: str, reason: str) -> None:
        """Run `profilesvc keys deactivate` with one of the four reasons."""
        self._run(lambda services: keys.deactivate(services, client_id, reason))

    def reactivate(self, client_id: str, *, roll: bool = False) -> str | None:
        """Run `profilesvc keys reactivate`. Return the new secret with `roll`.

        Raises:
            ServiceError: CONFLICT for a security concern without `roll`.
        """
        rolled = self._run(lambda services: keys.reactivate(services, client_id, roll=roll)).rolled
        return None if rolled is None else rolled.client_secret

    def billing(self, user: str, *, paid: bool, version: int) -> None:
        """Run `profilesvc users billing` with an event of the billing system."""
        self._run(lambda services: holds.billing_event(services, EMAILS.get(user, user), paid, version))

    def assign_plan(self, user: str, plan: str) -> None:
        """Run `profilesvc plans assign` with starter, growth, pro or agency."""
        self._run(lambda services: operator.assign_plan(services, EMAILS.get(user, user), plan))

    def plans(self) -> list[dict[str, object]]:
        """Return the plans as `profilesvc plans list` prints them, without the changes of `posts_a_month`."""
        return [plan.model_dump(mode="json", exclude={"syncable", "reads"}) for plan in load_catalogue(None).values()]

    def sign(self, token: str, **claims: object) -> str:
        """Return a token with other claims, signed with the service's own key."""
        services = self._embedded().services
        return services.signer.issue("at+jwt", {**part_of(token, 1), **claims}, services.clock.now(), 3600)

    def import_locations(self, user: str, account: str) -> list[str]:
        """Run `profilesvc locations import`. Return the names of the locations.

        Raises:
            ServiceError: The account belongs to another user, or the provider fails.
        """
        try:
            return self._run(lambda services: importing.import_account(services, EMAILS.get(user, user), account))
        finally:
            self._record()  # else its calls to the provider would be recorded as those of the next request

    def assign(self, location: str, business_id: int) -> None:
        """Run `profilesvc locations assign`.

        Raises:
            ServiceError: The plan does not allow another location.
        """
        self._run(lambda services: locations.assign(services, location, business_id))

    def doctor(self, **provider: object) -> str:
        """Return the output of `profilesvc doctor` on a new machine. `provider` replaces settings of the lab."""
        return self._embedded().doctor(provider)

    def drain(self) -> None:
        """Do the first step after SIGTERM: `/readyz` reports not ready, and requests are still accepted."""
        self._embedded().drain()

    def restart(self) -> None:
        """Restart the service as `systemctl restart` does: finish requests in flight, start on the same database."""
        self._embedded().restart()

    def database_held(self) -> AbstractContextManager[None]:
        """Hold the database's write lock during a block, as another program could, so that writes fail."""
        return self._embedded().database_held()

    def suspend(self, user: str) -> None:
        """Run `profilesvc users suspend`."""
        self._run(lambda services: operator.suspend(services, EMAILS.get(user, user)))

    def resume(self, user: str) -> None:
        """Run `profilesvc users resume`."""
        self._run(lambda services: operator.resume(services, EMAILS.get(user, user)))

    def logout(self, user: str) -> None:
        """Run `profilesvc users logout`, which ends all tokens of the user."""
        self._run(lambda services: operator.logout(services, EMAILS.get(user, user)))

    def signing_keys(self) -> list[tuple[str, str]]:
        """Return (kid, state) of the keys of access tokens, oldest first. The kids of new keys differ in every run."""
        infos = self._run(lambda services: services.signing_keys.listing())
        return [(info.dates.kid, info.state) for info in infos if info.dates.alg == "RS256"]

    def rotate_signing_key(self, *, now: bool = False) -> str:
        """Run `profilesvc signing-keys rotate`. Return the kid of the next key, which signs in 10 s with `now`."""
        return self._run(lambda services: services.signing_keys.rotate(at_once=now)).dates.kid

    def remove_signing_key(self, kid: str) -> None:
        """Run `profilesvc signing-keys remove`, which ends all tokens that the key signed.

        Raises:
            ServiceError: The key is unknown.
        """
        self._run(lambda services: services.signing_keys.remove(kid))

    def count(self) -> None:
        """Count keys, connections and posts for `/metrics`, as the service does every minute."""
        self._run(lambda services: census.count(services))

    def deliver(self) -> int:
        """Deliver the events that are due, as the service does at once. Return how many deliveries were tried."""

        async def work(services: Services) -> int:
            async with kinds.open_senders(services) as senders:
                return await worker.deliver_due(services, senders)

        return self._run(work)

    def wait(self, **duration: float) -> str:
        """Move the clock (`hours=3`) while the service looks at all connections every half hour. Return the time."""
        clock = self._embedded().clock
        self._run(lambda services: sweep.pass_time(services, clock, timedelta(**duration)))
        return iso(clock.now())

    def mails(self) -> list[dict[str, str]]:
        """Return the messages that were sent, oldest first: to, subject, text and the names of the headers."""
        folder = self._embedded().services.settings.data_dir / "mail"
        messages = []
        for file in sorted(folder.glob("*.eml")):
            message = message_from_bytes(file.read_bytes(), policy=policy.default)
            body = message.get_body(("plain",))
            text = "" if body is None else str(body.get_content())
            headers = " ".join(message.keys())
            messages.append({"to": message["To"], "subject": message["Subject"], "text": text, "headers": headers})
        return messages

    def keep_signing_schedule(self) -> None:
        """Announce and remove signing keys that are due, as the service does every few seconds."""
        self._run(lambda services: services.signing_keys.keep_schedule())
