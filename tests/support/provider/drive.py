"""Drive the embedded provider from a test: let it change by other hands, let it fail, see what it was asked."""

from typing import Any

import httpx


async def drift(emulator: httpx.AsyncClient, **changes: Any) -> None:
    """Change what the provider has: `locations`, `voice_of_merchant`, `verifications`, `posts`, `switches`."""
    response = await emulator.put("/__emulator/state", json=changes)
    assert response.status_code == 200, response.text


async def fail(emulator: httpx.AsyncClient, kind: str = "status", *, method: str = ".*", **fault: Any) -> None:
    """Queue a fault that outlasts the adapter's retries; `heal` ends it."""
    body = {"kind": kind, "times": 9, "match": {"method": method}, **fault}
    response = await emulator.post("/__emulator/faults", json=body)
    assert response.status_code == 200, response.text


async def heal(emulator: httpx.AsyncClient) -> None:
    """Forget the faults that are left."""
    await emulator.delete("/__emulator/faults")


async def no_faults(emulator: httpx.AsyncClient) -> bool:
    """Return whether each fault has met its call, which may still wait."""
    return not (await emulator.get("/__emulator/state")).json()["faults"]


async def calls(emulator: httpx.AsyncClient, method: str = "") -> list[dict[str, Any]]:
    """The requests that the provider saw, oldest first."""
    seen: list[dict[str, Any]] = (await emulator.get("/__emulator/requests")).json()["requests"]
    return [call for call in seen if call["method"] == method or not method]


async def forget_calls(emulator: httpx.AsyncClient) -> None:
    """Reset the counter."""
    await emulator.delete("/__emulator/requests")


async def document(emulator: httpx.AsyncClient, location: str) -> dict[str, Any]:
    """A location as the provider has it."""
    found: dict[str, Any] = (await emulator.get("/__emulator/state")).json()["locations"][location]["document"]
    return found


async def posts_of(emulator: httpx.AsyncClient, summary: str) -> int:
    """Count the posts with this text that the provider has, of all locations."""
    state = (await emulator.get("/__emulator/state")).json()
    return sum(post.get("summary") == summary for post in state["posts"].values())
