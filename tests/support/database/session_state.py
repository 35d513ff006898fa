"""What code would leave in a session of PostgreSQL, which a pooler gives to another client after each transaction."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

ACCEPTED_BY_POOLERS = {"application_name"}  # PgBouncer rejects other parameters at the start of a connection
_KEPT = {
    "an advisory lock": r"\bpg_(try_)?advisory_\w+",  # those of a transaction belong to one node of a cluster
    "LISTEN or NOTIFY": r"(^|;)\s*(UN)?LISTEN\s|(^|;)\s*NOTIFY\s|\bpg_notify\b|\bpg_listening_channels\b",
    "SET without LOCAL": r"(^|;)\s*(RE)?SET\s+(?!LOCAL\b|TRANSACTION\b|CONSTRAINTS\b)\S|\bset_config\(.*\bfalse\s*\)",
    "a temporary table": r"\bTEMP(ORARY)?\s+(TABLE|VIEW|SEQUENCE)\b|^TEMP(ORARY)?$|\bpg_temp\b",
    "a cursor WITH HOLD": r"\bWITH HOLD\b",
    "a statement that SQL prepares": r"(^|;)\s*(PREPARE\s+(?!TRANSACTION)\w+|DEALLOCATE|DISCARD)\b",
    "the last number of a sequence in this session": r"\b(currval|lastval)\s*\(",
    "a library that the session loads": r"(^|;)\s*LOAD\s+'",
}
_PATTERNS = {kind: re.compile(pattern) for kind, pattern in _KEPT.items()}
# Functions of SQL that SQLAlchemy's `func` may name, and methods and arguments of the driver.
_FUNCTIONS = re.compile(r"pg_(try_)?advisory_\w+|pg_notify|currval|lastval|set_config")
_METHODS = {
    "add_listener": "LISTEN or NOTIFY",
    "set_type_codec": "SET without LOCAL",
    "set_session_authorization": "SET without LOCAL",
}


class Finding(NamedTuple):
    """A place and what it would leave behind."""

    line: int
    kind: str


def of_statement(statement: str) -> set[str]:
    """Return what a statement would leave in its session."""
    return {kind for kind, pattern in _PATTERNS.items() if pattern.search(statement)}


def of_source(source: str) -> list[Finding]:
    """Return what the statements and calls of a module would leave in a session, apart from its docstrings."""
    tree = ast.parse(source)
    skipped = set(_docstrings(tree))
    found: list[Finding] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
        if id(node) not in skipped:
            found += [Finding(getattr(node, "lineno", 0), kind) for kind in _kinds(node)]
    return sorted(found)


def _docstrings(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield id(node.value)


def _kinds(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from of_statement(node.value)
    elif isinstance(node, ast.JoinedStr):
        yield from of_statement("".join(_part(value) for value in node.values))
    elif isinstance(node, ast.Attribute):
        if _FUNCTIONS.fullmatch(node.attr):
            yield f"the function {node.attr}"
        if node.attr in _METHODS:
            yield _METHODS[node.attr]
    elif isinstance(node, ast.Call):
        yield from _of_call(node)
    elif isinstance(node, ast.Dict):
        yield from _of_parameters(node)


def _part(value: ast.expr) -> str:
    """Return a literal part of a formatted string; for what is filled in, a word."""
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else "x"


def _of_call(call: ast.Call) -> Iterator[str]:
    names = {word.arg for word in call.keywords}
    if isinstance(call.func, ast.Attribute) and call.func.attr == "prepare" and "name" in names:
        yield "a prepared statement with a name"
    for word in call.keywords:
        if word.arg == "server_settings":
            yield from _rejected(word.value)


def _of_parameters(node: ast.Dict) -> Iterator[str]:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and key.value == "server_settings":
            yield from _rejected(value)


def _rejected(settings: ast.expr) -> Iterator[str]:
    """Yield the start-up parameters that a pooler rejects, or that there is no knowing them."""
    keys = settings.keys if isinstance(settings, ast.Dict) else [None]
    for key in keys:
        if not (isinstance(key, ast.Constant) and key.value in ACCEPTED_BY_POOLERS):
            yield f"the start-up parameter {ast.unparse(key) if key is not None else 'of a variable'}"
