"""Change the code that guards tenants, one place at a time, and see whether the tests notice (T16).

    python tests/mutation/mutants.py [--sample N] [MODULE …]      # `make mutants`

Prints what stays alive, and killed/all per module. Works on a copy of the tree; nothing here is touched.
"""

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 300
TESTS: dict[str, list[str]] = {
    "services/signing.py": [
        "unit/test_signing.py",
        "unit/test_token_mutation.py",
        "unit/test_keys.py",
        "api/test_bad_bearers.py",
    ],
    "services/jose.py": ["unit/test_signing.py", "unit/test_token_mutation.py", "api/test_bad_bearers.py"],
    "services/access.py": [
        "api/test_access_states.py",
        "api/test_bad_bearers.py",
        "api/test_keys.py",
        "api/test_access_matrix.py",
    ],
    "services/rotation.py": [
        "api/test_rotation.py",
        "api/test_refresh_grant.py",
        "api/test_audit.py",
        "api/test_upkeep.py",
    ],
    "services/idempotency.py": ["api/test_idempotency.py", "api/test_attacks.py", "api/test_posts_create.py"],
    "storage/idempotency.py": ["api/test_idempotency.py", "api/test_attacks.py", "api/test_posts_create.py"],
    "domain/domains.py": ["unit/test_domains.py", "unit/test_origins.py"],
}
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


def variants(node: ast.AST) -> Iterator[ast.AST]:
    """What could stand where a node stands."""
    other = copy.deepcopy(node)
    if isinstance(other, ast.Compare):
        other.ops[0] = COMPARISONS[type(other.ops[0])]()
        yield other
    elif isinstance(other, ast.BoolOp):
        other.op = ast.And() if isinstance(other.op, ast.Or) else ast.Or()
        yield other
    elif isinstance(other, ast.UnaryOp) and isinstance(other.op, ast.Not):
        yield other.operand
    elif isinstance(other, ast.Constant) and isinstance(other.value, bool):
        yield ast.Constant(not other.value)
    elif isinstance(other, ast.Constant) and isinstance(other.value, int):
        yield ast.Constant(other.value + 1)
    elif isinstance(other, ast.Return) and other.value is not None and not _is_none(other.value):
        yield ast.Return(ast.Constant(None))
    elif isinstance(other, ast.Raise) or (isinstance(other, ast.Expr) and not isinstance(other.value, ast.Constant)):
        yield ast.Pass()


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


class Exchange(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return ast.copy_location(self._new, node) if node is self._old else super().generic_visit(node)


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """(what was changed where, the changed source)"""
    count = sum(1 for _ in ast.walk(ast.parse(source)))
    for index in range(count):
        tree = ast.parse(source)
        node = list(ast.walk(tree))[index]
        if not isinstance(node, ast.stmt | ast.expr):
            continue
        for new in variants(node):
            told = f"{node.lineno}: {ast.unparse(node)[:90]!r} -> {ast.unparse(new)[:90]!r}"
            yield told, ast.unparse(ast.fix_missing_locations(Exchange(node, new).visit(tree)))


def survives(tree: Path, tests: list[str]) -> bool:
    """Whether the tests pass in the tree."""
    words = ["-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-m", "not postgres and not browser"]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *words, *(f"tests/{name}" for name in tests)]
    try:
        ended = subprocess.run(command, cwd=tree, env=environment, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0


def main() -> None:
    """Try every mutant, or a sample of each module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="at most so many mutants of each module")
    parser.add_argument("modules", nargs="*", help=f"of {', '.join(TESTS)}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        left_out = shutil.ignore_patterns(".venv", ".git", "build", "var", "__pycache__", "notebooks", ".*_cache")
        shutil.copytree(ROOT, tree, ignore=left_out)
        for module in options.modules or TESTS:
            judge(tree, module, options.sample)


def judge(tree: Path, module: str, sample: int | None) -> None:
    """Print the mutants of a module that live, and how many died."""
    path, tests = tree / "src" / "profilesvc" / module, TESTS[module]
    source = path.read_text("utf-8")
    if not survives(tree, tests):
        raise SystemExit(f"{module}: its tests fail without a change")
    cases = list(mutants(source))
    if sample is not None and sample < len(cases):
        cases = random.Random(16).sample(cases, sample)
    alive = []
    for told, changed in cases:
        path.write_text(changed, "utf-8")
        if survives(tree, tests):
            alive.append(told)
            print(f"alive  {module}:{told}", flush=True)
    path.write_text(source, "utf-8")
    print(f"{module}: {len(cases) - len(alive)} of {len(cases)} killed", flush=True)


if __name__ == "__main__":
    main()
