"""Change the code that guards tenants, one place at a time, and see whether the tests notice.

    python tests/mutation/mutants.py [--sample N] [MODULE …]      # `make mutants`

Prints what stays alive, and killed/all per module. Nothing on disk is touched: pytest collects the module's tests and
runs them once unchanged, then forks for each mutant, whose code takes the place of the original's in memory. Tests
that killed lately go first.
"""

import argparse
import ast
import copy
import importlib
import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 200
AT_ONCE = 2
UNTRIED = 255  # how a child ends whose change cannot be put into running code
TESTS: dict[str, list[str]] = {
    "tokens/signer.py": ["unit/test_signing.py", "unit/test_token_mutation.py", "api/test_bad_bearers.py"],
    "tokens/claims.py": ["unit/test_signing.py", "unit/test_token_mutation.py", "api/test_bad_bearers.py"],
    "tokens/keys.py": ["unit/test_signing.py", "unit/test_signing_keys.py", "api/test_signing_keys.py"],
    "tokens/seals.py": ["unit/test_seals.py"],
    "tokens/jose.py": ["unit/test_jose.py", "unit/test_signing.py"],
    "services/access.py": [
        "api/test_access_matrix.py",
        "api/test_access_states.py",
        "api/test_bad_bearers.py",
        "api/test_origin.py",
        "api/test_keys.py",
        "api/test_locations.py::test_a_caller_reads_only_their_own_locations",
        "api/test_signing_keys.py",
        "api/test_tenancy.py",
        "unit/test_pages.py",
    ],
    "services/rotation.py": [
        "api/test_rotation.py",
        "api/test_refresh_grant.py",
        "api/test_signing_keys.py",
        "api/test_audit.py",
        "api/test_events.py",
    ],
    "services/tokens.py": [
        "api/test_access_states.py",
        "api/test_refresh_grant.py",
        "api/test_tokens.py",
        "api/test_rotation.py",
        "api/test_keys.py",
        "api/test_limits_of_tokens.py::TestSecrets",
        "api/test_limits_of_tokens.py::test_a_client_id_has_a_bucket_per_address",
        "api/test_origin.py",
        "api/test_signing_keys.py",
        "api/test_audit.py",
    ],
    "services/idempotency.py": ["storage/test_run_once.py", "api/test_sync_failures.py"],
    "services/origins.py": [
        "api/test_origin.py",
        "unit/test_pages.py",
    ],
    "storage/families.py": ["storage/test_families.py"],
    "storage/idempotency.py": ["storage/test_attempts.py"],
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
    """The nodes that can replace a node."""
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


class Mutating:
    """A plugin of pytest that runs what was collected on every mutant instead of once."""

    def __init__(self, module: str, sample: int | None) -> None:
        self._module = module
        self._sample = sample
        self._failed = False
        self._alive = 0
        self._untried = 0
        self._running: dict[int, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember that a test noticed something."""
        self._failed = self._failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Print the mutants that live, and how many died. What the session's fixtures made is made once."""
        self._order = list(session.items)
        module = importlib.import_module("profilesvc." + self._module.removesuffix(".py").replace("/", "."))
        source = Path(str(module.__file__)).read_text("utf-8")
        transplant(module, source)  # no change: what fails now would count as killed
        if (item := self._failing(session)) is not None:
            raise pytest.UsageError(f"{self._module}: {item.nodeid} fails without a change")
        found = list(mutants(source))
        small = self._sample is not None and self._sample < len(found)
        cases = random.Random(16).sample(found, self._sample or 0) if small else found
        for told, changed in cases:
            self._start(session, module, told, changed)
            if len(self._running) == AT_ONCE:
                self._end(session)
        while self._running:
            self._end(session)
        tried = len(cases) - self._untried
        print(f"{self._module}: {tried - self._alive} of {tried} killed; {len(found)} in all", flush=True)
        return True

    def _failing(self, session: pytest.Session) -> pytest.Item | None:
        """Run tests until one fails."""
        for item in self._order:
            self._failed = False
            # The session as the next item: its own fixtures stay, all others go.
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=session)
            if self._failed:
                return item
        return None

    def _start(self, session: pytest.Session, module: ModuleType, told: str, changed: str) -> None:
        sys.stdout.flush()
        child = os.fork()
        if child:
            self._running[child] = told
            return
        code = UNTRIED - 1
        try:
            signal.alarm(SECONDS)
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            try:
                transplant(module, changed)
            except Exception:
                os._exit(UNTRIED)
            killer = self._failing(session)
            code = 0 if killer is None else 1 + session.items.index(killer)
        finally:
            os._exit(min(code, UNTRIED - 1))

    def _end(self, session: pytest.Session) -> None:
        child, status = os.wait()
        told = self._running.pop(child)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            self._alive += 1
            print(f"alive  {self._module}:{told}", flush=True)
        elif code == UNTRIED:
            self._untried += 1
        elif 0 < code <= len(session.items):
            killer = session.items[code - 1]
            self._order.remove(killer)
            self._order.insert(0, killer)


def transplant(module: ModuleType, changed: str) -> None:
    """Replace the code of the existing functions, and the constants in the modules that imported them."""
    fresh = ModuleType(module.__name__)
    fresh.__file__ = module.__file__
    exec(compile(changed, str(module.__file__), "exec"), vars(fresh))
    for name, new in list(vars(fresh).items()):
        old = vars(module).get(name)
        if isinstance(old, type) and old.__module__ == module.__name__:
            for member, value in vars(new).items():
                _exchange_code(vars(old).get(member), value)
        elif not _exchange_code(old, new) and isinstance(new, int | str | tuple | dict) and new != old:
            for other in list(sys.modules.values()):
                if getattr(other, "__dict__", {}).get(name) is old:
                    setattr(other, name, new)


def _exchange_code(old: Any, new: Any) -> bool:
    """Whether both are functions: then the old one does what the new one does."""
    old, new = (getattr(it, "fget", None) or getattr(it, "__wrapped__", it) for it in (old, new))
    if not isinstance(old, FunctionType) or not isinstance(new, FunctionType):
        return False
    if old.__module__ == new.__module__:
        old.__code__, old.__defaults__, old.__kwdefaults__ = new.__code__, new.__defaults__, new.__kwdefaults__
    return True


def main() -> None:
    """Try every mutant, or a sample of each module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="at most so many mutants of each module")
    parser.add_argument("modules", nargs="*", help=f"of {', '.join(TESTS)}")
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "src"))
    for module in options.modules or TESTS:
        judge(module, options.sample)


def judge(module: str, sample: int | None) -> None:
    """Try a module in a process of its own."""
    if child := os.fork():
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status:
            raise SystemExit(f"{module}: pytest ended with {status}")
        return
    # Fifty at once fail on a busy machine, which would count mutants as found that were not.
    words = ["-qs", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "tmp_path_retention_policy=none"]
    words += ["-k", "not fifty_at_once", "-m", "not postgres and not browser and not long"]
    chosen = [f"tests/{name}" for name in TESTS[module]]
    os._exit(pytest.main([*words, *chosen], plugins=[Mutating(module, sample)]))


if __name__ == "__main__":
    main()
