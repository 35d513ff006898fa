"""The operator's part when everything is killed: a plan that changes again and again (D-27)."""

import signal
import sqlite3
from contextlib import closing

import httpx

from profilesvc.settings import Settings
from support.api import assert_ok
from support.crash.stories import Story, new_key, tokens_of
from support.served_process import PATIENT, forked
from support.wire import KEYS

_CHANGES = """
SELECT client_id, count(*) FROM audit JOIN keys ON keys.id = key_id
WHERE event IN ('key.deactivated', 'key.reactivated') AND details LIKE '%plan_downgrade%' GROUP BY client_id
"""
_PLANS = f"""{PATIENT}
import asyncio, itertools, sys
from profilesvc.bootstrap import Runtime, open_services
from profilesvc.operations import operator
from profilesvc.settings import load

async def change():
    async with open_services(load(), Runtime(), provider=False) as services:
        for plan in itertools.cycle(sys.argv[1:]):
            await operator.assign_plan(services, "bob@example.com", plan)
            print(plan, flush=True)
            await asyncio.sleep(0.02)  # without a pause the writers that wait would not get SQLite's lock

asyncio.run(change())
"""


class Plans(Story):
    """An operator who changes Bob's plan again and again, in a process that is killed too (D-27)."""

    def __init__(self, settings: Settings, bob: httpx.Client) -> None:
        self._settings, self._plans, self._unanswered = settings, ("starter", "pro"), 0
        own = {"business_id": 20}
        first = new_key(bob, **own, assigned_location_id="locations/211")
        self._within = {name: first[name] for name in ("client_id", "client_secret")}
        self._beyond = {new_key(bob, **own, assigned_location_id="locations/219")["client_id"] for _ in range(10)}

    def begin(self) -> None:
        """Start, and wait for the first change."""
        self._process = forked(_PLANS, self._plans, self._settings)
        assert self._process.stdout.readline().strip() == self._plans[0]
        self.acknowledged += 1

    def kill(self) -> None:
        """Kill it, and read what it had said."""
        self._process.send_signal(signal.SIGKILL)
        self.acknowledged += len(self._process.communicate()[0].split())

    def check(self, bob: httpx.Client) -> None:
        """All keys beyond the plan are held, or none is, and each change has left its mark on each of them."""
        plan = assert_ok(tokens_of(bob, **self._within))["plan"]
        self._plans = ("pro", "starter") if plan == "starter" else ("starter", "pro")
        states = {key["client_id"]: key["status"] for key in assert_ok(bob.get(KEYS))["credentials"]}
        assert {states[client_id] for client_id in self._beyond} == {"deactivated" if plan == "starter" else "active"}
        with closing(sqlite3.connect(self._settings.data_dir / "profilesvc.db")) as connection:
            counted = connection.execute(_CHANGES).fetchall()
        assert {client_id for client_id, _ in counted} == self._beyond
        changes = {count for _, count in counted}
        assert len(changes) == 1
        unanswered = changes.pop() - self.acknowledged - self._unanswered
        assert unanswered in (0, 1)
        self._unanswered += unanswered
