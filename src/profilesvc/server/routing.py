"""Rules that paths are matched by, and never built from."""

from typing import Any

from quart.routing import QuartRule


def _not_built(*_values: Any) -> tuple[str, str]:
    raise RuntimeError("paths are not built from rules: `MatchedRule` leaves out what that takes")


class MatchedRule(QuartRule):
    """Quart's rule without the code that would build its path, whose making takes most of the time of a start."""

    def _compile_builder(self, append_unknown: bool = True) -> Any:
        return _not_built
