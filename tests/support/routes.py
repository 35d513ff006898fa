"""Routes that are parsed once in a process, because each test makes an app of 240, whose parts do not change."""

from typing import Any

from profilesvc.server.routing import MatchedRule

_parse = MatchedRule.compile
_parsed: dict[object, Any] = {}


def _parse_once(self: MatchedRule) -> None:
    if self.defaults:  # are arguments too
        _parse(self)
        return
    rule = self.rule, self.subdomain, self.map.merge_slashes, tuple(self.map.converters.items())
    if rule not in _parsed:
        _parse(self)
        _parsed[rule] = self._parts, self._converters, self.arguments
    self._parts, self._converters, self.arguments = _parsed[rule]


def parse_once() -> None:
    """Let the rules of an app share what the first one with the same text and converters has parsed."""
    MatchedRule.compile = _parse_once  # type: ignore[method-assign, assignment]
