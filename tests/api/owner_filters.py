"""Which tables of tenants a statement reads or writes without naming the owner, by a parser of SQL."""

import contextlib
from collections.abc import Iterator

from sqlglot import exp, parse_one

from profilesvc.storage.tables import TENANTS

_DIALECTS = {"postgresql": "postgres", "sqlite": "sqlite"}
_VALUES = (exp.Placeholder, exp.Parameter, exp.Literal)
Name = tuple[str, str]  # the alias of a table, and the name of a column


def without_owner(statement: str, dialect: str) -> set[str]:
    """The tables of tenants for which the statement has no `owner_id = value` (users: `id`), directly or by a join."""
    parsed = parse_one(statement, read=_DIALECTS[dialect])
    return {name for name, is_bound in _tables(parsed, frozenset()) if not is_bound}


def _tables(block: exp.Expr, outer: frozenset[Name]) -> Iterator[tuple[str, bool]]:
    """Each table of a tenant in a block and the blocks within it, and whether its owner is known.

    `outer` are the columns around the block that are known to be the owner.
    """
    own = [table for table in _within(block, exp.Table) if table.name in TENANTS]
    if isinstance(block, exp.Insert):
        target = block.find(exp.Schema)
        assert target is not None, "our statements name their columns"
        table = target.this.name
        named = {column.name for column in target.expressions}
        if table in TENANTS - {"users"}:  # a new user gets its number only now
            yield table, "owner_id" in named
        own = [each for each in own if each is not target.this]
    known = _known(block, {table.alias_or_name: _owner(table.name) for table in own}, outer)
    for table in own:
        yield table.name, (table.alias_or_name, _owner(table.name)) in known
    for inner in _within(block, exp.Query):
        yield from _tables(inner, known)


def _owner(table: str) -> str:
    return "id" if table == "users" else "owner_id"


def _known(block: exp.Expr, owners: dict[str, str], outer: frozenset[Name]) -> frozenset[Name]:
    """The columns that are known to be the owner: equal to a value, or to a column that is known."""
    pairs = [
        (_side(equal.left), _side(equal.right)) for condition in _conditions(block) for equal in _equals(condition)
    ]
    known = set(outer)
    for _ in range(len(pairs) + 1):
        for one, other in (*pairs, *((right, left) for left, right in pairs)):
            if isinstance(one, tuple) and owners.get(one[0]) == one[1] and (other is True or other in known):
                known.add(one)
    return frozenset(known)


def _side(side: exp.Expr) -> Name | bool:
    """A column by its names, or whether it is a value."""
    while isinstance(side, exp.Cast | exp.Paren):
        side = side.this
    return (side.table, side.name) if isinstance(side, exp.Column) else isinstance(side, _VALUES)


def _conditions(block: exp.Expr) -> Iterator[exp.Expr]:
    if where := block.args.get("where"):
        yield where.this
    for join in _within(block, exp.Join):
        with contextlib.suppress(KeyError):
            yield join.args["on"]


def _equals(condition: exp.Expr) -> Iterator[exp.EQ]:
    """The equalities that hold for every row of the result: not those of an OR."""
    if isinstance(condition, exp.And):
        yield from _equals(condition.left)
        yield from _equals(condition.right)
    elif isinstance(condition, exp.Paren):
        yield from _equals(condition.this)
    elif isinstance(condition, exp.EQ):
        yield condition


def _within(block: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    """The nodes of a kind in a block, apart from those of the blocks within it."""
    for child in block.iter_expressions():
        if isinstance(child, kind):
            yield child
        if not isinstance(child, exp.Query) or isinstance(child, exp.Subquery):
            yield from _within(child, kind)
