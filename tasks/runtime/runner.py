"""Task runners of batches: threads of the run's own process, or the workers of a Dask cluster."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from prefect.context import FlowRunContext
from prefect.futures import PrefectFuture
from prefect.settings import get_current_settings
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from evalake.core.errors import ConfigurationError, EvalakeError, UsageError
from evalake.tasks.runtime.server import NO_SERVER

RUNNER = "EVALAKE_TASK_RUNNER"
SCHEDULER = "EVALAKE_DASK_SCHEDULER"
THREADS, DASK = "threads", "dask"
THREADS_OF_A_RUN = 64
CONNECT_SECONDS = 10.0

Runner = TaskRunner[PrefectFuture[Any]]


class ClusterError(EvalakeError):
    """The Dask cluster was lost, or its workers lost the Prefect server."""


def task_runner() -> Runner:
    """Create the runner that EVALAKE_TASK_RUNNER names; `require_runner` checks it."""
    if os.environ.get(RUNNER) == DASK and find_spec("prefect_dask"):
        from prefect_dask.task_runners import DaskTaskRunner

        return cast(
            Runner, DaskTaskRunner(address=os.environ.get(SCHEDULER), client_kwargs={"timeout": CONNECT_SECONDS})
        )
    # Prefect types its own runner with a narrower future
    return cast(Runner, ThreadPoolTaskRunner(max_workers=THREADS_OF_A_RUN))


def require_runner() -> None:
    """Check the runner of the environment. Raises ConfigurationError or UsageError."""
    chosen = os.environ.get(RUNNER) or THREADS
    if chosen not in (THREADS, DASK):
        raise UsageError(f"{RUNNER} must be {THREADS} or {DASK}, not {chosen!r}")
    if chosen == DASK:
        _require_cluster(os.environ.get(SCHEDULER))


def processes() -> int:
    """Count the processes of the current flow run's batches; each has its own model client and limits."""
    client = _dask_client()
    return 1 if client is None else max(1, len(client.nthreads()))


@contextmanager
def cluster_errors() -> Iterator[None]:
    """Raise ClusterError instead of Dask's and Prefect's errors where the block loses a Dask cluster."""
    try:
        yield
    except EvalakeError:
        raise
    except Exception as error:
        if str(error).startswith(NO_SERVER):
            raise ClusterError(
                f"the Prefect server at {get_current_settings().api.url} did not answer the Dask workers: check that "
                "it runs, then run again, which asks only for what is missing"
            ) from error
        client = _dask_client()
        is_disconnected = client is not None and client.status in ("closing", "closed")
        if not is_disconnected and type(error).__module__.partition(".")[0] not in ("distributed", "dask"):
            raise
        raise ClusterError(
            f"the Dask cluster at {os.environ.get(SCHEDULER)} was lost during the run: check that its scheduler and "
            "workers run, then run again, which asks only for what is missing"
        ) from error


def _dask_client() -> Any:
    """Return the current flow run's connection to a Dask cluster; None with another runner."""
    context = FlowRunContext.get()
    return getattr(context.task_runner, "client", None) if context else None


def stop_dask_profiler() -> None:
    """Stop the profiler of a Dask worker for good; elsewhere, do nothing.

    It reads the frames of all threads a hundred times a second, and CPython 3.11 hangs if it collects garbage then.
    """
    if "distributed" not in sys.modules:
        return
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:  # not a Dask worker
        return
    if (profiling := worker.periodic_callbacks.get("profile")) is not None and profiling.is_running():
        worker.loop.add_callback(profiling.stop)


def _require_cluster(address: str | None) -> None:
    if not find_spec("prefect_dask"):
        raise ConfigurationError(f"{RUNNER}={DASK} needs prefect-dask: install evalake with its extra, evalake[dask]")
    if not address:
        raise ConfigurationError(f"{RUNNER}={DASK} needs {SCHEDULER}, the address of a Dask scheduler: tcp://host:8786")
    if not get_current_settings().api.url:
        raise ConfigurationError(
            f"{RUNNER}={DASK} needs a Prefect server that the Dask workers can reach: set PREFECT_API_URL"
        )
    import asyncio

    from distributed.comm.core import connect

    async def knock() -> None:
        (await connect(address, timeout=CONNECT_SECONDS)).abort()  # type: ignore[no-untyped-call]

    try:
        asyncio.run(knock())
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"no Dask scheduler answers at {address}: start one (`dask scheduler`), or correct {SCHEDULER}"
        ) from error
    _require_importable_flow()


def _require_importable_flow() -> None:
    """Raise ConfigurationError for a flow from a file: other processes cannot import its module by its bare name."""
    context = FlowRunContext.get()
    if context and context.flow and "." not in context.flow.fn.__module__:
        code = context.flow.fn.__code__
        raise ConfigurationError(
            f"other processes cannot import a flow that was deployed by its file: deploy it with the entrypoint "
            f"flows.{Path(code.co_filename).stem}.{code.co_name}"
        )
