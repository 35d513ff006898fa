"""What the machine's environment must not tell the tests."""

from collections.abc import Iterable

OURS = {"PROFILESVC_FUZZ", "PROFILESVC_DEPLOYED"}  # how the suite itself is run


def foreign(names: Iterable[str]) -> list[str]:
    """The variables that lead the service, the PostgreSQL driver or an HTTP client elsewhere."""
    return [
        name
        for name in names
        if (name.upper().startswith(("PROFILESVC_", "PG")) and name not in OURS) or name.lower().endswith("_proxy")
    ]
