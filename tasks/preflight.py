"""Preflight: find every mistake of a run before it writes anything."""

import json
import logging
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import polars as pl

from evalake.contracts.tables import CORE_CONTRACTS, RUNS
from evalake.core.configuration import PROMPTS, TEMPLATES, Configuration, lowest, read_configuration
from evalake.core.errors import ConfigurationError, MissingKeyError, SuiteError, UsageError
from evalake.core.hashing import canonical_json, content_hash
from evalake.core.redaction import redact
from evalake.models.batches import require_batches
from evalake.models.cost import is_priced
from evalake.models.request import ANSWERED_HERE
from evalake.models.routes import find_route
from evalake.reports.coverage import Tolerance
from evalake.reports.wording import count_of
from evalake.request import RunRequest
from evalake.sdk import Dataset, Options, Suite
from evalake.sdk.dataset import UNLABELLED, summary
from evalake.sdk.results import FALLBACK_FOR
from evalake.sdk.suite import own_prompt
from evalake.storage.lake import Lake
from evalake.storage.migrations import require_current
from evalake.storage.objects import require_write_access
from evalake.storage.reservations import Ceiling
from evalake.suites.registry import baselines, source_hash
from evalake.suites.registry import suite as find_suite
from evalake.tasks.converse import judge_parameters
from evalake.tasks.coverage import Source, tolerance_of_request
from evalake.tasks.extract import (
    choose,
    draw,
    draw_pooled,
    failed_samples,
    parameters_of,
    read_datasets,
    without_forgotten,
)
from evalake.tasks.measure import inputs
from evalake.tasks.runtime.context import options_of, prompt_types_of
from evalake.tasks.runtime.runner import require_runner
from evalake.tasks.runtime.runs import labels_of
from evalake.tasks.runtime.server import read_secret

NOT_KEPT = ("suite", "lake", "configuration_file")
"""Options that are no parameters of a run's row: it has a column of the suite, and stands in its lake."""


@dataclass(frozen=True)
class Plan:
    """The plan of a run: a request, looked up and checked."""

    request: RunRequest
    suite: Suite
    lake: Lake
    configuration: Configuration
    models: tuple[str, ...]
    judges: tuple[str, ...]
    prompt_types: tuple[str, ...]
    datasets: tuple[Dataset, ...]
    sources: tuple[Source, ...] = ()  # of the datasets, before samples were chosen
    # Estimates of the plan, by what they rest on: the command shows them, and its flow keeps them
    estimates: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def samples(self) -> int:
        """The number of samples."""
        return sum(len(dataset.samples) for dataset in self.datasets)

    def release_samples(self) -> None:
        """Release the samples after all conversations, because later steps read the lake and need the memory."""
        object.__setattr__(self, "datasets", ())

    @property
    def called(self) -> tuple[str, ...]:
        """The models that may be called: subjects where the suite calls them, judges and their fallbacks."""
        fallbacks = dict.fromkeys(name for judge in self.judges for name in self.fallbacks(judge))
        return (*(self.models if self.suite.conversation.asks_subject else ()), *self.judges, *fallbacks)

    def fallbacks(self, judge: str) -> tuple[str, ...]:
        """List who is asked in place of a judge whose provider cannot answer; none where rows cannot state it."""
        states_it = FALLBACK_FOR in self.suite.results.column
        return tuple(n for n in self.configuration.fallbacks(judge) if states_it and n not in self.judges)

    @property
    def batched(self) -> frozenset[str]:
        """The real models that are asked by batch jobs."""
        of = self.configuration
        wanted = (of.real_model(name) for name in self.called if of.is_on("batch", name, self.request.batch))
        return frozenset(model for model in wanted if not model.startswith(ANSWERED_HERE))

    @property
    def request_parameters(self) -> Mapping[str, str]:
        """The parameters that configuration and suite add to requests, by model, as redacted JSON."""
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
        return range(self.request.first_replicate, self.request.first_replicate + self.request.replicates)

    @property
    def items(self) -> int:
        """The number of items."""
        kinds = len(self.prompt_types) * len(self.models) * max(len(self.judges), 1)
        return self.samples * kinds * self.request.replicates

    @property
    def ceiling(self) -> Ceiling:
        """The ceiling of the run: the lowest of request and configuration."""
        configured, asked = self.configuration, self.request
        return Ceiling(
            lowest(configured.max_cost_usd, asked.max_cost_usd), lowest(configured.max_calls, asked.max_calls)
        )

    @property
    def tolerance(self) -> Tolerance:
        """The tolerance for missing items: the request's, or else the configured one."""
        return tolerance_of_request(self.configuration, self.request)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters in the run's row."""
        asked = {name: given for name, given in self.request.parameters.items() if name not in NOT_KEPT}
        return {
            **asked,
            "models": self.models,
            "judges": self.judges,
            "prompt_types": self.prompt_types,
            "prompts": self.prompts,
            "datasets": [redact(source) for source in self.request.datasets or self.suite.data.starter],
            "draw": None if self.request.limit is None else "stratified",
            "samples": asked["samples"] or None,
            "only_failed": asked["only_failed"] or None,
            **labels_of(self.request.tags, self.request.note),
            "request_parameters": self.request_parameters,
            "scorer": [self.suite.scoring.version, source_hash(self.suite.name)],
            "max_cost_usd": self.ceiling.usd,
            "max_calls": self.ceiling.calls,
            **asdict(self.tolerance),
        }


# The plan that a command has made of its request, which the flow that it calls takes over.
_CARRIED: ContextVar[tuple[RunRequest, Plan] | None] = ContextVar("carried plan", default=None)


@contextmanager
def carried(request: RunRequest, plan: Plan) -> Iterator[None]:
    """Let a flow that is called in this block with this request take its plan, which was checked already."""
    token = _CARRIED.set((request, plan))
    try:
        yield
    finally:
        _CARRIED.reset(token)


def plan_of(request: RunRequest) -> Plan:
    """Find the plan of a request: the one that is carried, or else a new one. Raises as `check` does."""
    known = _CARRIED.get()
    # A plan that was carried out has no samples any more
    if known is not None and known[1].datasets and known[0] == request:
        return known[1]
    return check(request)


def check(request: RunRequest, *, dry_run: bool = False) -> Plan:
    """Look everything up. Raises an EvalakeError that names the first thing that is wrong.

    For a `dry_run`, missing keys and a lake that is only readable are no reason to, and secrets are not read.
    """
    suite = find_suite(request.suite, Lake(request.lake))
    request = _completed(request, suite)
    configuration = read_configuration(request.configuration_file)
    options = options_of(suite, configuration)
    require_metrics(suite, options)
    prompt_types = tuple(request.prompt_types or suite.prompts.types[: suite.prompts.usual])
    there_are = prompt_types_of(suite, options)
    if unknown := [kind for kind in prompt_types if kind not in there_are]:
        raise UsageError(f"{suite.name} has no prompt type {unknown[0]}; it has {', '.join(there_are)}")
    require_different_prompts(suite, prompt_types, options)
    judges = tuple(request.judges or suite.conversation.default_judges)
    if request.judges and not suite.is_judged:
        raise UsageError(f"{suite.name} is judged by rules: leave --judges out")
    if request.models and not suite.conversation.asks_subject:
        raise UsageError(f"{suite.name} judges recorded answers: leave --models out")
    models = tuple(request.models or suite.conversation.default_models)
    if suite.is_judged and not judges:
        raise UsageError(f"{suite.name} has no rule-based judge: name a judge with --judges, like openai/gpt-4o")
    if not models:
        raise UsageError(f"{suite.name} has no rule-based model: name models with --models, like openai/gpt-4o-mini")
    require_different(models, configuration)
    require_different(judges, configuration)
    lake = Lake(request.lake)
    given = without_forgotten(lake, read_datasets(suite, request.datasets, lake))
    datasets = _chosen_samples(request, suite, given)
    require_runner()
    require_tables(lake, suite)
    sources = tuple(map(Source.of, given))
    plan = Plan(request, suite, lake, configuration, models, judges, prompt_types, datasets, sources)
    if request.batch and not plan.batched:
        who = ", ".join(plan.called) or "a model"
        raise UsageError(f"no provider has batch jobs for {who}: leave --batch out")
    for model in plan.called:
        with suppress(MissingKeyError) if dry_run else nullcontext():
            route = find_route(model, configuration, _unread if dry_run else read_secret, baselines())
            if configuration.real_model(model) in plan.batched:
                require_batches(route)
    require_prices(plan)
    if not dry_run:
        require_write_access(lake)
    _tell_changed_scorer(plan)
    return plan


def _tell_changed_scorer(plan: Plan) -> None:
    """Say where a suite's code is another than that of its latest run, under the same scorer version."""
    version, code = plan.parameters["scorer"]
    if code is None or not plan.lake.exists(RUNS):
        return
    latest = plan.lake.frame(RUNS).filter(pl.col("suite") == plan.suite.name).sort("started_at").tail(1).collect()
    for run_id, parameters in latest.select("run_id", "parameters").iter_rows():
        before = json.loads(parameters or "{}").get("scorer") or [None, None]
        if before[0] == version and before[1] not in (None, code):
            logger.warning(
                f"the code of {plan.suite.name} has changed since the run {run_id}, its scorer version {version!r} has "
                f"not: if scores change, raise the version, and `evalake rescore {run_id}` scores that run by it"
            )


def _unread(name: str) -> str:
    raise MissingKeyError(f"the key is in the secret {name}, which is not read")


def require_tables(lake: Lake, suite: Suite) -> None:
    """Raise OlderLakeError where a table of the run has an older schema, before any call is paid for."""
    require_current(lake, (*CORE_CONTRACTS, *suite.contracts, *inputs(suite)))


def require_different(names: Sequence[str], configuration: Configuration) -> None:
    """Raise UsageError where two names mean one model with the same parameters, whose calls would be paid twice."""
    seen: dict[str, str] = {}
    for name in names:
        asked = [configuration.real_model(name), configuration.parameters(name), configuration.revision(name)]
        other = seen.setdefault(content_hash(asked), name)
        if other != name:
            raise UsageError(f"{other} and {name} are one model, asked with the same parameters: leave one out")


def require_different_prompts(suite: Suite, prompt_types: Sequence[str], options: Options) -> None:
    """Raise UsageError where two prompt types have the same texts: they ask the same, and their rows would be one."""
    texts_of = suite.prompts.texts or own_prompt
    seen: dict[str, str] = {}
    for kind in prompt_types:
        other = seen.setdefault(content_hash([texts_of(options, kind) or kind]), kind)
        if other != kind:
            raise UsageError(f"the prompts {other} and {kind} have the same texts: change one, or leave it out")


def require_metrics(suite: Suite, options: Options) -> None:
    """Raise SuiteError where metrics could not be computed or shown, which a run would notice after its calls."""
    metrics = suite.all_metrics(options)
    names = {metric.name for metric in metrics}
    if suite.metrics.across_rows is None and (
        unknown := [name for name in suite.metrics.headline if name not in names]
    ):
        raise SuiteError(f"the headline of {suite.name} names {unknown[0]}, which is no metric of it")
    columns = {"all", *suite.results.column}
    missing = [(metric.name, name) for metric in metrics for name in metric.slices if name not in columns]
    if suite.metrics.join_inputs is None and missing:
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


def _completed(request: RunRequest, suite: Suite) -> RunRequest:
    """Fill in the open options of a request from the run whose failed samples it takes."""
    if not request.only_failed:
        return request
    before = parameters_of(Lake(request.lake), suite, request.only_failed)
    return replace(
        request,
        models=request.models or before["models"],
        judges=request.judges or before["judges"],
        datasets=request.datasets or before["datasets"],
        prompt_types=request.prompt_types or before["prompt_types"],
    )


def _chosen_samples(request: RunRequest, suite: Suite, datasets: tuple[Dataset, ...]) -> tuple[Dataset, ...]:
    """Reduce the datasets to the samples that the request takes."""
    if request.limit is not None:
        return tuple(draw(dataset, request.limit) for dataset in datasets)
    if request.pooled is not None:
        return draw_pooled(datasets, request.pooled)
    if request.first is not None:
        return tuple(replace(dataset, samples=dataset.samples[: request.first]) for dataset in datasets)
    if request.only_failed:
        return choose(datasets, failed_samples(Lake(request.lake), suite, request.only_failed))
    return choose(datasets, request.samples) if request.samples else datasets


# The datasets and models of a run in words, for the terminal and the log of its flow run.


logger = logging.getLogger("evalake.runs")


def lines_of(plan: Plan) -> Iterator[str]:
    """Describe a run: its datasets with counts by category, left-out rows, models and judges."""
    for dataset in plan.datasets:
        counts = summary(dataset)
        kinds = ", ".join(f"{category} {count}" for category, count in counts.samples.items())
        samples, are_told_apart = count_of(len(dataset.samples), "sample"), [*counts.samples] != [UNLABELLED]
        yield f"{dataset.name}: {samples}" + (f" ({kinds})" if are_told_apart else "")
        yield from (f"  {note}" for note in dataset.notes)
        if counts.skipped:
            yield f"  left out: {', '.join(f'{count} {reason}' for reason, count in counts.skipped.items())}"
    judges = f", judged by {', '.join(plan.judges)}" if plan.judges else ""
    yield f"{plan.items} items, {', '.join(plan.models)}{judges}"
    for judge in plan.judges:
        if plan.configuration.fallbacks(judge) and FALLBACK_FOR not in plan.suite.results.column:
            yield f"no fallback of {judge} is asked: rows of {plan.suite.name} cannot say who judged in its place"


def log_plan(plan: Plan) -> None:
    """Log the datasets and models of a run, and its lake."""
    for line in lines_of(plan):
        logger.info("%s", line)
    logger.info("lake %s", plan.lake.uri)
    if (file := plan.configuration.distrusted_file) is not None:
        logger.warning("configuration %s of the working directory, which nobody named", file)
