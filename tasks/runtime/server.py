"""Checks the named Prefect server before a run, and reads its secrets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryFile

from evalake.core.errors import EvalakeError, ProviderError


class ServerError(EvalakeError):
    """The named Prefect server does not answer, or refuses us."""


@asynccontextmanager
async def shared_slot(limit: str | None) -> AsyncIterator[None]:
    """Hold a slot of a global concurrency limit of Prefect, which all flows share; None: of none.

    Raises ServerError where there is no such limit.
    """
    if limit is None:
        yield
        return
    from prefect.concurrency.asyncio import ConcurrencySlotAcquisitionError, concurrency

    try:
        async with concurrency(limit, strict=True):
            yield
    except ConcurrencySlotAcquisitionError as error:
        raise ServerError(
            f"Prefect has no global concurrency limit {limit}: `evalake prefect gcl create {limit} --limit 16`"
        ) from error


def require_server() -> None:
    """Raise ServerError where the named Prefect server cannot be used.

    Without a named server, Prefect starts its own, and would take minutes to report an unwritable folder.
    """
    import httpx
    from prefect.client.orchestration import get_client
    from prefect.exceptions import PrefectException
    from prefect.settings import get_current_settings

    from evalake.core.redaction import redact

    settings = get_current_settings()
    named = settings.api.url
    if not named:
        require_writable(settings.home)
        return
    url = redact(named)
    try:
        with get_client(sync_client=True) as client:
            client.request("GET", "/admin/version").raise_for_status()
    except httpx.HTTPStatusError as error:
        if error.response.status_code in (401, 403):
            raise ServerError(f"the Prefect server at {url} refuses us: check PREFECT_API_AUTH_STRING") from error
        raise ServerError(f"the Prefect server at {url} answers HTTP {error.response.status_code}") from error
    except (httpx.HTTPError, OSError, RuntimeError, PrefectException) as error:
        raise ServerError(
            f"no Prefect server answers at {url}: start it, correct PREFECT_API_URL, or unset it to run without one"
        ) from error


def require_writable(home: Path) -> None:
    """Raise ServerError unless files can be made in Prefect's home, which is made where it is missing."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=home):
            pass
    except OSError as error:
        raise ServerError(f"Prefect cannot write to {home} ({error.strerror}): set PREFECT_HOME to a folder") from error


def read_secret(name: str) -> str:
    """Read the text in the Secret block `name`, and store it nowhere. Raises ProviderError where it cannot."""
    import httpx
    from prefect.blocks.system import Secret
    from prefect.exceptions import PrefectException
    from prefect.settings import get_current_settings

    if not get_current_settings().api.url:
        raise ProviderError(f"the Secret block {name} is on a Prefect server: set PREFECT_API_URL")
    try:
        value = Secret.load(name, _sync=True).get()  # type: ignore[call-arg, union-attr]
    except ValueError as error:
        raise ProviderError(f"the Prefect server has no Secret block {name}: create it under Blocks") from error
    except (httpx.HTTPError, RuntimeError, PrefectException) as error:
        require_server()
        raise ProviderError(f"the Secret block {name} cannot be read: {type(error).__name__}") from error
    if not isinstance(value, str):
        raise ProviderError(f"the Secret block {name} holds no text: store the key itself in it")
    return value


# All uses of Prefect's private names, as they are in the version below.


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
