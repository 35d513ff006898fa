"""The HTTP calls of the client library, shown below the cell that made them."""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import httpx

from profilesvc.domain.problems import counted
from profilesvc.lab.views.record import code_of
from profilesvc.lab.views.response import response_card
from profilesvc.lab.views.view import GREY, View, box, hide_in

_MOST, _LINES = 3, 100
_RANDOM = re.compile(r"\b[0-9a-f]{32}\b")  # the idempotency keys of the library


def traffic(responses: Sequence[httpx.Response]) -> View:
    """Show calls as lines, and the first of them as cards in a fold."""
    repeats = [(line, len(list(group))) for line, group in groupby(map(_line, responses))]
    lines = [f"{line}{f' ({count} times)' if count > 1 else ''}" for line, count in repeats]
    cards = "".join(_RANDOM.sub("A-NEW-UUID", response_card(response, _LINES).html) for response in responses[:_MOST])
    left = len(responses) - _MOST
    more = f"<div>… and {left} more</div>" if left > 0 else ""
    html = f"<details><summary>HTTP of this cell: {counted(len(responses), 'call')}</summary>{cards}{more}</details>"
    return View("\n".join(["HTTP of this cell:", *lines]), box(GREY, html))


def _line(response: httpx.Response) -> str:
    request, code = response.request, code_of(response)
    path = hide_in(request.url.raw_path.decode().partition("?")[0])
    return f"  {request.method} {path} → {response.status_code}{f' {code}' if code else ''}"


class Traffic:
    """The library's calls since the last cell. In a notebook they are displayed when a cell ends."""

    def __init__(self) -> None:
        self._responses: list[httpx.Response] = []
        self._shell: Any = _shell()
        if self._shell is not None:
            self._shell.events.register("post_run_cell", self._after)

    def note(self, response: httpx.Response) -> None:
        """Remember a response of a call by the library."""
        if self._shell is not None:
            self._responses.append(response)

    def _after(self, _result: object) -> None:
        responses, self._responses = self._responses, []
        if responses:
            from IPython.display import display

            display(traffic(responses))  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Stop displaying calls after this cell."""
        shell, self._shell = self._shell, None
        if shell is not None:
            shell.events.unregister("post_run_cell", self._after)


def _shell() -> Any:
    """Return the running IPython shell, or None in a plain program."""
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return None
    return get_ipython()
