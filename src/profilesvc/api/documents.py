"""Documents that are the same for all clients: created and compressed once, on a thread, at the first request."""

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

from quart import Response, current_app
from quart.wrappers.response import DataBody

from profilesvc.api.caching import compressed_once, tag_of

PUBLIC = {"Cache-Control": "public, max-age=3600"}


class _Document(NamedTuple):
    body: bytes
    compressed: bytes | None
    tag: str


class Documents:
    """The documents of an app. All responses share them, because a copy for each slow reader would fill the memory."""

    def __init__(self) -> None:
        self._documents: dict[str, asyncio.Future[_Document]] = {}

    async def respond(
        self, name: str, make: Callable[[], bytes], content_type: str, headers: Mapping[str, str] = PUBLIC
    ) -> Response:
        """Return the response with the document of a name; `make` is called on a thread, once."""
        pending = self._documents.get(name)
        if pending is None or (pending.done() and (pending.cancelled() or pending.exception())):
            pending = self._documents[name] = asyncio.ensure_future(asyncio.to_thread(_create, make))
        document = await asyncio.shield(pending)
        response = Response(status=200, content_type=content_type, headers={**headers, "ETag": document.tag})
        response.response = DataBody(document.body)
        response.headers["Content-Length"] = str(len(document.body))
        setattr(response, "compressed", document.compressed)  # noqa: B010  for api/caching.py
        return response


def documents() -> Documents:
    app_documents: Documents = current_app.extensions["profilesvc.documents"]
    return app_documents


def _create(make: Callable[[], bytes]) -> _Document:
    body = make()
    return _Document(body, compressed_once(body), tag_of(body))
