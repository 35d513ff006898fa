"""Statements that SQLAlchemy compiles once in a process, because each test has engines of its own.

Its cache belongs to an engine, and its keys name the dialect of the engine. To compile again took a fifth of the CPU of
an API test.
"""

from typing import Any

from sqlalchemy import Engine
from sqlalchemy.dialects.postgresql import asyncpg
from sqlalchemy.dialects.sqlite import aiosqlite, pysqlite
from sqlalchemy.util import LRUCache

_MOST = 5_000
_compiled: LRUCache[Any, Any] = LRUCache(_MOST)


def _is_alike(self: object, other: object) -> bool:
    return type(self) is type(other)


def share() -> None:
    """Let all engines of a dialect use the statements that one of them has compiled."""
    Engine._compiled_cache = property(lambda _engine: _compiled, lambda _engine, _cache: None)  # type: ignore[assignment]
    for dialect in (aiosqlite.dialect, pysqlite.dialect, asyncpg.dialect):
        dialect.__eq__ = _is_alike  # type: ignore[method-assign]
        dialect.__hash__ = lambda self: hash(type(self))  # type: ignore[method-assign]
