"""What tests read of the log of requests."""

from sqlalchemy import select

from profilesvc.services.context import Services
from profilesvc.storage.tables import insight as log_tables


async def stored(services: Services) -> str:
    """All rows of both tables."""
    async with services.storage.read() as session:
        counts = (await session.execute(select(log_tables.key_usage))).all()
        rows = (await session.execute(select(log_tables.request_log).order_by("at", "id"))).all()
    return f"{counts} {rows}"
