"""All uses of Prefect's private names, as they are in the version below.

tests/integration/tasks/runtime/test_prefect_internals.py fails where a new version changes one.
evalake/core/prefect_settings.py has the changes before Prefect's import.
"""

import asyncio
from datetime import datetime
from pathlib import Path

SEEN_IN = "3.8"
SERVER = "prefect.server.api.server:create_app"  # for uvicorn
# A restarted server reads from files which runs hold the slots of a concurrency_limit; else it would end them
LEASES = {"PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem"}
NO_SERVER = "Failed to reach API"  # begins the RuntimeError of a Dask worker without the server


def create_database(file: Path) -> None:
    """Create a server's SQLite database with its block types, or migrate it to this version of Prefect."""
    from prefect.server.database import provide_database_interface
    from prefect.server.models.block_registration import run_block_auto_registration
    from prefect.settings import PREFECT_API_DATABASE_CONNECTION_URL, temporary_settings

    async def create() -> None:
        interface = provide_database_interface()
        await interface.create_db()
        async with await interface.session() as session:
            await run_block_auto_registration(session=session)
        await (await interface.engine()).dispose()

    with temporary_settings({PREFECT_API_DATABASE_CONNECTION_URL: f"sqlite+aiosqlite:///{file}"}):
        asyncio.run(create())


def scheduled_times(cron: str, timezone: str | None, begin: datetime, end: datetime, most: int) -> list[datetime]:
    """List the times, at most `most`, from `begin` until before `end` for which Prefect schedules runs."""
    from prefect.server.schemas.schedules import CronSchedule

    times = asyncio.run(CronSchedule(cron=cron, timezone=timezone).get_dates(n=most, start=begin, end=end))
    return [moment for moment in times if moment < end]
