"""What every step of a run needs to know: which run, which suite, which lake, which options."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

from contracts.configuration import Configuration
from storage.lake import Lake
from suites.base import Suite
from suites.registry import suite as find_suite

CODE_VERSION = version("evalake")
SEED = 20_260


@dataclass(frozen=True)
class RunContext:
    """One run of one suite. Small and picklable, so that it can go to any worker."""

    run_id: str
    suite_name: str
    lake: Lake
    configuration: Configuration

    @cached_property
    def suite(self) -> Suite:
        """The suite itself."""
        return find_suite(self.suite_name)

    @cached_property
    def options(self) -> Mapping[str, Any]:
        """The suite's options: its defaults under what the configuration says."""
        return {**self.suite.options, **self.configuration.suites.get(self.suite_name, {})}
