"""The problems of a form: all at the top of the page, and each next to its field."""

from dataclasses import dataclass, field

from profilesvc.dashboard import words
from profilesvc.domain.errors import ServiceError, invalid


@dataclass(frozen=True, slots=True)
class Problem:
    """`field` is the id of an input, empty for what concerns the whole form."""

    field: str
    text: str


@dataclass(frozen=True, slots=True)
class Problems:
    """The problems of a form; false when there are none. `prefix` comes before the names of its inputs."""

    found: list[Problem] = field(default_factory=list)
    status: int = 200

    def __bool__(self) -> bool:
        return bool(self.found)

    def beside(self, name: str) -> list[str]:
        """Return the problems to show next to an input."""
        return [problem.text for problem in self.found if problem.field == name]


NONE = Problems()


def of(error: ServiceError, prefix: str = "") -> Problems:
    """A refusal, problem by problem. Ids are `prefix` and the input's name."""
    if "errors" not in error.details:
        return Problems([Problem("", text) for text in words.told(error)], error.kind.status)
    found = []
    for one in error.details["errors"]:
        name, label = words.input_of(one["field"])
        found.append(
            Problem(f"{prefix}{name}" if name else "", f"{label}: {one['problem']}" if label else one["problem"])
        )
    return Problems(found, error.kind.status)


def require_sure(is_sure: bool) -> None:
    """Raise VALIDATION_ERROR unless the box was ticked that confirms an irreversible action."""
    if not is_sure:
        raise invalid("body", "sure", "tick the box to go on")
