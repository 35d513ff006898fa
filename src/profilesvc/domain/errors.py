"""The exception that rules and services raise for an error of the catalogue."""

from collections.abc import Callable
from typing import Any

from profilesvc.contract.errors import AUTH_INSUFFICIENT_PERMISSIONS, VALIDATION_ERROR, ErrorKind, Forbidden
from profilesvc.domain.problems import sentence

MAX_PROBLEMS = 20
Problem = tuple[str, str, str]  # where, field, problem


class ServiceError(Exception):
    """An error of the catalogue.

    `details` becomes `error.details`. `api/failures.py` puts the rest into headers: `retry_after` in seconds;
    `of_bearer`, if the bearer token was rejected; `replayed`, if it repeats the response to an earlier request with the
    same idempotency key.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str | None = None,
        *,
        retry_after: int | None = None,
        of_bearer: bool = False,
        replayed: bool = False,
        **details: Any,
    ) -> None:
        super().__init__(message or kind.message)
        self.kind = kind
        self.message = message or kind.message
        self.retry_after, self.of_bearer = retry_after, of_bearer
        self.replayed = replayed
        self.details = details


def forbidden(reason: Forbidden, message: str, *, of_bearer: bool = False, **details: Any) -> ServiceError:
    """Return AUTH_INSUFFICIENT_PERMISSIONS with its reason."""
    return ServiceError(AUTH_INSUFFICIENT_PERMISSIONS, message, of_bearer=of_bearer, reason=reason.value, **details)


def invalid(where: str, field: str, problem: str) -> ServiceError:
    """Return VALIDATION_ERROR for one field; `where` is body, query, path or header."""
    return invalid_many([(where, field, problem)])


def problems_of(*checks: Callable[[], object]) -> list[Problem]:
    """Run all checks and collect their VALIDATION_ERRORs, so that one response names every problem."""
    problems: list[Problem] = []
    for check in checks:
        try:
            check()
        except ServiceError as error:
            if error.kind is not VALIDATION_ERROR:
                raise
            problems += problems_in(error)
    return problems


def problems_in(error: ServiceError) -> list[Problem]:
    """Return the problems of a VALIDATION_ERROR."""
    return [(entry["in"], entry["field"], entry["problem"]) for entry in error.details["errors"]]


def invalid_many(problems: list[Problem]) -> ServiceError:
    """Return VALIDATION_ERROR for invalid fields, at most 20: (where, field, problem). It never repeats the input."""
    where, field, problem = problems[0]
    errors = [{"in": where, "field": field, "problem": problem} for where, field, problem in problems[:MAX_PROBLEMS]]
    return ServiceError(VALIDATION_ERROR, sentence(where, field, problem), errors=errors)
