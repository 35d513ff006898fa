"""A sequence diagram of the calls that really took place."""

from collections.abc import Iterable

from profilesvc.lab.record import Call
from profilesvc.lab.view import View

# What means something to mermaid.
_SIGNS = str.maketrans({"#": "#35;", ";": "#59;", "<": "#lt;", ">": "#gt;", "\n": " "})
_LONGEST = 32


def _text(text: str) -> str:
    """For a label: long ids are shortened, signs that mermaid would read are written out."""
    parts = (part if len(part) <= _LONGEST else f"{part[:14]}…" for part in text.split("/"))
    return "/".join(parts).translate(_SIGNS)


def sequence(calls: Iterable[Call]) -> View:
    """A sequence diagram (mermaid) of calls, those to the provider included."""
    people: dict[str, str] = {}
    lines: list[str] = []
    for call in calls:
        who = people.setdefault(call.caller, f"caller{len(people) + 1}")
        lines.append(f"{who}->>service: {_text(f'{call.method} {call.path}')}")
        for inner in call.provider:
            request, _, status = inner.rpartition(" ")
            lines += [f"service->>provider: {_text(request)}", f"provider-->>service: {status}"]
        lines.append(f"service-->>{who}: {call.status}{f' {call.code}' if call.code else ''}")
    actors = [f"participant {short} as {_text(name)}" for name, short in people.items()]
    actors.append("participant service as Profile service")
    if any(line.startswith("provider") for line in lines):
        actors.append("participant provider as Provider")
    diagram = "\n    ".join(["sequenceDiagram", *actors, *lines])
    return View(diagram, extra={"text/markdown": f"```mermaid\n{diagram}\n```"})
