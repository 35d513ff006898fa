"""Generate a database of any size for trials, with rows as the service writes them.

The first location has a tenth of all posts and syncs, like a large customer. The rest is spread evenly.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from benchmarks import bulk
from profilesvc.contract.errors import CONFLICT
from profilesvc.contract.json import JsonObject
from profilesvc.domain.domains import allowed_domains
from profilesvc.domain.entropy import SeededEntropy, new_sync_id
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.keys import new_client_id, new_secret, secret_digest
from profilesvc.domain.permissions import ALL
from profilesvc.domain.time import DAY, HOUR, MINUTE, iso, month_start
from profilesvc.emulator.embedded import EMULATOR_FILE
from profilesvc.emulator.seeding import add, fill
from profilesvc.emulator.store import Store
from profilesvc.fixtures import load_world
from profilesvc.operations.demo_data import GENERATED
from profilesvc.services.context import Services
from profilesvc.storage import tables
from profilesvc.storage.domains import NEVER
from profilesvc.storage.tables import partitions

KEYS_PER_USER = 10
EVENTS_PER_KEY = 5
DRIFTED = 100  # at one of so many sites, the provider's profile differs from what the site has sent
_SENT = ("title", "phoneNumbers", "websiteUri")
_SILENCE = (*[30 * MINUTE] * 8, 10 * HOUR, 3 * DAY)  # since the last heartbeat: 8 of 10 online, 1 idle, 1 offline
Rows = Iterator[tuple[object, ...]]


@dataclass(frozen=True)
class Amounts:
    """The numbers of rows: keys (each with a location and a site), posts, and syncs; and the sites of each user."""

    keys: int
    posts: int
    history: int
    sites_per_user: int = KEYS_PER_USER


class AtProvider(NamedTuple):
    """The data of the provider: its accounts, and its locations with their posts, each as in the demo data."""

    accounts: list[JsonObject]
    locations: Iterator[JsonObject]


class _Site(NamedTuple):
    """A generated key, by its number."""

    key_id: int
    owner_id: int
    business_id: int
    location: str
    host: str
    created_at: int

    @property
    def account(self) -> str:
        """The account at the provider, with a number that the demo data does not have."""
        return f"accounts/9{self.owner_id:011d}"

    @property
    def sent(self) -> JsonObject:
        """The fields that the site has sent."""
        return {
            "title": f"Shop {self.key_id}",
            "phoneNumbers": {"primaryPhone": f"+49 30 {self.key_id:09d}"},
            "websiteUri": f"https://{self.host}/",
        }

    @property
    def profile(self) -> JsonObject:
        """The profile at the provider."""
        changed = {
            "title": f"Shop {self.key_id} Berlin",
            "phoneNumbers": {"primaryPhone": f"+49 30 5{self.key_id:08d}"},
        }
        return {
            "name": self.location,
            "languageCode": "en",
            **self.sent,
            "categories": {"primaryCategory": {"name": "categories/gcid:bakery", "displayName": "Bakery"}},
            "storefrontAddress": {
                "regionCode": "DE",
                "languageCode": "de",
                "postalCode": "10115",
                "locality": "Berlin",
                "addressLines": [f"Allee {self.key_id}"],
            },
            "metadata": {"hasVoiceOfMerchant": True},
            **(changed if self.key_id % DRIFTED == 1 else {}),
        }


class _Generator:
    """The rows of each table, with the values of `_COLUMNS`. Ids continue those of the database."""

    def __init__(self, services: Services, amounts: Amounts, first: tuple[int, int], seed: int) -> None:
        self._amounts, self._now, self._pepper = amounts, services.clock.now(), services.pepper
        self._first_user, self._first_key = first
        self._chance = SeededEntropy(f"generated:{seed}:{first}")

    def _site(self, number: int) -> _Site:
        user, key = self._first_user + number // self._amounts.sites_per_user, self._first_key + number
        created = self._now - 360 * DAY + number % (300 * 24) * HOUR + number
        return _Site(key, user, user, f"locations/9{key:011d}", f"site{key}.{GENERATED}", created)

    def _sites(self) -> Iterator[_Site]:
        return map(self._site, range(self._amounts.keys))

    def _shares(self, total: int) -> Iterator[tuple[_Site, int]]:
        """Return each site with its share of a total. The first sites get the remainder."""
        count = self._amounts.keys
        large = total // 10 if count > 1 else 0
        each, over = divmod(total - large, count)
        for number, site in enumerate(self._sites()):
            yield site, each + (number < over) + (large if number == 0 else 0)

    def _owners(self) -> range:
        return range(self._first_user, self._first_user + -(-self._amounts.keys // self._amounts.sites_per_user))

    def users(self) -> Rows:
        return ((n, f"user{n}@{GENERATED}", f"User {n}", "agency", self._now - 365 * DAY) for n in self._owners())

    def emails(self) -> Rows:
        return ((f"user{n}@{GENERATED}", n) for n in self._owners())

    def businesses(self) -> Rows:
        return ((n, n, f"Business {n}", self._now - 365 * DAY) for n in self._owners())

    def location_owners(self) -> Rows:
        return ((site.location, site.owner_id) for site in self._sites())

    def locations(self) -> Rows:
        for site in self._sites():
            profile, source = site.profile, orjson.dumps(site.sent).decode()
            owner = (site.location, site.owner_id, site.business_id, site.created_at, site.account)
            read = (profile["title"], orjson.dumps(profile).decode(), self._now)
            yield (*owner, *read, True, "COMPLETED", True, self._now, source, source)

    def keys(self) -> Rows:
        permissions = " ".join(ALL)
        for site in self._sites():
            name = f"Site {site.key_id}"
            allowed = orjson.dumps(allowed_domains(site.host, [], development=False)).decode()
            named = (site.key_id, new_client_id(site.owner_id, site.created_at, name), site.owner_id, site.business_id)
            yield (*named, site.location, name, permissions, site.host, allowed, site.created_at, self._now - HOUR)

    def secrets(self) -> Rows:
        for site in self._sites():
            yield site.owner_id, site.key_id, secret_digest(new_secret(self._chance), self._pepper), site.created_at

    def key_domains(self) -> Rows:
        for site in self._sites():
            for domain in allowed_domains(site.host, [], development=False):
                yield domain, NEVER, site.owner_id, site.key_id

    def connections(self) -> Rows:
        for site in self._sites():
            last = self._now - _SILENCE[site.key_id % len(_SILENCE)]
            yield site.owner_id, site.key_id, last, "2.4.1", "6.8", "8.3", site.host, last

    def contacts(self) -> Rows:
        for site in self._sites():
            ended = self._now - _SILENCE[site.key_id % len(_SILENCE)]
            this, last = month_start(ended), month_start(ended, -1)
            yield site.owner_id, site.key_id, max(site.created_at, last), this - site.key_id % 10 * 3 * HOUR
            yield site.owner_id, site.key_id, max(site.created_at, this), ended

    def _posts(self) -> Iterator[tuple[_Site, list[JsonObject]]]:
        for site, count in self._shares(self._amounts.posts):
            yield site, [self._post(site, number) for number in range(count)]

    def _post(self, site: _Site, number: int) -> JsonObject:
        made = iso(self._now - 350 * DAY + number * MINUTE)
        return {
            "name": f"{site.location}/localPosts/{site.key_id}{number:07d}",
            "languageCode": "en",
            "summary": f"News {number} of shop {site.key_id}: fresh bread, new hours and a word of thanks.",
            "callToAction": {"actionType": "LEARN_MORE", "url": f"https://{site.host}/news/{number}"},
            "createTime": made,
            "updateTime": made,
            "state": "LIVE",
            "topicType": "STANDARD",
        }

    def posts(self) -> Rows:
        for site, documents in self._posts():
            for number, document in enumerate(documents):
                made, ident = self._now - 350 * DAY + number * MINUTE, f"{site.key_id}{number:07d}"
                yield site.owner_id, site.location, ident, made, "LIVE", self._now, orjson.dumps(document).decode()

    def syncs(self) -> Rows:
        for site, count in self._shares(self._amounts.history):
            for number in range(count):
                at = self._now - 350 * DAY + number * MINUTE
                status = "success" if number % 9 else "skipped"
                yield site.owner_id, new_sync_id(at, self._chance), site.location, at, status, "push", number % 9

    def audit(self) -> Rows:
        for site in self._sites():
            for number in range(EVENTS_PER_KEY):
                event = "token.issued" if number else "key.created"
                at = site.created_at + number * DAY
                yield at, month_start(at), event, site.owner_id, site.key_id, f"user:{site.owner_id}"

    def at_provider(self) -> AtProvider:
        """Return the same locations and posts as the provider has them."""
        kind = {"type": "LOCATION_GROUP", "role": "PRIMARY_OWNER", "verificationState": "VERIFIED"}
        names = [(n, f"accounts/9{n:011d}") for n in self._owners()]
        accounts = [{"name": name, "accountName": f"Business {n}", **kind} for n, name in names]
        return AtProvider(accounts, (_at_provider(site, posts) for site, posts in self._posts()))


def _at_provider(site: _Site, posts: list[JsonObject]) -> JsonObject:
    return {
        "account": site.account,
        "profile": site.profile,
        "provider_profile": {},
        "voice_of_merchant": {"hasVoiceOfMerchant": True, "hasBusinessAuthority": True},
        "verifications": [],
        "posts": [post | {"name": f"{site.account}/{post['name']}"} for post in posts],
    }


# In the order of their foreign keys.
_COLUMNS: dict[str, str] = {
    "users": "id email name plan created_at",
    "emails": "email owner_id",
    "businesses": "id owner_id name created_at",
    "location_owners": "name owner_id",
    "locations": "name owner_id business_id assigned_at account title profile profile_read_at is_verified "
    "verification_state sync_enabled posts_read_at source last_sync",
    "keys": "id client_id owner_id business_id location_name name permissions primary_domain allowed_domains "
    "created_at last_used_at",
    "secrets": "owner_id key_id digest created_at",
    "key_domains": "domain until owner_id key_id",
    "connections": "owner_id key_id last_heartbeat_at plugin_version wp_version php_version site_host site_host_at",
    "contacts": "owner_id key_id started_at ended_at",
    "posts": "owner_id location_name post_id created_at state read_at document",
    "syncs": "owner_id sync_id location_name created_at status direction fields_updated",
    "audit": "at month event owner_id key_id actor",
}


async def load(
    services: Services, amounts: Amounts, seed: int, *, sure: bool = False, emulated: bool = False
) -> dict[str, int]:
    """Add generated data and return {table: rows}. With `emulated`, an embedded emulator gets the same data.

    Raises:
        ServiceError: CONFLICT if the database has users other than the demo's, unless `sure`.
    """
    demo = [user["email"] for user in load_world()["users"]]
    async with services.storage.read() as session:
        has_others = await bulk.has_users_besides(session, demo, GENERATED)
        first = await bulk.next_ids(session)
    if has_others and not sure:
        raise ServiceError(CONFLICT, "The database has users of its own. Add --yes to add generated data anyway.")
    now = services.clock.now()
    await partitions.renew(services.storage.engine, now, since=now - 365 * DAY)
    generator = _Generator(services, amounts, first, seed)
    loaded = {}
    for name, columns in _COLUMNS.items():
        rows: Callable[[], Rows] = getattr(generator, name)
        loaded[name] = await bulk.load(services.storage, tables.metadata.tables[name], columns.split(), rows())
    await bulk.settle(services.storage, [tables.users, tables.businesses, tables.keys])
    if emulated and services.settings.provider.embedded:
        await _add_to_emulator(services, generator)
    return loaded


async def _add_to_emulator(services: Services, generator: _Generator) -> None:
    """Add the locations to the emulator's file. A new file gets the demo data first.

    The process that serves the emulator may be running.
    """
    store = Store(services.settings.data_dir / EMULATOR_FILE)
    await store.open(lambda session: fill(session, load_world(), services.clock.now()))
    try:
        async with store.write() as session:
            await add(session, *generator.at_provider())
    finally:
        await store.close()
