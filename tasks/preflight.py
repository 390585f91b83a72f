"""Preflight: everything that can be wrong with a run is found before it begins, and nothing is half-written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.configuration import Configuration, read_configuration
from contracts.errors import UsageError
from contracts.tables import CORE_CONTRACTS, RUNS
from providers.redaction import redact
from providers.routes import find_route
from storage.lake import Lake
from suites.base import Dataset, Suite
from suites.registry import suite as find_suite
from tasks.context import options_of
from tasks.extract import read_datasets
from tasks.measure import inputs
from tasks.runner import require_runner
from tasks.secrets import read_secret


@dataclass(frozen=True)
class Order:
    """What somebody asks for, before anything is looked up. None means the suite's default."""

    suite: str
    lake: str
    models: Sequence[str] | None = None
    judges: Sequence[str] | None = None
    datasets: Sequence[str] | None = None
    limit: int | None = None
    replicates: int = 1
    prompt_types: Sequence[str] | None = None
    configuration_file: str | None = None


@dataclass(frozen=True)
class Plan:
    """What will be done: an order with everything looked up and found in order."""

    order: Order
    suite: Suite
    lake: Lake
    configuration: Configuration
    models: tuple[str, ...]
    judges: tuple[str, ...]
    prompt_types: tuple[str, ...]
    datasets: tuple[Dataset, ...]

    @property
    def samples(self) -> int:
        """How many samples the datasets hold."""
        return sum(len(dataset.samples) for dataset in self.datasets)

    @property
    def items(self) -> int:
        """How many items the run consists of."""
        kinds = len(self.prompt_types) * len(self.models) * max(len(self.judges), 1)
        return self.samples * kinds * self.order.replicates

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What the run was asked for, as its row keeps it."""
        return {
            "models": self.models,
            "judges": self.judges,
            "prompt_types": self.prompt_types,
            "datasets": [redact(source) for source in self.order.datasets or self.suite.starter],
            "limit": self.order.limit,
            "replicates": self.order.replicates,
        }


def check(order: Order) -> Plan:
    """Look everything up. Raises an EvalakeError that names the first thing that is wrong."""
    suite = find_suite(order.suite)
    if order.replicates < 1:
        raise UsageError(f"--replicates must be at least 1, not {order.replicates}")
    if order.limit is not None and order.limit < 1:
        raise UsageError(f"--limit must be at least 1, not {order.limit}")
    configuration = read_configuration(Path(order.configuration_file) if order.configuration_file else None)
    suite.metrics(options_of(suite, configuration))
    prompt_types = _chosen("prompt types", order.prompt_types, suite.prompt_types[:1])
    if unknown := [kind for kind in prompt_types if kind not in suite.prompt_types]:
        raise UsageError(f"{suite.name} has no prompt type {unknown[0]}; it has {', '.join(suite.prompt_types)}")
    judges = _chosen("judges", order.judges, suite.baseline_judges)
    if order.judges and not suite.baseline_judges:
        raise UsageError(f"{suite.name} is judged by rules: leave --judges out")
    if order.models and not suite.calls_subject:
        raise UsageError(f"{suite.name} judges what is there already: leave --models out")
    models = _chosen("models", order.models, suite.baseline_models)
    datasets = read_datasets(suite, order.datasets or (), order.limit)
    require_runner()
    lake = Lake(order.lake)
    lake.ensure(RUNS)
    for contract in (*CORE_CONTRACTS, *suite.contracts, *inputs(suite)):
        lake.frame(contract)  # one of another schema would end the run only after its calls were paid for
    for model in (*(models if suite.calls_subject else ()), *judges):
        find_route(model, configuration, read_secret)
    return Plan(order, suite, lake, configuration, models, judges, prompt_types, datasets)


def _chosen(what: str, given: Sequence[str] | None, default: Sequence[str]) -> tuple[str, ...]:
    """The names given, each once, or the default where none is. Raises UsageError where all of them are blank."""
    if not given:
        return tuple(default)
    if not (names := tuple(dict.fromkeys(name.strip() for name in given if name.strip()))):
        raise UsageError(f"the {what} are blank: name some, or leave them out for those of the suite")
    return names
