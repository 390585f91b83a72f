"""What every step of a run needs to know: which run, which suite, which lake, which options."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

from contracts.configuration import Configuration
from providers import telemetry
from storage.lake import Lake
from suites.base import Suite
from suites.registry import suite as find_suite

CODE_VERSION = version("evalake")
SEED = 20_260


@dataclass(frozen=True)
class RunContext:
    """One run of one suite. Small, picklable and without keys, so that it can go to any worker.

    `attempt` counts the times that the run was begun.
    """

    run_id: str
    suite_name: str
    lake: Lake
    configuration: Configuration
    attempt: int = 1
    trace: str | None = None  # the span of the whole run, where telemetry is on

    def scope(self, name: str, **fields: str) -> AbstractContextManager[None]:
        """A part of the run, as logs and traces name it."""
        return telemetry.scope(name, parent=self.trace, run_id=self.run_id, suite=self.suite_name, **fields)

    @cached_property
    def suite(self) -> Suite:
        """The suite itself."""
        return find_suite(self.suite_name)

    @cached_property
    def options(self) -> Mapping[str, Any]:
        """The suite's options: its defaults under what the configuration says."""
        return {**self.suite.options, **self.configuration.suites.get(self.suite_name, {})}
