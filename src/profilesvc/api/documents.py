"""Documents that are the same for all clients: made and compressed once, on a thread, at the first request."""

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

from quart import Response, current_app
from quart.wrappers.response import DataBody

from profilesvc.api.caching import packed_once, tag_of

PUBLIC = {"Cache-Control": "public, max-age=3600"}


class _Made(NamedTuple):
    body: bytes
    packed: bytes | None
    tag: str


class Documents:
    """The documents of an app. They are kept: with a copy for each reader, slow readers would fill the memory."""

    def __init__(self) -> None:
        self._made: dict[str, asyncio.Future[_Made]] = {}

    async def answer(
        self, name: str, make: Callable[[], bytes], content_type: str, headers: Mapping[str, str] = PUBLIC
    ) -> Response:
        """Return the response with the document of a name; `make` is called on a thread, once."""
        making = self._made.get(name)
        if making is None or (making.done() and (making.cancelled() or making.exception())):
            making = self._made[name] = asyncio.ensure_future(asyncio.to_thread(_made, make))
        made = await asyncio.shield(making)
        response = Response(status=200, content_type=content_type, headers={**headers, "ETag": made.tag})
        response.response = DataBody(made.body)
        response.headers["Content-Length"] = str(len(made.body))
        setattr(response, "packed", made.packed)  # noqa: B010  for api/caching.py
        return response


def documents() -> Documents:
    """Return the documents of the running app."""
    found: Documents = current_app.extensions["profilesvc.documents"]
    return found


def _made(make: Callable[[], bytes]) -> _Made:
    body = make()
    return _Made(body, packed_once(body), tag_of(body))
