"""What flows begin with: the lake and the configuration that they were given, and a context to ask judges in."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from prefect.runtime import flow_run

from core.configuration import Configuration, read_configuration
from core.default_lake import lake_uri
from providers.routes import find_route
from storage.lake import Lake
from suites.registry import baselines
from tasks.runtime.context import RunContext
from tasks.runtime.logs import redact_logs
from tasks.runtime.resources import release_client
from tasks.runtime.secrets import read_secret


def open_lake(lake: str | None) -> Lake:
    """Open a flow run's lake, and redact what the flow run logs from now on."""
    redact_logs()
    return Lake(lake_uri(lake))


def opened(lake: str | None, configuration_file: str | None) -> tuple[Lake, Configuration]:
    """Open a flow run's lake as `open_lake` does, and read its configuration."""
    return open_lake(lake), read_configuration(Path(configuration_file) if configuration_file else None)


def run_id_of(flow_run_id: str) -> str:
    """Name a run by the random end of its flow run's id, so that a retry of the flow run is the same run."""
    return flow_run_id.replace("-", "")[-12:]


def context_of(suite: str, judges: Iterable[str], lake: Lake, configuration: Configuration) -> RunContext:
    """Build the context of this flow run. Raises ConfigurationError where one of the judges cannot be asked."""
    for judge in judges:
        find_route(judge, configuration, read_secret, baselines())
    return RunContext(run_id_of(str(flow_run.id)), suite, lake, configuration)


@contextmanager
def asking(suite: str, judges: Iterable[str], lake: Lake, configuration: Configuration) -> Iterator[RunContext]:
    """Yield a context as `context_of` builds it, and close its client at the end."""
    context = context_of(suite, judges, lake, configuration)
    try:
        yield context
    finally:
        release_client(context)
