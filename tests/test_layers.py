"""Which package may import which: two tables of docs/architecture.md, compared with the source without importing it."""

import ast
import graphlib
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import profilesvc

ROOT = Path(profilesvc.__file__).parent
TABLE = Path(__file__).parents[1] / "docs" / "architecture.md"
LAYERS_OF_CORE = {"contract", "domain", "storage", "services", "api"}
MODULES_OF_A_PACKAGE = 30


@dataclass(frozen=True)
class Layer:
    """A row of the table: a package or module, and what it may import."""

    name: str
    ours: frozenset[str]  # empty string: everything
    theirs: frozenset[str]


def dotted(path: str) -> str:
    """Return `telemetry.metrics` for `telemetry/metrics.py`, and `api` for `api/`."""
    return path.rstrip("/").removesuffix(".py").replace("/", ".")


def listed(cell: str) -> list[str]:
    """Return the names of a cell: between backticks, or `everything` as the empty string."""
    return [""] if cell.strip() == "everything" else re.findall(r"`([^`]+)`", cell)


def table(heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading, without its head."""
    section = TABLE.read_text("utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")][1:]


@cache
def layers() -> dict[str, Layer]:
    """Read the table "Layers", from the lowest layer to the highest."""
    found = [
        Layer(dotted(listed(package)[0]), frozenset(map(dotted, listed(ours))), frozenset(listed(theirs)))
        for package, ours, theirs, _purpose in table("Layers")
    ]
    return {layer.name: layer for layer in found}


@cache
def rooms() -> dict[str, frozenset[str]]:
    """Read the table "Rooms", in their order: the modules and packages of each."""
    found = {}
    for cell, more, _purpose in table("Rooms"):
        named = {f"{layer}.{cell.strip()}" for layer in ("services", "storage", "operations")} & set(modules())
        found[cell.strip()] = frozenset(named | set(map(dotted, listed(more))))
    return found


def room_of(name: str) -> str | None:
    """Return the room of a module, or of a name in one; None for the core and for composition."""
    return next((room for room, parts in rooms().items() if within(name, parts)), None)


@cache
def modules() -> list[str]:
    """Return every module of the package as `api.endpoint`; a package has its own name."""
    paths = sorted(ROOT.rglob("*.py"))
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    return [name.removesuffix(".__init__") for name in names]


@cache
def tree(module: str) -> ast.Module:
    """Parse the source of a module."""
    path = ROOT.joinpath(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(source.read_text("utf-8"))


@cache
def imports(module: str) -> tuple[str, ...]:
    """Return every dotted name that a module imports, inside functions too."""
    return tuple(name for node in ast.walk(tree(module)) for name in imported(node, module))


def imported(node: ast.AST, module: str) -> Iterator[str]:
    """Return the dotted names of one statement."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"{module} has a relative import"
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(name: str, allowed: frozenset[str]) -> bool:
    """Return whether a name is one of the allowed ones or inside of one."""
    return any(prefix == "" or name == prefix or name.startswith(f"{prefix}.") for prefix in allowed)


@cache
def layer_of(name: str) -> str:
    """Return the row of a module, or of a name in one: the longest that fits."""
    fitting = [layer for layer in layers() if within(name, frozenset({layer}))]
    assert fitting, f"{name} is in no layer: add it to the table of docs/architecture.md"
    return max(fitting, key=len)


def ours(module: str) -> Iterator[str]:
    """Return what a module imports of profilesvc, without that prefix."""
    for name in imports(module):
        inner = name.removeprefix("profilesvc.")
        if inner not in (name, "__version__"):
            yield inner


def broken(module: str) -> list[str]:
    """Return the imports of a module that its row does not allow."""
    layer = layers()[layer_of(module)]
    allowed = layer.ours | {layer.name}
    wrong = [name for name in ours(module) if not within(name, allowed)]
    for name in imports(module):
        top = name.split(".")[0]
        if top not in sys.stdlib_module_names | {"profilesvc"} and not within(name, layer.theirs):
            wrong.append(name)
    return wrong


@pytest.mark.parametrize("layer", layers())
def test_a_layer_imports_only_what_the_table_allows(layer: str) -> None:
    found = {module: wrong for module in modules() if layer_of(module) == layer and (wrong := broken(module))}
    assert found == {}, "imports that the table of docs/architecture.md does not allow"


@pytest.mark.parametrize("layer", layers())
def test_a_row_names_only_rows_above_it(layer: str) -> None:
    order = list(layers())
    below = {name for name in layers()[layer].ours - {""} if order.index(layer_of(name)) >= order.index(layer)}
    assert below == set()


def test_every_module_is_in_a_layer() -> None:
    assert len([layer_of(module) for module in modules()]) > 80


def test_every_row_is_a_package_or_module() -> None:
    known = {part for module in modules() for part in (module, module.split(".")[0])} | {"__init__", "__main__"}
    named = {name for layer in layers().values() for name in (layer.name, *layer.ours)} - {""}
    assert named <= known


def test_the_check_sees_forbidden_imports() -> None:
    assert not within("profilesvc.storage.keys", frozenset({"contract", "domain"}))
    assert within("storage.keys", frozenset({"storage"}))
    assert not within("storage_other", frozenset({"storage"}))
    assert "sqlalchemy.ext.asyncio.AsyncSession" in set(imports("services.locations"))


def test_the_core_imports_no_room() -> None:
    core = [name for name in modules() if name.split(".")[0] in LAYERS_OF_CORE and room_of(name) is None]
    assert len(core) > 100
    assert {name: used for name in core if (used := [each for each in ours(name) if room_of(each)])} == {}


@pytest.mark.parametrize("room", rooms())
def test_a_room_imports_only_rooms_above_it(room: str) -> None:
    later = list(rooms())[list(rooms()).index(room) + 1 :]
    own = [name for name in modules() if room_of(name) == room]
    assert {name: used for name in own if (used := [each for each in ours(name) if room_of(each) in later])} == {}


def test_the_page_names_what_imports_rooms() -> None:
    text = TABLE.read_text("utf-8").partition("\nTo remove a room,")[2].partition("\n\n")[0]
    others = {name for name in modules() if room_of(name) is None and any(room_of(each) for each in ours(name))}
    assert {layer_of(name) for name in others} <= set(map(dotted, listed(text)))


def test_every_part_of_a_room_is_a_package_or_module() -> None:
    assert frozenset[str]().union(*rooms().values()) <= set(modules())


def test_a_capability_with_a_package_is_a_room() -> None:
    """Those of storage that are none keep up what is stored."""
    packages = {name for name in modules() if (ROOT / name.replace(".", "/")).is_dir() and name.count(".") == 1}
    of_layers = {name for name in packages if name.split(".")[0] in {"services", "storage", "operations"}}
    assert {name for name in of_layers if room_of(name) is None} == {"storage.tables", "storage.upkeep"}


def test_composition_has_the_rooms_of_the_table() -> None:
    calls = [
        node for node in ast.walk(tree("rooms")) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Room"
    ]
    assert [ast.literal_eval(call.args[0]) for call in calls] == list(rooms())


def test_a_package_has_at_most_30_modules() -> None:
    flat = Counter(path.parent for path in ROOT.rglob("*.py") if path.name != "__init__.py")
    assert {path.name: count for path, count in flat.items() if count > MODULES_OF_A_PACKAGE} == {}


def needed(module: str, known: set[str]) -> set[str]:
    """Return the modules that one imports, anywhere in it, apart from the packages it is in."""
    parts = [name.split(".") for name in ours(module)]
    found = {".".join(names[:length]) for names in parts for length in range(1, len(names) + 1)}
    packages = {module.rsplit(".", length)[0] for length in range(module.count(".") + 1)}
    return found & known - packages


def test_no_modules_import_each_other() -> None:
    known = set(modules())
    graph = {module: needed(module, known) for module in known}
    assert "domain.rates" in graph["limits.limiter"], "the check sees imports"
    graphlib.TopologicalSorter(graph).prepare()  # CycleError names the circle


def test_time_and_chance_are_read_in_one_place() -> None:
    """Instants come from a Clock (`domain/time.py`) and random bytes from an Entropy (`domain/entropy.py`)."""
    clocks = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "date.today"}
    chance = frozenset({"random", "secrets", "uuid", "os.urandom"})
    for module in modules():
        if layer_of(module) not in {"contract", "domain", "services", "storage", "api"} or module in {
            "domain.time",
            "domain.entropy",
        }:
            continue
        calls = {ast.unparse(node.func) for node in ast.walk(tree(module)) if isinstance(node, ast.Call)}
        assert not calls & clocks, f"{module} reads a clock"
        assert not {name for name in imports(module) if within(name, chance)}, f"{module} makes chance of its own"


@pytest.mark.thorough
def test_no_import_warns() -> None:
    """Imports inside functions too. A library warns first at its import about what it will drop."""
    nodes = [node for module in modules() for node in ast.walk(tree(module))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    script = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    words = [sys.executable, "-W", "always", "-c", script, *sorted(names)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
