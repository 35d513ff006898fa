"""The edit of an existing thing in a form: only the fields that its user has changed are written.

A page has a digest of what each field showed, in inputs `shown-<field>`. So the form that comes back shows which fields
its user has changed, and which ones somebody else has changed meanwhile.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Self

from profilesvc.contract.errors import CONFLICT
from profilesvc.dashboard.words.values import NOTHING
from profilesvc.domain.errors import ServiceError
from profilesvc.language.texts import _, gettext

Value = str | list[str] | Mapping[str, str]
_PREFIX = "shown-"
_LONGEST = 300


class Edit:
    """The fields of a form. A value is a string, a list of choices, or a dictionary of inputs.

    `inputs` is what the page shows: the current values and, after `fill`, what the user has changed. `shown` has the
    digests for the page.
    """

    def __init__(self, current: Mapping[str, Any]) -> None:
        self.current = dict(current)
        self.inputs = dict(current)
        self._now = {name: digest(value) for name, value in current.items()}
        self.shown = dict(self._now)
        self._conflicts: list[str] = []

    def fill(self, form: Mapping[str, str], more: Mapping[str, Any] | None = None) -> Self:
        """Fill in the form that was sent, and return the edit. What only somebody else has changed is as it is now.

        `sent` has the fields that are not one input of the same name. A missing input is an unchanged one.
        """
        values = {name: form.get(name, value) for name, value in self.current.items()} | dict(more or {})
        for name, value in values.items():
            own, then = digest(value), self.opened(form, name)
            now = self._now[name]
            if own == then != now:
                continue
            self.inputs[name], self.shown[name] = value, then
            if len({own, then, now}) == 3:
                self._conflicts.append(name)
        return self

    def opened(self, form: Mapping[str, str], name: str) -> str:
        """Return the digest of what a field showed when the page of a form was opened."""
        return form.get(f"{_PREFIX}{name}", self._now[name])

    def digests(self) -> dict[str, str]:
        """Return the inputs with the digests, for the page."""
        return {f"{_PREFIX}{name}": value for name, value in self.shown.items()}

    def changed(self) -> dict[str, Any]:
        """Return the fields that the user has changed."""
        return {name: value for name, value in self.inputs.items() if digest(value) != self._now[name]}

    def require_no_conflict(self, in_words: Callable[[str], str] | None = None) -> None:
        """Reject fields that both the user and somebody else have changed. Saving the next page replaces them.

        `in_words` returns the current value of a field as the page shows it.

        Raises:
            ServiceError: CONFLICT with a problem for each such field.
        """
        if not self._conflicts:
            return
        self.shown |= {name: self._now[name] for name in self._conflicts}
        problems = [(name, self._problem(name, in_words or self.current.__getitem__)) for name in self._conflicts]
        errors = [{"in": "body", "field": name, "problem": problem} for name, problem in problems]
        raise ServiceError(CONFLICT, errors=errors)

    def _problem(self, name: str, in_words: Callable[[str], str]) -> str:
        line = " ".join(in_words(name).split())
        value = f"{line[:_LONGEST]}…" if len(line) > _LONGEST else line or gettext(NOTHING)
        return _(
            "was changed after you opened this page, so nothing was saved. "
            "Save again to replace its current value: %(value)s",
            value=value,
        )


def is_digest(name: str) -> bool:
    """Return whether an input is a digest, and not what the user has typed."""
    return name.startswith(_PREFIX)


def digest(value: Value) -> str:
    """Return a short digest of a value, to see whether somebody has changed it."""
    return hashlib.sha256(json.dumps(_plain(value), sort_keys=True).encode()).hexdigest()[:16]


def _plain(value: Value) -> object:
    """Return a value without the differences that a browser makes when it sends unchanged inputs."""
    if isinstance(value, str):
        return "\n".join(line.strip() for line in value.strip().splitlines())
    if isinstance(value, Mapping):
        return {name: _plain(text) for name, text in value.items() if text}
    return sorted(value)
