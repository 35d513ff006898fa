"""A copy of what the service stores about an owner: a ZIP file with `data.json` and the photos.

It is made while it is sent, a page of rows at a time, so that an owner with 10,000 sites needs no more memory.
"""

import zipfile
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson

from profilesvc.contract.json import JsonObject
from profilesvc.domain.time import iso
from profilesvc.services import audit
from profilesvc.services.context import Caller, Services
from profilesvc.services.insight import overview
from profilesvc.services.notify import alerts, webhooks
from profilesvc.storage.accounts import exports
from profilesvc.storage.drafts import photos

_PAGE = 200  # rows that are in memory at once
_CHUNK = 64 * 1024


class Section(NamedTuple):
    """A list of `data.json`: the table and its columns. Those in `documents` are JSON."""

    table: str
    columns: str
    documents: str = ""


# In their order in the file. Columns are named one by one, so that a new column with a secret is not in it.
SECTIONS = {
    "businesses": Section("businesses", "id name created_at"),
    "sites": Section(
        "locations",
        "name title account business_id assigned_at is_verified verification_state sync_enabled profile_read_at "
        "disconnected_at profile source last_sync",
        "profile source last_sync",
    ),
    "keys": Section(
        "keys",
        "id client_id name business_id location_name permissions primary_domain allowed_domains created_at "
        "expires_at revoked_at last_used_at",
        "allowed_domains",
    ),
    "holds": Section("holds", "key_id reason set_at"),
    "heartbeats": Section(
        "connections",
        "key_id last_heartbeat_at plugin_version wp_version php_version detected_plugins site_host site_host_at",
        "detected_plugins",
    ),
    "contacts": Section("contacts", "key_id started_at ended_at"),
    "requests_per_day": Section("key_usage", "key_id day requests client_errors server_errors"),
    "requests": Section(
        "request_log", "key_id at method route status code reason field duration_ms request_id ip_prefix"
    ),
    "alert_settings": Section("watches", "key_id state changed_at site_mismatch grace_seconds snoozed_until"),
    "posts": Section("posts", "location_name post_id created_at state read_at document", "document"),
    "posts_per_month": Section("post_usage", "month used"),
    "reviews": Section("mirrors", "location_name read_at document", "document"),
    "syncs": Section("syncs", "location_name created_at sync_id status direction fields_updated"),
    "drafts": Section(
        "drafts", "id location_name state due_at zone updated_at problem fields document", "fields document"
    ),
    "reply_templates": Section("reply_templates", "name text"),
    "photos": Section("photos", "id media_type expires_at"),
    "provider_connections": Section(
        "provider_connections", "id email state scopes created_at last_used_at last_error last_error_at"
    ),
    "events": Section("events", "id created_at type location_name data", "data"),
    "sessions": Section("sessions", "created_at used_at expires_at ip_prefix browser system"),
    "audit": Section("audit", "at event key_id actor ip_prefix request_id times details", "details"),
}
# The other tables with an owner, each with the reason.
LEFT_OUT = {
    "channels": "in the lists `alerts` and `webhooks`, without addresses that work like a secret",
    "deliveries": "how the events were sent; the events are in the file",
    "secrets": "digests of secrets",
    "families": "claims of refresh tokens",
    "revocations": "ids of ended tokens",
    "idempotency": "responses of two days, for requests that are repeated",
    "readings": "what the schedule has read last",
    "event_heads": "the number of the newest event",
    "emails": "the address is in `user`",
    "identities": "the number of the user at the identity provider",
    "location_owners": "the sites are in the file",
    "key_domains": "the domains are with the keys",
    "changed_locations": "which sites are read next",
    "deletions": "there is none before the end of the account",
}


class _Sink:
    """The file that the ZIP file is written to. What was written is taken away and sent."""

    def __init__(self) -> None:
        self._content = bytearray()

    def write(self, content: bytes) -> int:
        self._content += content
        return len(content)

    def flush(self) -> None:
        """Do nothing: there is no disk."""

    def __len__(self) -> int:
        return len(self._content)

    def take(self) -> bytes:
        content, self._content = bytes(self._content), bytearray()
        return content


async def note(services: Services, caller: Caller) -> None:
    """Record that the user downloads the file."""
    async with services.storage.write() as session:
        await audit.record(services, session, "user.exported", caller.owner_id)


async def archive(services: Services, caller: Caller) -> AsyncGenerator[bytes]:
    """Yield the file in pieces. It has no secrets and no addresses that work like one.

    A failure ends it in the middle, so that a browser does not mistake it for a whole file.
    """
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as file:  # type: ignore[call-overload]
        with file.open(_entry(services, "data.json"), "w", force_zip64=True) as data:
            async for text in _document(services, caller):
                data.write(text)
                if len(sink) > _CHUNK:
                    yield sink.take()
        async for row in _rows(services, caller, SECTIONS["photos"]):
            services.storage.renew()
            async with services.storage.read(may_be_old=True) as session:
                photo = await photos.find(session, caller.owner_id, row["id"], services.clock.now())
            if photo is not None:
                entry = _entry(services, _file(row["id"], photo.media_type))
                entry.compress_type = zipfile.ZIP_STORED  # it is compressed already
                file.writestr(entry, photo.content)
                yield sink.take()
    yield sink.take()


def _entry(services: Services, name: str) -> zipfile.ZipInfo:
    at = iso(services.clock.now())
    day, clock = (int(at[:4]), int(at[5:7]), int(at[8:10])), (int(at[11:13]), int(at[14:16]), int(at[17:19]))
    entry = zipfile.ZipInfo(name, (*day, *clock))
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


async def _document(services: Services, caller: Caller) -> AsyncIterator[bytes]:
    """Yield `data.json`: what is short, then a list for each section."""
    name, email = await overview.person(services, caller)
    hooks = (await webhooks.list_all(services, caller)).webhooks
    addresses = (await alerts.list_all(services, caller)).alerts
    short: JsonObject = {
        "exported_at": iso(services.clock.now()),
        "user": {"id": caller.owner_id, "name": name, "email": email, "plan": caller.plan.name},
        "alerts": [each.model_dump(by_alias=True, warnings=False) for each in addresses],
        "webhooks": [
            {**each.model_dump(exclude={"url"}, warnings=False), "host": urlsplit(each.url).hostname} for each in hooks
        ],
    }
    yield orjson.dumps(short)[:-1]
    for title, section in SECTIONS.items():
        yield b",\n" + orjson.dumps(title) + b": ["
        separator = b"\n"
        async for row in _rows(services, caller, section):
            if title == "photos":
                row = {**row, "file": _file(row["id"], row["media_type"])}
            yield separator + orjson.dumps(row)
            separator = b",\n"
        yield b"]"
    yield b"}\n"


async def _rows(services: Services, caller: Caller, section: Section) -> AsyncIterator[JsonObject]:
    columns, documents = section.columns.split(), section.documents.split()
    after: exports.Place | None = None
    while True:
        services.storage.renew()
        async with services.storage.read(may_be_old=True) as session:
            page = await exports.page(session, section.table, columns, caller.owner_id, after, _PAGE)
        for row in page.rows:
            yield {name: _value(name, value, name in documents) for name, value in zip(columns, row, strict=True)}
        after = page.after
        if after is None:
            return


def _value(name: str, value: Any, is_document: bool) -> object:
    if value is None:
        return None
    if is_document:
        return orjson.Fragment(value)
    is_instant = name in ("at", "day", "month") or name.endswith(("_at", "_until"))
    return iso(value) if is_instant else value


def _file(photo_id: str, media_type: str) -> str:
    return f"photos/{photo_id}.{'png' if media_type == 'image/png' else 'jpg'}"
