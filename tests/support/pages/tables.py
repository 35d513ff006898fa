"""The tables of README and docs/ that are written from the code. `make reference` writes them; tests compare them.

A table is between the lines `<!-- table: NAME -->` and `<!-- end -->` of a page, with NAME from TABLES.
"""

import ast
import inspect
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from profilesvc.bootstrap import open_plans
from profilesvc.client.errors import ProfileError
from profilesvc.client.operations import businesses
from profilesvc.client.responses import ERROR_CLASSES
from profilesvc.client.retries import Retries, Tries
from profilesvc.contract.errors import CATALOGUE, Forbidden
from profilesvc.domain.rates import Window
from profilesvc.limits.settings import LimitSettings
from profilesvc.settings import PREFIX, Settings
from profilesvc.settings.secret_files import is_secret
from support.core_page import BLOCKS
from support.documents import inlined
from support.repository import DOCS, ROOT

_TABLE = re.compile(r"(?<=^<!-- table: )([\w-]+)( -->\n).*?(?=^<!-- end -->$)", re.MULTILINE | re.DOTALL)
PLUGIN = ROOT / "examples/wordpress-plugin"
# What a plugin needs that only connects and sends heartbeats.
HEARTBEAT_ONLY = {
    "profilesvc", "Api", "Result", "Store", "Lock", "Tokens", "Refused", "Session", "Problems", "Site", "Connector",
    "Heartbeat", "Words", "ProfileForm", "Hours", "Host", "RetryAfter", "Secrets",
}  # fmt: skip
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
        meaning = ("**Secret.** " if is_secret(name, field) else "") + " ".join(text.split()) + _range(field)
        rows.append(f"| `{prefix}{(field.alias or name).upper()}` | {_default(name, field, written)} | {meaning} |")
    return "\n".join(rows) + "\n"


def _groups() -> list[str]:
    return [name for name, field in Settings.model_fields.items() if isinstance(field.default, BaseModel)]


def retry_of(code: str) -> str:
    """Return when our own client sends a repeatable request again after an error of this code."""
    reports: set[bool] = set()
    for is_temporary in (True, False):
        error = ERROR_CLASSES[code](code, CATALOGUE[code].status, "", {"retryable": is_temporary})
        try:
            Tries(Retries(), businesses(), lambda: 0.0).pause(error)
        except ProfileError:
            reports.add(False)
        else:
            reports.add(True)
    return "if `details.retryable`" if len(reports) == 2 else "yes" if True in reports else "no"


def _later(code: str) -> str:
    """Return when the WordPress plugin sends a change again, minutes or hours after an error of this code."""
    if code == "PROVIDER_API_ERROR":
        return "if `details.retryable`"
    (listed,) = re.findall(r"WORTH_REPEATING = \[(.*?)\]", (PLUGIN / "src/Result.php").read_text("utf-8"), re.DOTALL)
    return "yes" if f"'{code}'" in listed else "no"


def errors_table() -> str:
    """Return a row for each error code, with a link to its section."""
    rows = ["| Code | Status | Retry | Later | Message |", "|---|---|---|---|---|"]
    for kind in sorted(CATALOGUE.values(), key=lambda kind: kind.status):
        link, when = f"[`{kind.code}`](#{kind.code.lower()})", f"{retry_of(kind.code)} | {_later(kind.code)}"
        rows.append(f"| {link} | {kind.status} | {when} | {kind.message} |")
    return "\n".join(rows) + "\n"


# The errors that a caller cannot cause on a running demo, and why.
WITHOUT_RECIPE = {
    "QUOTA_EXCEEDED": "the demo allows 1,000 posts a month; `PROFILESVC_PLANS_FILE` can allow one",
    "INTERNAL_ERROR": "only a defect of the service causes it",
}


def recipes_table() -> str:
    """Return a row for each error code: the section that causes it, or why there is none."""
    rows = ["| Code | Status | How to cause it |", "|---|---|---|"]
    for kind in sorted(CATALOGUE.values(), key=lambda kind: kind.status):
        recipe = WITHOUT_RECIPE.get(kind.code, f"[recipe](#{kind.code.lower()})")
        rows.append(f"| [`{kind.code}`](errors.md#{kind.code.lower()}) | {kind.status} | {recipe} |")
    return "\n".join(rows) + "\n"


def forbidden_table() -> str:
    """Return a row for each reason of AUTH_INSUFFICIENT_PERMISSIONS."""
    rows = ["| `details.reason` | When |", "|---|---|"]
    return "\n".join([*rows, *(f"| `{reason.value}` | {reason.when} |" for reason in Forbidden)]) + "\n"


def permissions_table() -> str:
    """Return a row for each operation: who may call it, and whether an idempotency key is accepted."""
    rows = ["| Operation | User token | Service token | Idempotency key |", "|---|---|---|---|"]
    for path, methods in inlined(json.loads((ROOT / "openapi.json").read_text("utf-8")))["paths"].items():
        for method, operation in methods.items():
            if not path.startswith("/api/v1"):
                continue
            schemes = {name: scopes for each in operation["security"] for name, scopes in each.items()}
            user = "yes" if "userToken" in schemes else "no" if schemes else "no token"
            service = "no" if schemes else "no token"
            if "serviceToken" in schemes:
                service = ", ".join(f"`{scope}`" for scope in schemes["serviceToken"]) or "yes"
            once = any("Idempotency" in parameter["name"] for parameter in operation["parameters"])
            rows.append(f"| `{method.upper()} {path}` | {user} | {service} | {'yes' if once else 'no'} |")
    return "\n".join(rows) + "\n"


def plans_table() -> str:
    """Return a row for each packaged plan."""
    rows = [
        "| Plan | Sync | Posts | Posts a month | Reviews | Locations | Live keys per location | Fields of a sync |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for plan in open_plans(Settings(_env_file=None)).values():
        fields = ", ".join(f"`{name}`" for name in plan.syncable) if plan.syncable else "every writable field"
        included = ("yes" if has else "no" for has in (plan.sync, plan.posts))
        rows.append(
            f"| {plan.display_name} (`{plan.name}`) | {' | '.join(included)} | {plan.monthly_posts:,} "
            f"| {'yes' if plan.reviews else 'no'} | {plan.locations:,} | {plan.live_keys_per_location:,} | {fields} |"
        )
    return "\n".join(rows) + "\n"


def limits_table() -> str:
    """Return a row for each rate limit, under the name that responses have."""
    rows = ["| Limit | Default | Counts |", "|---|---|---|"]
    for name, field, text, written in described(LimitSettings):
        if isinstance(field.default, Window):
            rows.append(f"| `{name.replace('_', '-')}` | {_default(name, field, written)} | {text} |")
    return "\n".join(rows) + "\n"


def plugin_codes_table() -> str:
    """Return a row for each code that the WordPress plugin makes itself, with its comment and the owner's words."""
    rows = ["| Code | Meaning | Words for the owner |", "|---|---|---|"]
    of_code = r"(?:case '(\w+)':|if \('(\w+)' === \$code\) \{)(?: // (.+))?$"
    for found in re.finditer(of_code, text := (PLUGIN / "src/Words.php").read_text("utf-8"), re.MULTILINE):
        if comment := found[3]:
            words = re.search(r"\b__\('((?:[^'\\]|\\.)*)'", text[found.end() :])
            assert words
            rows.append(f"| `{found[1] or found[2]}` | {comment} | {words[1]} |")
    return "\n".join(rows) + "\n"


def plugin_files_table() -> str:
    """Return a row for each file of the WordPress plugin, with the first sentence of its comment."""
    rows = ["| File | Purpose |", "|---|---|"]
    for file in [PLUGIN / "profilesvc.php", *sorted((PLUGIN / "src").glob("*.php")), PLUGIN / "uninstall.php"]:
        name, (comment, *_) = (
            file.relative_to(PLUGIN).as_posix(),
            re.findall(r"/\*\*\n \* (.+)", file.read_text("utf-8")),
        )
        purpose = "The header of the plugin, and the autoloader." if name == "profilesvc.php" else comment
        mark = " *" if file.stem in HEARTBEAT_ONLY else ""
        rows.append(f"| [{name}](../examples/wordpress-plugin/{name}){mark} | {purpose} |")
    return "\n".join(rows) + "\n"


TABLES: dict[str, Callable[[], str]] = {
    "errors": errors_table,
    "forbidden": forbidden_table,
    "limits": limits_table,
    "permissions": permissions_table,
    "plans": plans_table,
    "plugin-codes": plugin_codes_table,
    "plugin-files": plugin_files_table,
    "settings": settings_table,
    "test-errors": recipes_table,
    **BLOCKS,
    **{f"settings-{group}": lambda group=group: settings_table(group) for group in _groups()},  # type: ignore[misc]
}


def with_tables(page: str) -> str:
    """Return the text of a page with its tables written from the code."""
    return _TABLE.sub(lambda found: f"{found[1]}{found[2]}\n{TABLES[found[1]]()}\n", page)


def tables_of(page: str) -> list[str]:
    """Return the names of the tables of a page."""
    return [found[1] for found in _TABLE.finditer(page)]


def rows(page: str, name: str) -> list[list[str]]:
    """Return the cells of a table, without code marks and links."""
    (table,) = re.findall(rf"<!-- table: {name} -->\n\n(.*?)\n<!-- end -->", page, re.DOTALL)
    lines = table.strip().split("\n")[2:]
    return [[re.sub(r"`|\[|\]\(.*?\)", "", cell).strip() for cell in line.strip("|").split(" | ")] for line in lines]


def pages() -> Iterator[Path]:
    """Return the pages that can have tables."""
    yield from sorted(DOCS.glob("*.md"))


if __name__ == "__main__":
    for path in pages():
        path.write_text(with_tables(path.read_text("utf-8")), "utf-8")
