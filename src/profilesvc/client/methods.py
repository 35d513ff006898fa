"""Build client methods from operations, so that both clients have the same methods."""

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, get_args

from profilesvc.client.operation import Operation, Pages

P = ParamSpec("P")
T = TypeVar("T")
Page = TypeVar("Page")
Item = TypeVar("Item")
Method = TypeVar("Method", bound=Callable[..., Any])


class SyncRunner(Protocol):
    """A client that runs an operation and returns its result."""

    def run(self, operation: Operation[T], /) -> T: ...


class AsyncRunner(Protocol):
    """A client that runs an operation in a coroutine."""

    async def run(self, operation: Operation[T], /) -> T: ...


def _with_signature(method: Method, build: Callable[..., Any], shape: Any = None) -> Method:
    """Copy the name, docstring and signature of an operation. The method returns its result, or a `shape` of it."""
    wraps(build)(method)
    original = inspect.signature(build)
    self_parameter = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    result = get_args(original.return_annotation)[-1]
    returned = shape[result] if shape else result
    signature = original.replace(parameters=[self_parameter, *original.parameters.values()], return_annotation=returned)
    setattr(method, "__signature__", signature)  # noqa: B010  mypy does not know this attribute of functions
    return method


def call(build: Callable[P, Operation[T]]) -> Callable[Concatenate[SyncRunner, P], T]:
    """Make a method that runs an operation."""

    def method(self: SyncRunner, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(build(*args, **kwargs))

    return _with_signature(method, build)


def each(build: Callable[P, Pages[Page, Item]]) -> Callable[Concatenate[SyncRunner, P], Iterator[Item]]:
    """Make a method that yields the items of all pages."""

    def method(self: SyncRunner, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[Item]:
        pages: Pages[Page, Item] | None = build(*args, **kwargs)
        while pages is not None:
            page = self.run(pages.operation)
            yield from pages.items(page)
            pages = pages.rest(page)

    return _with_signature(method, build, Iterator)


def async_call(build: Callable[P, Operation[T]]) -> Callable[Concatenate[AsyncRunner, P], Coroutine[object, None, T]]:
    """Make a coroutine method that runs an operation."""

    async def method(self: AsyncRunner, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.run(build(*args, **kwargs))

    return _with_signature(method, build)


def async_each(build: Callable[P, Pages[Page, Item]]) -> Callable[Concatenate[AsyncRunner, P], AsyncIterator[Item]]:
    """Make a method that yields the items of all pages, for `async for`."""

    async def method(self: AsyncRunner, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[Item]:
        pages: Pages[Page, Item] | None = build(*args, **kwargs)
        while pages is not None:
            page = await self.run(pages.operation)
            for item in pages.items(page):
                yield item
            pages = pages.rest(page)

    return _with_signature(method, build, AsyncIterator)
