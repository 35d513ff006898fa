"""Photos that are being sent: all of their readers share one copy, because slow ones would fill the memory."""

import asyncio
from collections.abc import Callable, Coroutine
from weakref import WeakValueDictionary

from profilesvc.storage.drafts.photos import Photo


class Copies:
    """The photos that somebody reads now, by name."""

    def __init__(self) -> None:
        self._photos: WeakValueDictionary[str, Photo] = WeakValueDictionary()
        self._loading: dict[str, asyncio.Task[Photo | None]] = {}

    async def get(self, name: str, load: Callable[[], Coroutine[object, None, Photo | None]]) -> Photo | None:
        """Return the copy of a photo; `load` reads it if there is none, once for all who wait for it."""
        if (photo := self._photos.get(name)) is not None:
            return photo
        loading = self._loading.get(name)
        if loading is None:
            loading = self._loading[name] = asyncio.get_running_loop().create_task(load())
            loading.add_done_callback(lambda done: self._loaded(name, done))
        return await asyncio.shield(loading)

    def _loaded(self, name: str, done: "asyncio.Task[Photo | None]") -> None:
        del self._loading[name]
        if not done.cancelled() and done.exception() is None and (photo := done.result()) is not None:
            self._photos[name] = photo
