"""Preflight: everything that can be wrong with a run is found before it begins, and nothing is half-written."""

import json
import shlex
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, fields, replace
from math import inf
from pathlib import Path
from typing import Any

from contracts.tables import CORE_CONTRACTS
from core.configuration import Configuration, lowest, read_configuration
from core.errors import ConfigurationError, MissingKeyError, SuiteError, UsageError
from core.hashing import canonical_json, content_hash
from core.prompt_files import PROMPTS, TEMPLATES
from core.redaction import redact
from providers.price_estimate import is_priced
from providers.routes import find_route
from reports.coverage import Tolerance
from storage.lake import Lake
from storage.migrations import require_current
from storage.reach import require_reachable
from storage.reservations import Ceiling
from suites.base import Dataset, Options, Suite
from suites.base.own_prompts import own_prompt
from suites.registry import baselines
from suites.registry import suite as find_suite
from tasks.runtime.context import options_of, prompt_types_of
from tasks.runtime.runner import require_runner
from tasks.runtime.runs import labels_of
from tasks.runtime.secrets import read_secret
from tasks.steps.choose import choose, draw, failed_samples, parameters_of
from tasks.steps.coverage import Source, tolerance_of_order
from tasks.steps.extract import read_datasets, without_forgotten
from tasks.steps.judge_parameters import judge_parameters
from tasks.steps.measure import inputs

MOST_REPLICATES = 1_000_000
"""Replicates above belong to canaries, which number them by the day."""


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
    max_cost_usd: float | None = None  # beside the configuration's: the lower one holds
    max_calls: int | None = None
    max_missing: float | None = None  # a share; None: as the configuration says
    accept_unreadable: bool = False  # True also where the configuration says it
    first: int | None = None
    samples: Sequence[str] | None = None
    only_failed: str | None = None  # the run whose samples without an answer are taken
    first_replicate: int = 0  # the number of the first; above 0, requests of before are asked anew
    tags: Sequence[str] = ()  # by which the run is found again
    note: str | None = None

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The order as the parameters of the flow `evaluate`."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def command(self) -> str:
        """The command line that asks for the same."""
        words = ["evalake", "run", self.suite]
        for option, names in (("models", self.models), ("judges", self.judges), ("prompt-types", self.prompt_types)):
            words += [f"--{option}", ",".join(names)] if names else []
        for dataset in self.datasets or ():
            words += ["--dataset", dataset]
        words += ["--limit", str(self.limit)] if self.limit else []
        words += ["--first", str(self.first)] if self.first else []
        for sample in self.samples or ():
            words += ["--sample", sample]
        words += ["--only-failed", self.only_failed] if self.only_failed else []
        words += ["--replicates", str(self.replicates)] if self.replicates > 1 else []
        words += ["--first-replicate", str(self.first_replicate)] if self.first_replicate else []
        for tag in self.tags:
            words += ["--tag", tag]
        words += ["--note", self.note] if self.note else []
        words += ["--max-cost", str(self.max_cost_usd)] if self.max_cost_usd else []
        words += ["--max-calls", str(self.max_calls)] if self.max_calls else []
        words += ["--max-missing", str(self.max_missing)] if self.max_missing is not None else []
        words += ["--accept-unreadable"] if self.accept_unreadable else []
        words += ["--config", self.configuration_file] if self.configuration_file else []
        return shlex.join([*words, "--lake", self.lake])


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
    sources: tuple[Source, ...] = ()  # what became of the rows that the datasets were read from
    # Estimates of the plan, by what they rest on: the command shows them, and its flow keeps them
    estimates: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def samples(self) -> int:
        """How many samples the datasets hold."""
        return sum(len(dataset.samples) for dataset in self.datasets)

    def release_samples(self) -> None:
        """Let go of the samples once all items were walked: what follows reads the lake, and needs the memory."""
        object.__setattr__(self, "datasets", ())

    @property
    def called(self) -> tuple[str, ...]:
        """The models that may be called: subjects where the suite calls them, and judges."""
        return (*(self.models if self.suite.calls_subject else ()), *self.judges)

    @property
    def request_parameters(self) -> Mapping[str, str]:
        """What configuration and suite add to the requests of models and judges, as JSON, redacted, by name."""
        added = {name: self.configuration.parameters(name) for name in self.models}
        added |= {name: judge_parameters(self.suite, name, self.configuration) for name in self.judges}
        return {name: redact(canonical_json(each).decode()) for name, each in added.items() if each}

    @property
    def prompts(self) -> list[str]:
        """The names of the prompt types; those with texts of the configuration have a hash of these behind them."""
        section = self.configuration.suites.get(self.suite.name, {})
        own, templates = section.get(PROMPTS, {}), section.get(TEMPLATES)
        texts = {kind: [each for each in (templates, own.get(kind)) if each] for kind in self.prompt_types}
        return [f"{kind}@{content_hash(of)[:12]}" if of else kind for kind, of in texts.items()]

    @property
    def replicates(self) -> range:
        """The numbers under which each request is asked."""
        return range(self.order.first_replicate, self.order.first_replicate + self.order.replicates)

    @property
    def items(self) -> int:
        """How many items the run consists of."""
        kinds = len(self.prompt_types) * len(self.models) * max(len(self.judges), 1)
        return self.samples * kinds * self.order.replicates

    @property
    def ceiling(self) -> Ceiling:
        """What the run may spend and how many calls it may make: the lower of what was asked for and configured."""
        configured, order = self.configuration, self.order
        return Ceiling(
            lowest(configured.max_cost_usd, order.max_cost_usd), lowest(configured.max_calls, order.max_calls)
        )

    @property
    def tolerance(self) -> Tolerance:
        """What the run may lack and still be complete: as it was asked for, or else as configured."""
        order = self.order
        return tolerance_of_order(self.configuration, order.max_missing, accept_unreadable=order.accept_unreadable)

    @property
    def settled_order(self) -> Order:
        """The order as others carry it out, whatever their configuration says and whatever has landed by then."""
        settled = replace(self.order, max_cost_usd=self.ceiling.usd, max_calls=self.ceiling.calls)
        if self.order.only_failed is None:
            return settled
        names = sorted({sample.sample_id for dataset in self.datasets for sample in dataset.samples})
        return replace(settled, only_failed=None, samples=names)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What the run was asked for, as its row keeps it."""
        return {
            "models": self.models,
            "judges": self.judges,
            "prompt_types": self.prompt_types,
            "prompts": self.prompts,
            "datasets": [redact(source) for source in self.order.datasets or self.suite.starter],
            **{name: getattr(self.order, name) for name in ("limit", "first", "only_failed", "replicates")},
            "first_replicate": self.order.first_replicate,
            "draw": None if self.order.limit is None else "stratified",
            "samples": self.order.samples and list(self.order.samples),
            **labels_of(self.order.tags, self.order.note),
            "request_parameters": self.request_parameters,
            "max_cost_usd": self.ceiling.usd,
            "max_calls": self.ceiling.calls,
            **asdict(self.tolerance),
        }


# The plan that a command has made of its order, which the flow that it calls takes over.
_CARRIED: ContextVar[tuple[Order, Plan] | None] = ContextVar("carried plan", default=None)


@contextmanager
def carried(order: Order, plan: Plan) -> Iterator[None]:
    """Let a flow that is called in this block with this order take its plan, which was checked already."""
    token = _CARRIED.set((order, plan))
    try:
        yield
    finally:
        _CARRIED.reset(token)


def plan_of(order: Order) -> Plan:
    """Find the plan of an order: the one that is carried, or else a new one. Raises as `check` does."""
    known = _CARRIED.get()
    # Prefect makes lists of tuples; a plan that was carried out has no samples any more.
    if known is not None and known[1].datasets and _in_json(known[0]) == _in_json(order):
        return known[1]
    return check(order)


def _in_json(order: Order) -> str:
    return json.dumps(asdict(order), default=str)


def check(order: Order, *, with_keys: bool = True) -> Plan:
    """Look everything up. Raises an EvalakeError that names the first thing that is wrong.

    Without `with_keys`, keys that are missing are no reason to, and secrets are not read.
    """
    suite = find_suite(order.suite)
    order = _completed(order, suite)
    for name in ("replicates", "limit", "first", "max_calls"):
        if (number := getattr(order, name)) is not None and number < 1:
            raise UsageError(f"--{name.replace('_', '-')} must be at least 1, not {number}")
    if not 0 <= order.first_replicate < MOST_REPLICATES:
        raise UsageError(f"--first-replicate must be from 0 to {MOST_REPLICATES - 1}, not {order.first_replicate}")
    if order.max_cost_usd is not None and not 0 < order.max_cost_usd < inf:
        raise UsageError(f"--max-cost must be a number above 0, not {order.max_cost_usd}")
    configuration = read_configuration(Path(order.configuration_file) if order.configuration_file else None)
    tolerance_of_order(configuration, order.max_missing, accept_unreadable=order.accept_unreadable)
    options = options_of(suite, configuration)
    require_metrics(suite, options)
    prompt_types = _chosen("prompt types", order.prompt_types, suite.prompt_types[:1])
    there_are = prompt_types_of(suite, options)
    if unknown := [kind for kind in prompt_types if kind not in there_are]:
        raise UsageError(f"{suite.name} has no prompt type {unknown[0]}; it has {', '.join(there_are)}")
    require_different_prompts(suite, prompt_types, options)
    judges = _chosen("judges", order.judges, suite.baseline_judges)
    if order.judges and not suite.is_judged:
        raise UsageError(f"{suite.name} is judged by rules: leave --judges out")
    if order.models and not suite.calls_subject:
        raise UsageError(f"{suite.name} judges what is there already: leave --models out")
    models = _chosen("models", order.models, suite.baseline_models)
    if suite.is_judged and not judges:
        raise UsageError(f"{suite.name} has no rule-based judge: name a judge with --judges, such as openai/gpt-4o")
    if not models:
        raise UsageError(f"{suite.name} has no rule-based model: name models with --models, such as openai/gpt-4o-mini")
    require_different(models, configuration)
    require_different(judges, configuration)
    lake = Lake(order.lake)
    given = without_forgotten(lake, read_datasets(suite, order.datasets or ()))
    datasets = _chosen_samples(order, suite, given)
    require_runner()
    require_tables(lake, suite)
    sources = tuple(map(Source.of, given))
    plan = Plan(order, suite, lake, configuration, models, judges, prompt_types, datasets, sources)
    for model in plan.called:
        with nullcontext() if with_keys else suppress(MissingKeyError):
            find_route(model, configuration, read_secret if with_keys else _unread, baselines())
    require_prices(plan)
    require_reachable(lake)
    return plan


def _unread(name: str) -> str:
    raise MissingKeyError(f"the key is in the secret {name}, which is not read")


def require_tables(lake: Lake, suite: Suite) -> None:
    """Raise OlderLakeError where a table that results of the suite go through is of an older schema.

    It would end a run only after its calls were paid for, and an import half-way.
    """
    require_current(lake, (*CORE_CONTRACTS, *suite.contracts, *inputs(suite)))


def require_different(names: Sequence[str], configuration: Configuration) -> None:
    """Raise UsageError where two names stand for one model asked the same way, whose calls would be paid twice."""
    seen: dict[str, str] = {}
    for name in names:
        asked = [configuration.real_model(name), configuration.parameters(name), configuration.revision(name)]
        other = seen.setdefault(content_hash(asked), name)
        if other != name:
            raise UsageError(f"{other} and {name} are one model, asked with the same parameters: leave one out")


def require_different_prompts(suite: Suite, prompt_types: Sequence[str], options: Options) -> None:
    """Raise UsageError where two prompt types have the same texts: they ask the same, and their rows would be one."""
    texts_of = suite.prompt_texts or own_prompt
    seen: dict[str, str] = {}
    for kind in prompt_types:
        other = seen.setdefault(content_hash([texts_of(options, kind) or kind]), kind)
        if other != kind:
            raise UsageError(f"the prompts {other} and {kind} have the same texts: change one, or leave it out")


def require_metrics(suite: Suite, options: Options) -> None:
    """Raise SuiteError where metrics could not be computed or shown, which a run would notice after its calls."""
    metrics = suite.metrics(options)
    names = {metric.name for metric in metrics}
    if suite.cross_row_metrics is None and (unknown := [name for name in suite.headline if name not in names]):
        raise SuiteError(f"the headline of {suite.name} names {unknown[0]}, which is no metric of it")
    columns = {"all", *suite.results.column}
    missing = [(metric.name, name) for metric in metrics for name in metric.slices if name not in columns]
    if suite.join_inputs is None and missing:
        metric, column = missing[0]
        raise SuiteError(f"{suite.name} slices {metric} by {column}, which is no column of {suite.results.table}")


def require_prices(plan: Plan) -> None:
    """Raise ConfigurationError where the cost of a run is limited, and the price of one of its models unknown."""
    if plan.ceiling.usd is None:
        return
    for model in plan.called:
        real = plan.configuration.real_model(model)
        if not is_priced(real, plan.configuration.model(real).price):
            raise ConfigurationError(
                f"the price of {model} is unknown, so no ceiling on cost can hold: give it in the configuration, as in "
                f'[models."{real}"] price = {{ input = 1.0, output = 2.0 }} (US dollars per million tokens), or limit '
                "the calls with --max-calls instead"
            )


def _completed(order: Order, suite: Suite) -> Order:
    """Fill in what the order leaves open, as it was in the run whose failed samples it takes.

    Raises UsageError where it chooses samples in two ways.
    """
    chosen = {"--limit": order.limit, "--first": order.first, "--sample": order.samples or None}
    ways = [name for name, value in {**chosen, "--only-failed": order.only_failed}.items() if value is not None]
    if len(ways) > 1:
        raise UsageError(f"{' and '.join(ways)} exclude each other: choose samples in one way")
    if order.only_failed is None:
        return order
    before = parameters_of(Lake(order.lake), suite, order.only_failed)
    return replace(
        order,
        models=order.models or (before["models"] if suite.calls_subject else None),
        judges=order.judges or before["judges"] or None,
        datasets=order.datasets or before["datasets"],
        prompt_types=order.prompt_types or before["prompt_types"],
    )


def _chosen_samples(order: Order, suite: Suite, datasets: tuple[Dataset, ...]) -> tuple[Dataset, ...]:
    """Reduce the datasets to the samples that the order takes."""
    if order.limit is not None:
        return tuple(draw(dataset, order.limit) for dataset in datasets)
    if order.first is not None:
        return tuple(replace(dataset, samples=dataset.samples[: order.first]) for dataset in datasets)
    if order.only_failed is not None:
        return choose(datasets, failed_samples(Lake(order.lake), suite, order.only_failed))
    return choose(datasets, order.samples) if order.samples else datasets


def _chosen(what: str, given: Sequence[str] | None, default: Sequence[str]) -> tuple[str, ...]:
    """Choose the names given, each once, or the default where none is. Raises UsageError where all are blank."""
    if not given:
        return tuple(default)
    if not (names := tuple(dict.fromkeys(name.strip() for name in given if name.strip()))):
        raise UsageError(f"the {what} are blank: name some, or leave them out for those of the suite")
    return names
