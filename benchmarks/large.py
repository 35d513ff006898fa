"""The list of posts in large and in small tables, and its last and its second page."""

import asyncio
import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import select

from benchmarks import generate
from benchmarks.generate import Amounts
from benchmarks.measure import Figures, in_turn, once
from benchmarks.own import SERVE
from benchmarks.servers import Server
from benchmarks.work import Request, check, request_of
from benchmarks.world import prepare_service, service_environment
from profilesvc.bootstrap import Runtime, open_services
from profilesvc.operations.demo_data import GENERATED
from profilesvc.services import tokens
from profilesvc.services.context import AllowedLocation, Services
from profilesvc.services.page_tokens import seal
from profilesvc.settings import load
from profilesvc.storage.tables import locations, posts, users

FEW, MANY = Amounts(keys=1_000, posts=1_000, history=1_000), Amounts(keys=100_000, posts=1_000_000, history=1_000_000)


class Pages(NamedTuple):
    """Requests for the second and the last page of the location with the most posts."""

    second: Request
    last: Request


def measure(
    rounds: int, seconds: float, cores: tuple[int | None, int | None], many: Amounts = MANY
) -> dict[str, Figures]:
    """Measure the list with few and with many rows in the tables, and its second and last page, on SQLite."""
    with ExitStack() as stack:
        measurements: dict[str, Callable[[], Figures]] = {}
        for size, amounts in (("few", FEW), ("many", many)):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
            environment = service_environment(folder, f"sqlite+aiosqlite:///{folder}/service.db")
            access = asyncio.run(prepare_service(environment))
            pages = asyncio.run(_fill(environment, amounts))
            server = stack.enter_context(Server(SERVE, environment, cores[0], folder))
            check("list", server.port, request_of("list", access))
            measurements[size] = partial(once, server, request_of("list", access), seconds, cores[1])
        measurements["second page"] = partial(once, server, pages.second, seconds, cores[1])
        measurements["last page"] = partial(once, server, pages.last, seconds, cores[1])
        return in_turn(measurements, rounds)


async def _fill(environment: dict[str, str], amounts: Amounts) -> Pages:
    os.environ.update(environment)
    async with open_services(load(), Runtime()) as services:
        await generate.load(services, amounts, seed=1)
        return await _pages(services)


async def _pages(services: Services) -> Pages:
    """Return the pages of the first generated location, which has a tenth of all posts."""
    is_own = posts.c.owner_id == locations.c.owner_id, posts.c.location_name == locations.c.name
    own_posts = select(posts.c.created_at, posts.c.post_id).where(*is_own)
    largest = (
        select(locations.c.name, locations.c.account, users.c.id, users.c.email, users.c.plan)
        .join(users, users.c.id == locations.c.owner_id)
        .where(users.c.email.like(f"%@{GENERATED}"), own_posts.exists())
        .order_by(locations.c.owner_id, locations.c.name)
        .limit(1)
    )
    async with services.storage.read() as session:
        row = (await session.execute(largest)).one()
        is_own = posts.c.owner_id == row.id, posts.c.location_name == row.name
        own_posts = select(posts.c.created_at, posts.c.post_id).where(*is_own)
        order = [posts.c.created_at, posts.c.post_id]
        oldest = (await session.execute(own_posts.order_by(*order).offset(50).limit(1))).one()
        newest_first = own_posts.order_by(*(column.desc() for column in order))
        newest = (await session.execute(newest_first.offset(49).limit(1))).one()
    location = AllowedLocation(row.name, row.id, services.plans[row.plan], row.account, None)
    by_owner: dict[str, Any] = {"Authorization": f"Bearer {await tokens.user_token(services, row.email)}"}
    path = f"/api/v1/posts?locationId={row.name}&pageSize=50&pageToken="
    page_tokens = [seal(services, location, "posts", f"{at}.{ident}") for at, ident in (tuple(newest), tuple(oldest))]
    return Pages(*(Request("GET", f"{path}{token}", by_owner) for token in page_tokens))
