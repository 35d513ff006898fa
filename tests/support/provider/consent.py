"""Owners who connect a login at the emulator, as a browser does it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
from sqlalchemy import select

from profilesvc.services.context import Services
from profilesvc.storage.tables import metadata
from support.api import assert_ok
from support.browser.dashboard import COOKIE, Browser
from support.database.cluster import postgres_programs
from support.provider.drive import drift

CONNECTIONS = "/api/v1/provider-connections"
LINKS = "/api/v1/provider-connection-links"
PAGE = "/dashboard/connections"
SCOPE = "https://www.googleapis.com/auth/business.manage"
SCOPES = ["openid", "email", SCOPE]
DANA, EMPTY = "100004", "100005"
BAKERY, CAFE, SHOP = "locations/411", "locations/412", "locations/413"
TITLES = {BAKERY: "Roy Bakery", CAFE: "Roy Cafe", SHOP: "Dana's Shop"}


async def add_dana(emulator: httpx.AsyncClient, *also: str) -> None:
    """Add a login with three locations in an account of its own, and further accounts."""
    verified = {"hasVoiceOfMerchant": True, "hasBusinessAuthority": True}
    address = {"regionCode": "JP", "addressLines": ["1 Pier"], "locality": "Yokohama"}
    await drift(
        emulator,
        accounts={"accounts/4": {"accountName": "Dana Roy", "type": "PERSONAL"}},
        new_locations={
            name: {
                "account": "accounts/4",
                "profile": {"title": title, "storefrontAddress": address},
                "voice_of_merchant": verified,
            }
            for name, title in TITLES.items()
        },
        logins={
            DANA: {"email": "dana@example.com", "accounts": ["accounts/4", *also]},
            EMPTY: {"email": "empty@example.com", "accounts": []},
        },
    )


async def consent(http: httpx.AsyncClient, url: str, subject: str = DANA, **form: Any) -> str:
    """Allow the access on the consent page, and return the address to which it redirects."""
    choices = {"decision": "allow", "subject": subject, "granted": SCOPES, **form}
    async with _of_provider(http, url) as provider:
        assert (await provider.get(url)).status_code == 200
        answer = await provider.post(url, data=choices)
    assert answer.status_code == 302, answer.text
    return answer.headers["location"]


@contextlib.asynccontextmanager
async def _of_provider(http: httpx.AsyncClient, url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the provider's pages, which the service itself serves unless several processes are tested."""
    if urlsplit(url).netloc == http.base_url.netloc.decode():
        yield http
    else:
        async with httpx.AsyncClient(verify=False, trust_env=False, timeout=60) as provider:
            yield provider


async def sent(browser: Browser, path: str = f"{PAGE}/start") -> str:
    """Follow a link to the provider, and return the address of the consent page."""
    answer = await browser.http.get(path)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


async def connect(browser: Browser, subject: str = DANA, **form: Any) -> httpx.Response:
    """Connect a login in a browser in which its owner has signed in."""
    back = await consent(browser.http, await sent(browser), subject, **form)
    return await browser.http.get(back)


async def connected(browser: Browser, owner: httpx.AsyncClient, subject: str = DANA) -> int:
    """Connect a login, and return its number."""
    answer = await connect(browser, subject)
    assert answer.status_code == 303, answer.text
    listed = assert_ok(await owner.get(CONNECTIONS))["connections"]
    return int(listed[-1]["id"])


def query_of(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


async def connect_by_token(http: httpx.AsyncClient, token: str, subject: str) -> str:
    """Connect a login for the user of a token, and return its id."""
    headers = {"Authorization": f"Bearer {token}"}
    started = assert_ok(await http.post(CONNECTIONS, headers=headers))
    back = await consent(http, started["authorization_url"], subject)
    path = f"{PAGE}/callback?{urlsplit(back).query}"
    prefix = "__Host-" if back.startswith("https") else ""
    answer = await http.get(path, headers={"Cookie": f"{prefix}{COOKIE}={token}"})
    assert answer.status_code == 303, answer.text
    return str(assert_ok(await http.get(CONNECTIONS, headers=headers))["connections"][-1]["id"])


async def imported(owner: httpx.AsyncClient, number: int, **body: Any) -> dict[str, Any]:
    answer: dict[str, Any] = assert_ok(await owner.post(f"{CONNECTIONS}/{number}/import", json=body))
    return answer


async def dumped(services: Services) -> str:
    """What a backup of the database has: `pg_dump` of PostgreSQL, or the bytes of the files of SQLite."""
    url = services.storage.engine.url
    if services.storage.is_sqlite:
        assert url.database is not None
        return "".join(file.read_bytes().decode("latin-1") for file in files_of(Path(url.database)))
    words = str(postgres_programs() / "pg_dump"), url.set(drivername="postgresql").render_as_string(hide_password=False)
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode()


def files_of(database: Path) -> list[Path]:
    """A database of SQLite with its write-ahead log."""
    return sorted(database.parent.glob(f"{database.name}*"))


async def everything(services: Services) -> str:
    """All rows of all tables as text."""
    rows = []
    async with services.storage.read() as session:
        for table in metadata.sorted_tables:
            rows += [f"{table.name}: {tuple(row)}" for row in await session.execute(select(table))]
    return "\n".join(rows)
