"""The problems of a form, which are shown at the top of the page and next to each field."""

from dataclasses import dataclass, field

from profilesvc.dashboard.words import problems as problem_words
from profilesvc.domain.errors import ServiceError, invalid


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem. `field` is the id of an input, or empty if the whole form is wrong."""

    field: str
    text: str


@dataclass(frozen=True, slots=True)
class Problems:
    """The problems of a form; false if there are none."""

    entries: list[Problem] = field(default_factory=list)
    status: int = 200

    def __bool__(self) -> bool:
        return bool(self.entries)

    def for_input(self, name: str) -> list[str]:
        return [problem.text for problem in self.entries if problem.field == name]


NONE = Problems()


def from_error(error: ServiceError | None, prefix: str = "") -> Problems:
    """Return the problems of an error, if there is one. The id of an input is `prefix` and its name."""
    if error is None:
        return NONE
    if "errors" not in error.details:
        return Problems([Problem("", text) for text in problem_words.general(error)], error.kind.status)
    entries = []
    for one in error.details["errors"]:
        name, label = problem_words.input_of(one["field"])
        text = problem_words.in_words(one["problem"])
        entries.append(Problem(f"{prefix}{name}" if name else "", f"{label}: {text}" if label else text))
    return Problems(entries, error.kind.status)


def require_confirmation(is_sure: bool) -> None:
    """Raise VALIDATION_ERROR unless the user has ticked the confirmation."""
    if not is_sure:
        raise invalid("body", "sure", "tick the box to confirm")
