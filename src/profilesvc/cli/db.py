"""`profilesvc db`: migrations, demo data and generated data."""

import asyncio
import importlib
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from profilesvc.cli.opening import run
from profilesvc.cli.show import AsJson, show

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

app = typer.Typer(name="db", help="Manage the database.", no_args_is_help=True)
Result = TypeVar("Result")
CHECKOUT = Path(__file__).parents[3]


def _with_engine(work: "Callable[[AsyncEngine], Awaitable[Result]]") -> Result:
    """Run `work` on the database without a check of its revision."""
    from profilesvc.database.engine import create_engine
    from profilesvc.database.postgres import named
    from profilesvc.settings import load

    async def opened() -> Result:
        engine = create_engine(named(load().effective_database_url, "db"), 1, patient=True)
        try:
            return await work(engine)
        finally:
            await engine.dispose()

    return asyncio.run(opened())


@app.command()
def upgrade(as_json: AsJson = False) -> None:
    """Apply all missing migrations, and set the time limits of the role on PostgreSQL."""
    for line in _with_engine(_upgrade):
        typer.echo(f"profilesvc: {line}", err=True)
    current(as_json)


async def _upgrade(engine: "AsyncEngine") -> list[str]:
    """Return what is left for the operator to do."""
    from profilesvc.bootstrap import require_pooling
    from profilesvc.contract.errors import CONFLICT
    from profilesvc.database import migrate, nodes, time_limits
    from profilesvc.domain.errors import ServiceError
    from profilesvc.domain.time import SystemClock
    from profilesvc.storage.tables import distribution, partitions

    await require_pooling(engine)
    if await nodes.is_worker(engine):  # which would get tables of its own
        raise ServiceError(CONFLICT, "This node is a worker: set PROFILESVC_DATABASE_URL to the coordinator.")
    await migrate.upgrade(engine)
    if await distribution.is_distributed(engine):
        await distribution.distribute(engine)  # the tables of new migrations
    return [*await partitions.renew(engine, SystemClock().now()), *await time_limits.ensure(engine)]


@app.command()
def distribute(
    shards: Annotated[int, typer.Option(min=1, max=4096, help="Number of shards of each table.")] = 32,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    as_json: AsJson = False,
) -> None:
    """Distribute the tables over the nodes of a Citus cluster; skip those that are distributed."""
    from profilesvc.contract.errors import CONFLICT
    from profilesvc.database import migrate, nodes, time_limits
    from profilesvc.domain.errors import ServiceError
    from profilesvc.storage.tables import distribution

    def report(step: distribution.Step) -> None:
        typer.echo(f"profilesvc: {step.table}: {step.action}", err=True)

    async def work(engine: "AsyncEngine") -> tuple[list[distribution.Step], list[str]]:
        if not migrate.is_supported(await migrate.current(engine)):
            raise ServiceError(CONFLICT, "The tables are missing or old. Run `profilesvc db upgrade`.")
        if dry_run:
            return await distribution.missing(engine, shards), []
        done = await distribution.distribute(engine, shards, report)
        inactive = [f"{name} is not active and has no shards" for name in await nodes.inactive(engine)]
        return done, [*inactive, *await time_limits.ensure(engine)]

    steps, problems = _with_engine(work)
    for line in problems:
        typer.echo(f"profilesvc: {line}", err=True)
    if not steps:
        typer.echo("profilesvc: all tables are distributed", err=True)
    show([step._asdict() for step in steps], as_json)


@app.command()
def current(as_json: AsJson = False) -> None:
    """Show the database's revision and the newest one."""
    from profilesvc.database import migrate

    show({"current": _with_engine(migrate.current), "head": migrate.head()}, as_json)


@app.command()
def seed(as_json: AsJson = False) -> None:
    """Load the demo data into an empty database."""
    from profilesvc.fixtures import load_world
    from profilesvc.operations import seeding as seed
    from profilesvc.settings import forbid_in_production

    forbid_in_production("the demo data")
    world = load_world()
    run(lambda services: seed.load(services, world))
    show({name: len(world[name]) for name in ("users", "businesses", "locations")}, as_json)


Count = Annotated[int, typer.Option(min=1, max=10_000_000, help="Number of keys.")]


@app.command()
def generate(
    keys: Count = 1_000,
    posts: Annotated[int, typer.Option(min=0, max=100_000_000, help="Number of posts.")] = 10_000,
    history: Annotated[int, typer.Option(min=0, max=100_000_000, help="Number of syncs in the history.")] = 10_000,
    sites_per_user: Annotated[int, typer.Option(min=1, max=10_000, help="Sites of each user.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the random digests.")] = 1,
    yes: Annotated[
        bool, typer.Option("--yes", help="Continue even if there are users who are not demo users.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Add generated data, to test the service with many users, keys, locations, posts, syncs and events.

    The embedded emulator gets the same locations and posts. This command needs a checkout of the source.
    """
    from profilesvc.settings import forbid_in_production

    forbid_in_production("generated data")
    generator = _generator()
    amounts = generator.Amounts(keys, posts, history, sites_per_user)
    show(run(lambda services: generator.load(services, amounts, seed, sure=yes, emulated=True)), as_json)


def _generator() -> ModuleType:
    """Return `benchmarks/generate.py`. It is not in the wheel, because it is only for trials."""
    from profilesvc.contract.errors import CONFLICT
    from profilesvc.domain.errors import ServiceError

    if not (CHECKOUT / "benchmarks" / "generate.py").is_file():
        raise ServiceError(
            CONFLICT, "`db generate` needs a checkout of the source: it is not in the installed package."
        )
    sys.path.append(str(CHECKOUT))
    return importlib.import_module("benchmarks.generate")
