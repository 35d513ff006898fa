"""Who may import whom: the floors of docs/architecture.md, read from the source without importing it."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import profilesvc

ROOT = Path(profilesvc.__file__).parent
EVERYTHING = {""}

# A floor, longest match first: what it may import of profilesvc beside itself, and of third parties.
FLOORS: dict[str, tuple[set[str], set[str]]] = {
    "__init__": (set(), set()),
    "__main__": ({"cli"}, set()),
    "contract": (set(), {"pydantic", "pydantic_core"}),
    "domain": ({"contract"}, {"pydantic", "pydantic_core", "idna", "tldextract"}),
    "fixtures": (set(), set()),
    "server": (set(), {"uvicorn", "httptools", "quart"}),
    "limits": ({"contract", "domain"}, {"limits", "redis", "pydantic", "pydantic_settings"}),
    "settings": ({"limits.settings"}, {"dotenv", "pydantic", "pydantic_settings"}),
    "telemetry.metrics": (set(), {"prometheus_client"}),
    "database": ({"contract", "domain", "storage.tables"}, {"sqlmodel", "sqlalchemy", "alembic", "asyncpg"}),
    "storage": ({"contract", "domain", "database"}, {"sqlmodel", "sqlalchemy", "alembic", "asyncpg"}),
    "tokens": ({"contract", "domain"}, {"jwt", "cryptography", "orjson", "httpx"}),
    "provider": ({"contract", "domain", "settings", "fixtures"}, {"httpx", "tenacity", "pydantic", "pydantic_core"}),
    "provider.connect": (
        {"contract", "domain", "settings", "fixtures", "provider", "emulator"},
        {"httpx", "pydantic", "quart"},
    ),
    "emulator": (
        {"contract", "domain", "settings", "fixtures", "provider", "database.private_files", "server.routing"},
        {"pydantic", "pydantic_core", "quart", "sqlmodel", "sqlalchemy", "werkzeug"},
    ),
    "services": (
        {
            "contract",
            "domain",
            "database",
            "storage",
            "tokens",
            "limits",
            "provider.port",
            "settings",
            "telemetry.metrics",
            "operations.operator",
        },
        # The session is only named in signatures here: statements are written in storage.
        {"jwt", "cryptography", "orjson", "httpx", "sqlalchemy.ext.asyncio.AsyncSession"},
    ),
    "operations": (
        {"contract", "domain", "database", "storage", "services", "telemetry.metrics"},
        {"cryptography", "orjson", "sqlalchemy.ext.asyncio.AsyncSession"},
    ),
    "api": (
        {"contract", "domain", "limits", "services", "operations", "server.routing", "server.scope"},
        {"quart", "quart_schema", "werkzeug", "pydantic", "pydantic_core", "orjson", "xxhash"},
    ),
    # It stands in for a foreign identity provider; in the database it keeps links and used codes.
    "dev_issuer": (
        {"contract", "domain", "tokens", "services", "storage", "api.request"},
        {"quart", "werkzeug", "jwt", "orjson"},
    ),
    "client": ({"contract"}, {"httpx", "pydantic"}),
    # It serves pages beside the API: the same edge, refusals and services, and the client's reading of a comparison.
    "dashboard": (
        {"contract", "domain", "limits.limiter", "tokens", "services", "api", "client.readings"},
        {"quart", "werkzeug", "jinja2"},
    ),
    "dashboard.signing_in": (
        {"contract", "domain", "tokens", "services", "dashboard"},
        {"quart", "httpx", "authlib", "itsdangerous"},
    ),
    "telemetry": (
        {"settings", "api", "database", "domain", "storage"},
        {"opentelemetry", "sqlalchemy.ext.asyncio.AsyncSession"},
    ),
    "bootstrap": (
        {
            "api",
            "contract",
            "dashboard",
            "database",
            "dev_issuer",
            "domain",
            "emulator",
            "fixtures",
            "limits",
            "operations",
            "provider",
            "services",
            "settings",
            "telemetry",
            "tokens",
        },
        {"quart", "sqlalchemy"},
    ),
    "lab": (
        # services: it acts as the operator, as cli does; the emulator: it may serve that elsewhere.
        {
            "bootstrap",
            "client",
            "contract",
            "domain",
            "emulator.app",
            "emulator.guard",
            "fixtures",
            "operations",
            "server",
            "services",
            "settings",
        },
        {"httpx", "nbclient", "nbformat", "IPython"},
    ),
    "cli": (EVERYTHING, {"typer", "rich", "click", "httpx", "quart", "sqlalchemy", "alembic", "orjson"}),
}


def modules() -> list[str]:
    """Every module of the package as `api.endpoint`; a package is its own name."""
    paths = sorted(ROOT.rglob("*.py"))
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    return [name.removesuffix(".__init__") for name in names]


def imports(module: str) -> Iterator[str]:
    """Every dotted name that a module imports, wherever the statement stands."""
    path = ROOT.joinpath(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(name: str, allowed: set[str]) -> bool:
    return any(prefix == "" or name == prefix or name.startswith(f"{prefix}.") for prefix in allowed)


def floor_of(module: str) -> str:
    fitting = [floor for floor in FLOORS if within(module, {floor})]
    assert fitting, f"{module} stands on no floor: add it to the table"
    return max(fitting, key=len)


def broken(module: str) -> list[str]:
    """The imports of a module that its floor does not allow."""
    floor = floor_of(module)
    ours, theirs = FLOORS[floor]
    wrong = []
    for name in imports(module):
        top = name.split(".")[0]
        if top == "profilesvc":
            inner = name.removeprefix("profilesvc").lstrip(".")
            if inner != "__version__" and not within(inner, ours | {floor}):
                wrong.append(name)
        elif top not in sys.stdlib_module_names and not within(name, theirs):
            wrong.append(name)
    return wrong


@pytest.mark.parametrize("floor", FLOORS)
def test_a_floor_imports_only_what_it_may(floor: str) -> None:
    found = {module: wrong for module in modules() if floor_of(module) == floor and (wrong := broken(module))}
    assert found == {}


def test_every_module_stands_on_a_floor() -> None:
    assert len([floor_of(module) for module in modules()]) > 80


def test_the_check_sees_what_is_not_allowed() -> None:
    assert not within("profilesvc.storage.keys", {"contract", "domain"})
    assert within("storage.keys", {"storage"})
    assert not within("storage_other", {"storage"})
    assert "sqlalchemy.ext.asyncio.AsyncSession" in set(imports("services.locations"))


def test_time_and_chance_are_read_in_one_place() -> None:
    """Instants come from a Clock and random bytes from an Entropy; `world.py` makes both (conventions 6)."""
    clocks = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "date.today"}
    chance = {"random", "secrets", "uuid", "os.urandom"}
    for module in modules():
        if floor_of(module) not in {"contract", "domain", "services", "storage", "api"} or module == "domain.world":
            continue
        path = ROOT.joinpath(*module.split("."))
        tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text("utf-8"))
        calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        assert not calls & clocks, f"{module} reads a clock"
        assert not {name for name in imports(module) if within(name, chance)}, f"{module} makes chance of its own"
