"""Who may keep an answer and what it depends on: settled for all answers at the edge (RFC 9111 §3, 9110 §12.5.5)."""

from collections.abc import Iterable

Header = tuple[bytes, bytes]
# Also of answers that are not to be kept: a cache may have been told to keep them all the same.
_BY_CALLER = (b"Authorization", ("/api/", "/oauth2/", "/metrics"))
_BY_SESSION = (b"Cookie", ("/dashboard",))
_NOBODY = (b"cache-control", b"private, no-store")


def keeping(path: str, headers: Iterable[Header]) -> list[Header]:
    """What an answer has to say of this beside its own headers: nobody keeps what does not say that it may be kept."""
    said, vary, is_tagged = None, b"Origin", False
    for name, value in headers:
        if name == b"cache-control":
            said = value
        elif name == b"etag":
            is_tagged = True
    if said is None or b"no-store" in said or b"private" in said:
        for header, paths in (_BY_CALLER, _BY_SESSION):
            if path.startswith(paths):
                vary += b", " + header
    if is_tagged:
        vary += b", Accept-Encoding"
    return [(b"vary", vary)] if said is not None else [_NOBODY, (b"vary", vary)]
