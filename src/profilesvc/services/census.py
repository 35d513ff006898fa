"""How many keys there are and how their sites are doing, for the operator's metrics."""

from profilesvc.domain.connection import OFFLINE_AFTER, ONLINE_FOR
from profilesvc.domain.world import month_start
from profilesvc.metrics import exposition_of
from profilesvc.services.context import Services
from profilesvc.storage import census


async def exposition(services: Services) -> bytes:
    """`states` in Prometheus' text format."""
    return exposition_of(await states(services))


async def states(services: Services) -> dict[str, dict[str, int]]:
    """{name of the gauge: {state: count}}; connections are those of live keys (D-55)."""
    now = services.clock.now()
    async with services.storage.read() as session:
        keys = await census.keys_by_state(session, now)
        seen = await census.connections_by_state(session, now, now - ONLINE_FOR, now - OFFLINE_AFTER)
        posts = await census.posts_of_month(session, month_start(now))
    live = keys["active"] + keys["deactivated"]
    return {
        "keys": keys,
        "connections": {**seen, "offline": live - seen["online"] - seen["idle"]},
        "posts_created_this_month": {"counted": posts},
    }
