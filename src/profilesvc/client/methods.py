"""Making methods of operations, so that both clients offer the same ones under the same names."""

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


class Blocking(Protocol):
    """Runs an operation and returns its result."""

    def run(self, operation: Operation[T], /) -> T: ...


class Awaiting(Protocol):
    """Runs an operation in a coroutine."""

    async def run(self, operation: Operation[T], /) -> T: ...


def _named(method: Method, build: Callable[..., Any], shape: Any = None) -> Method:
    """The method with the operation's name, docstring and parameters; its result, or a `shape` of it, is returned."""
    wraps(build)(method)
    told = inspect.signature(build)
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    result = get_args(told.return_annotation)[-1]
    returned = shape[result] if shape else result
    signature = told.replace(parameters=[this, *told.parameters.values()], return_annotation=returned)
    setattr(method, "__signature__", signature)  # noqa: B010  functions have no such attribute for the type checker
    return method


def call(build: Callable[P, Operation[T]]) -> Callable[Concatenate[Blocking, P], T]:
    """A method that runs an operation."""

    def method(self: Blocking, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(build(*args, **kwargs))

    return _named(method, build)


def each(build: Callable[P, Pages[Page, Item]]) -> Callable[Concatenate[Blocking, P], Iterator[Item]]:
    """A method that yields the items of all pages."""

    def method(self: Blocking, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[Item]:
        pages: Pages[Page, Item] | None = build(*args, **kwargs)
        while pages is not None:
            page = self.run(pages.operation)
            yield from pages.items(page)
            pages = pages.rest(page)

    return _named(method, build, Iterator)


def async_call(
    build: Callable[P, Operation[T]],
) -> Callable[Concatenate[Awaiting, P], Coroutine[Any, Any, T]]:
    """A coroutine method that runs an operation."""

    async def method(self: Awaiting, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.run(build(*args, **kwargs))

    return _named(method, build)


def async_each(
    build: Callable[P, Pages[Page, Item]],
) -> Callable[Concatenate[Awaiting, P], AsyncIterator[Item]]:
    """A method that yields the items of all pages, for `async for`."""

    async def method(self: Awaiting, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[Item]:
        pages: Pages[Page, Item] | None = build(*args, **kwargs)
        while pages is not None:
            page = await self.run(pages.operation)
            for item in pages.items(page):
                yield item
            pages = pages.rest(page)

    return _named(method, build, AsyncIterator)
