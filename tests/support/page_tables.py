"""The tables of README and docs/ that are written from the code. `make reference` writes them; tests compare them.

A table is between the lines `<!-- table: NAME -->` and `<!-- end -->` of a page, with NAME from TABLES.
"""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from profilesvc.settings import PREFIX, Settings
from support.repository import DOCS

_TABLE = re.compile(r"(?<=^<!-- table: )([\w-]+)( -->\n).*?(?=^<!-- end -->$)", re.MULTILINE | re.DOTALL)
_UNITS = {"_seconds": "s", "_days": "days"}


def described(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo, str, ast.expr | None]]:
    """Return each field of a group of settings with its docstring and the expression of its default."""
    source = ast.parse(inspect.getsource(model)).body[0]
    assert isinstance(source, ast.ClassDef)
    for statement, following in zip(source.body, [*source.body[1:], None], strict=True):
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
            continue
        name = statement.target.id
        match following:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield name, model.model_fields[name], text, statement.value
            case _:  # a group has a table of its own
                assert isinstance(model.model_fields[name].default, BaseModel), f"{name} has no docstring"


def _default(name: str, field: FieldInfo, written: ast.expr | None) -> str:
    value = field.default.get_secret_value() if isinstance(field.default, SecretStr) else field.default
    match written:
        case ast.Call(func=ast.Attribute(), args=[ast.Constant(value=str(rate))]):  # Window.of("10/minute")
            return f"`{rate}`"
    if value in (None, "", ()):
        return "not set"
    text = (
        ",".join(value) if isinstance(value, tuple) else str(value).lower() if isinstance(value, bool) else f"{value}"
    )
    unit = next((f" {unit}" for suffix, unit in _UNITS.items() if name.endswith(suffix)), "")
    return f"`{text}`{unit}"


def _range(field: FieldInfo) -> str:
    """Return the bounds of a number: ` (1 to 200)`."""
    bounds = {
        name: getattr(rule, name) for rule in field.metadata for name in ("ge", "gt", "le") if hasattr(rule, name)
    }
    if not bounds.keys() & {"ge", "gt"}:
        return ""
    least = f"{bounds['ge']:,}" if "ge" in bounds else f"above {bounds['gt']:,}"
    return f" ({least} to {bounds['le']:,})"


def settings_table(group: str = "") -> str:
    """Return the rows of a group of settings, or of the settings outside of groups."""
    model: Any = type(Settings.model_fields[group].default) if group else Settings
    prefix = f"{group.upper()}__" if group else ""
    rows = [f"| Variable (prefix `{PREFIX}`) | Default | Meaning |", "|---|---|---|"]
    for name, field, text, written in described(model):
        is_secret = field.annotation is SecretStr
        meaning = ("**Secret.** " if is_secret else "") + " ".join(text.split()) + _range(field)
        rows.append(f"| `{prefix}{name.upper()}` | {_default(name, field, written)} | {meaning} |")
    return "\n".join(rows) + "\n"


def _groups() -> list[str]:
    return [name for name, field in Settings.model_fields.items() if isinstance(field.default, BaseModel)]


TABLES: dict[str, Callable[[], str]] = {
    "settings": settings_table,
    **{f"settings-{group}": lambda group=group: settings_table(group) for group in _groups()},  # type: ignore[misc]
}


def with_tables(page: str) -> str:
    """Return the text of a page with its tables written from the code."""
    return _TABLE.sub(lambda found: f"{found[1]}{found[2]}\n{TABLES[found[1]]()}\n", page)


def tables_of(page: str) -> list[str]:
    """Return the names of the tables of a page."""
    return [found[1] for found in _TABLE.finditer(page)]


def pages() -> Iterator[Path]:
    """Return the pages that can have tables."""
    yield from sorted(DOCS.glob("*.md"))


if __name__ == "__main__":
    for path in pages():
        path.write_text(with_tables(path.read_text("utf-8")), "utf-8")
