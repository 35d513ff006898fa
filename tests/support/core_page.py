"""What docs/core.md takes from the code: the 18 operations with their files, and one example of each kind of code."""

import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from quart import Quart

import profilesvc
from profilesvc.api import converters, routes
from profilesvc.api.endpoint import Endpoint
from profilesvc.api.routes.sync import list_sync_history
from profilesvc.provider.remote import RemoteProvider
from profilesvc.services import sync as use_cases
from profilesvc.storage import sync as queries
from support.repository import ROOT

SOURCE = Path(profilesvc.__file__).parent
_PROOF = "<!-- code -->"


def operations() -> Iterator[Endpoint]:
    """Yield the declarations of the operations of the contract, without additions to it."""
    app = Quart("core")
    converters.install(app.url_map)
    for module in pkgutil.iter_modules(routes.__path__):
        noun = importlib.import_module(f"{routes.__name__}.{module.name}")
        if hasattr(noun, "routes"):
            app.register_blueprint(noun.routes.blueprint)
    declared = [getattr(view, "endpoint", None) for view in app.view_functions.values()]
    yield from (each for each in declared if isinstance(each, Endpoint) and not each.addition)


def _use_cases(handler: Callable[..., object]) -> Iterator[str]:
    """Yield what a handler calls in the services, such as `create` in `services/posts.py`."""
    for name, function in re.findall(r"await (\w+)\.(\w+)\(", inspect.getsource(handler)):
        module = handler.__globals__.get(name)
        if isinstance(module, ModuleType):
            yield f"`{function}` in `{_file(module)}`"


def _file(of: ModuleType | Callable[..., object]) -> str:
    return Path(inspect.getsourcefile(of) or "").relative_to(SOURCE).as_posix()


def operations_table() -> str:
    """Return a row for each of the 18 operations."""
    rows = ["| Operation | Handler | Use case |", "|---|---|---|"]
    for each in operations():
        handler, path = each.handler, re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", each.path)
        where = f"`{handler.__name__}` in `{_file(handler)}`"
        rows.append(f"| `{each.method} {path}` | {where} | {', '.join(_use_cases(handler))} |")
    return "\n".join(rows) + "\n"


def _block(sentence: str, function: Callable[..., object]) -> str:
    """Return a sentence and the source of a function with the name of its file."""
    source = textwrap.dedent(inspect.getsource(function))
    return f"{sentence}\n\n{_PROOF}\n```python\n# src/profilesvc/{_file(function)}\n{source}```\n"


def _test() -> str:
    """Return a test, whose module can only be imported by pytest."""
    path, name = "tests/api/test_connection.py", "test_the_response_to_a_heartbeat_names_the_next_one"
    (source,) = re.findall(rf"^ *async def {name}\(.*?\n\n", (ROOT / path).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    sentence = "A test acts by HTTP on the real app, its real database and the emulator:"
    return f"{sentence}\n\n{_PROOF}\n```python\n# {path}\n{textwrap.dedent(source).strip()}\n```\n"


def code() -> str:
    """Return an endpoint, a use case, a query, a call of the provider and a test."""
    return "\n".join(
        [
            _block(
                "An endpoint declares path, access, body and response once; the documents follow:",
                list_sync_history,
            ),
            _block("A use case gets `services` first: the database, the clock, the provider:", use_cases.history),
            _block("A query gets the session, then the owner; its rows stay in `services/`:", queries.history),
            _block("A call of the provider, which is never made inside of a write:", RemoteProvider.google_updated),
            _test(),
        ]
    )


BLOCKS: dict[str, Callable[[], str]] = {"core-operations": operations_table, "core-code": code}
