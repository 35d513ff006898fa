"""A sequence diagram of the recorded calls."""

from collections.abc import Iterable

from profilesvc.lab.views.record import Call
from profilesvc.lab.views.view import View

# Characters with a meaning in mermaid.
_SIGNS = str.maketrans({"#": "#35;", ";": "#59;", "<": "#lt;", ">": "#gt;", "\n": " "})
_LONGEST = 32


def _text(text: str) -> str:
    """Return the text of a label, with long ids shortened and mermaid's characters escaped."""
    parts = (part if len(part) <= _LONGEST else f"{part[:14]}…" for part in text.split("/"))
    return "/".join(parts).translate(_SIGNS)


def sequence(calls: Iterable[Call]) -> View:
    """Show calls, including those to the provider, as a sequence diagram (mermaid)."""
    callers: dict[str, str] = {}
    lines: list[str] = []
    for call in calls:
        caller = callers.setdefault(call.caller, f"caller{len(callers) + 1}")
        lines.append(f"{caller}->>service: {_text(f'{call.method} {call.path}')}")
        for inner in call.provider:
            request, _, status = inner.rpartition(" ")
            lines += [f"service->>provider: {_text(request)}", f"provider-->>service: {status}"]
        lines.append(f"service-->>{caller}: {call.status}{f' {call.code}' if call.code else ''}")
    actors = [f"participant {short} as {_text(name)}" for name, short in callers.items()]
    actors.append("participant service as Profile service")
    if any(line.startswith("provider") for line in lines):
        actors.append("participant provider as Provider")
    diagram = "\n    ".join(["sequenceDiagram", *actors, *lines])
    return View(diagram, extra={"text/markdown": f"```mermaid\n{diagram}\n```"})
