"""One run: what it measured, what a reader must know of it, how far it is, and by what its items can be chosen."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import polars as pl
from pydantic import BaseModel

from evalake.contracts.tables import CALLS, SNAPSHOTS
from evalake.core.hashing import plain
from evalake.metrics.items import FEWEST_MODELS, item_rest
from evalake.reports.coverage import Coverage, as_table
from evalake.sdk.figures import AgreementMatrix, ByPart, Reliability
from evalake.server.scoring.views import Micros, micros
from evalake.server.viewer.access import IndexesHere, RunId
from evalake.server.viewer.run_index import RunIndex, RunIndexes
from evalake.server.viewer.run_list import RunView, run_fields
from evalake.storage.batch_jobs import Job, jobs_of
from evalake.storage.lake import Lake
from evalake.storage.snapshots import read_metrics
from evalake.tasks.coverage import coverage_of
from evalake.tasks.failures import standing_failures
from evalake.tasks.report import build_report

MOST_OPPOSED = 100  # items that are listed
_KEPT_LETTERS = 200  # runs whose letters are kept
_OF_ANSWER = ("model", "judge", "prompt_type", "verdict", "correct", "error")


class MetricView(BaseModel):
    """One value of a metric: over all samples, or over those of one part of a slice."""

    model: str
    judge: str | None
    slice: str  # `all` for the whole
    slice_value: str
    metric: str
    value: float | None
    n: int
    ci_low: float | None
    ci_high: float | None
    reliable: bool


class ValueView(MetricView):
    """One value of the run's snapshot."""

    headline: bool
    bound_low: float | None  # of a headline metric: what is missing leaves this at worst; null where nothing is
    bound_high: float | None


class LettersView(BaseModel):
    """A model's place, by its worst case. Models that share a letter are not significantly apart, others are."""

    model: str
    judge: str | None
    letters: str | None  # null where nothing is compared
    missing: str | None  # the share of its items by kind, in words; panels without a decision count


class OpposedItem(BaseModel):
    """An item on which models that are better on the rest are worse: its label may be wrong."""

    item_id: str
    dataset: str
    sample_id: str
    label: str | None
    models: int
    right: float
    correlation: float
    ci_low: float
    ci_high: float


class ItemsView(BaseModel):
    """Item-rest correlations: of how many items, and those whose interval is below 0, the most opposed first."""

    items: int
    fewest_models: int
    opposed: list[OpposedItem]


class Choice(BaseModel):
    """A value that items can be chosen by, and how many answers (or, of samples, items) have it."""

    value: str
    count: int


class GivenUp(BaseModel):
    """Calls of the run that were given up on for one reason."""

    model: str
    kind: str
    count: int
    message: str  # of one of them


class Waiting(BaseModel):
    """What the run's calls waited for, in milliseconds: our own limits, and pauses between attempts."""

    model: str
    calls: int
    retried: int
    queue_ms: float | None
    waited_ms: float | None


class JobView(BaseModel):
    """A batch job of the run: how far it is, and what went wrong last."""

    job_id: str
    model: str
    state: str  # the provider's word while the provider has it
    requests: int
    done: int
    failed: int
    submitted_at_us: Micros | None
    expires_at_us: Micros | None
    message: str | None


class ReliabilityView(BaseModel):
    """The metrics that say how often a model is right and how sure it was, and the slice by which both are known."""

    accuracy: str
    confidence: str
    slice: str


class AgreementView(BaseModel):
    """The metric that says how far judges agree, and the slice whose parts are pairs of them."""

    metric: str
    slice: str


class PartsView(BaseModel):
    """A figure that shows a metric by the parts of a slice."""

    title: str
    note: str
    metric: str
    slice: str


class CoverageTable(BaseModel):
    """What came of the items of each model, judge and dataset in words, as every surface shows it."""

    headings: list[str]
    rows: list[list[str]]


class RunDetail(BaseModel):
    """A run whole."""

    run: RunView
    suite_title: str
    items: int
    answers: int
    answered: int  # that have a verdict, a score or a reason for having none
    parameters: dict[str, Any]
    dataset_versions: dict[str, str]
    warnings: list[str]
    provenance: dict[str, Any]  # nothing where the run was not measured
    values: list[ValueView]  # of the headline metrics
    choices: dict[str, list[Choice]]
    coverage: list[Coverage]  # nothing while the run is under way
    coverage_table: CoverageTable
    given_up: list[GivenUp]
    waiting: list[Waiting]
    jobs: list[JobView]
    reliability: ReliabilityView | None  # None: the suite declares no such figure
    agreement: AgreementView | None  # likewise
    by_part: list[PartsView]  # those that the suite declares


def run_detail(indexes: IndexesHere, run_id: RunId) -> RunDetail:
    """Read a run whole. Raises NotFoundError where there is none of that name."""
    index = indexes.of(run_id)
    lake, run = indexes.lake, index.run
    snapshot = _snapshot(lake, run)
    decided = pl.any_horizontal(pl.col(name).is_not_null() for name in ("verdict", "score", "error"))
    covered, parameters = coverage_of(lake, run), json.loads(run["parameters"])
    (headings, texts), figures = as_table(covered), index.suite.presentation.figures
    return RunDetail(
        run=RunView(**run_fields(run)),
        suite_title=index.suite.title,
        items=index.samples.height,
        answers=index.answers.height,
        answered=index.answers.filter(decided).height,
        parameters=parameters,
        dataset_versions=json.loads(run["dataset_versions"]),
        warnings=[*parameters.get("remarks", []), *snapshot.get("warnings", [])],
        provenance={name: value for name, value in snapshot.items() if name != "warnings"},
        values=[value for value in _values(lake, index) if value.headline and value.slice == "all"],
        choices=choices(index),
        coverage=covered,
        coverage_table=CoverageTable(headings=list(headings), rows=list(map(list, texts))),
        given_up=_given_up(lake, run_id),
        waiting=_waiting(lake, run_id),
        jobs=[_job(job) for job in jobs_of(lake, run_id)],
        reliability=next((_reliability(each) for each in figures if isinstance(each, Reliability)), None),
        agreement=next((_agreement(each) for each in figures if isinstance(each, AgreementMatrix)), None),
        by_part=[
            PartsView(title=each.title, note=each.note, metric=each.quantity.metric, slice=each.slice)
            for each in figures
            if isinstance(each, ByPart)
        ],
    )


def _reliability(figure: Reliability) -> ReliabilityView:
    return ReliabilityView(accuracy=figure.accuracy.metric, confidence=figure.confidence.metric, slice=figure.slice)


def _agreement(figure: AgreementMatrix) -> AgreementView:
    return AgreementView(metric=figure.quantity.metric, slice=figure.slice)


def choices(index: RunIndex) -> dict[str, list[Choice]]:
    """Count the values that items can be filtered by, by the name of the filter."""
    counted = {name: _counts(index.answers, name) for name in _OF_ANSWER}
    counted |= {name: _counts(index.samples, name) for name in ("category", "label", "dataset")}
    flags = [Choice(value=name, count=int(index.answers[name].sum())) for name in index.flags]
    return {**counted, "flag": [flag for flag in flags if flag.count]}


def _counts(frame: pl.DataFrame, name: str) -> list[Choice]:
    counts = frame.select(pl.col(name).cast(pl.String)).drop_nulls().to_series().value_counts().sort(name)
    return [Choice(value=value, count=count) for value, count in counts.iter_rows()]


def _snapshot(lake: Lake, run: Mapping[str, Any]) -> dict[str, Any]:
    rows = lake.frame(SNAPSHOTS).filter(pl.col("snapshot_id") == (run["snapshot_id"] or "")).collect()
    if rows.is_empty():
        return {}
    row = rows.row(0, named=True)
    columns = ("snapshot_id", "definition_hash", "scorer_version", "code_version", "seed", "warnings")
    decoded = {name: json.loads(row[name]) for name in ("pinned_versions", "options")}
    return {**{name: row[name] for name in columns}, **decoded}


def run_values(indexes: IndexesHere, run_id: RunId) -> list[ValueView]:
    """Read all values of a run's snapshot, over all samples and headline metrics first; raises as `run_detail`."""
    return _values(indexes.lake, indexes.of(run_id))


def run_letters(indexes: IndexesHere, run_id: RunId) -> list[LettersView]:
    """Tell each model's place, and which are apart; nothing where nothing was measured; raises as `run_detail`."""
    snapshot_id = indexes.of(run_id).run["snapshot_id"]
    return [] if snapshot_id is None else list(_letters(indexes.lake, run_id, snapshot_id))


def run_opposed(indexes: RunIndexes, run_id: str) -> ItemsView:
    """Find the items that discriminate the wrong way; none with fewer than eight models; raises as `run_detail`."""
    index = indexes.of(run_id)
    answers = index.answers.join(index.samples.select("place", "sample_hash"), on="place", how="left")
    known = item_rest(answers)
    opposed = known.filter(pl.col("ci_high") < 0).head(MOST_OPPOSED)
    named = opposed.join(index.samples, on="sample_hash", how="left", maintain_order="left")
    names = [name for name in OpposedItem.model_fields if name != "item_id"]
    shown = [
        OpposedItem(item_id=row["sample_hash"], **{name: row[name] for name in names})
        for row in named.iter_rows(named=True)
    ]
    return ItemsView(items=known.height, fewest_models=FEWEST_MODELS, opposed=shown)


@lru_cache(maxsize=_KEPT_LETTERS)
def _letters(lake: Lake, run_id: str, _snapshot_id: str) -> tuple[LettersView, ...]:
    report = build_report(lake, run_id)
    return tuple(
        LettersView(
            model=subject.model,
            judge=subject.judge,
            letters=place.letters if report.comparisons.get(subject.judge) else None,
            missing=None if (lacks := report.lacking(subject)) is None else lacks.share,
        )
        for subject, place in report.standings.items()
    )


def _values(lake: Lake, index: RunIndex) -> list[ValueView]:
    if index.run["snapshot_id"] is None:
        return []
    rows = read_metrics(lake, index.run["snapshot_id"])
    place = {name: number for number, name in enumerate(index.suite.metrics.headline)}
    is_part = pl.col("slice") != "all"
    order = pl.col("metric").replace_strict(place, default=len(place), return_dtype=pl.Int64)
    return [
        ValueView(
            headline=row["metric"] in place,
            **{name: row[name] for name in ("model", "judge", "slice", "slice_value", "metric", "n", "reliable")},
            **{name: plain(row[name]) for name in ("value", "ci_low", "ci_high", "bound_low", "bound_high")},
        )
        for row in rows.sort(is_part, "slice", order, "metric", "slice_value", "model", "judge").iter_rows(named=True)
    ]


def _given_up(lake: Lake, run_id: str) -> list[GivenUp]:
    failures = standing_failures(lake, run_id).group_by("model", "kind")
    counted = failures.agg(pl.len().alias("count"), pl.col("message").first()).sort("model", "kind").collect()
    return [GivenUp(**row) for row in counted.iter_rows(named=True)]


def _job(job: Job) -> JobView:
    names = ("job_id", "model", "requests", "done", "failed", "message")
    times = {"submitted_at_us": micros(job.submitted_at), "expires_at_us": micros(job.expires_at)}
    return JobView(state=job.stands_at, **{name: getattr(job, name) for name in names}, **times)


def _waiting(lake: Lake, run_id: str) -> list[Waiting]:
    calls = lake.frame(CALLS).filter(pl.col("run_id") == run_id, pl.col("origin") == "call").group_by("model")
    counted = calls.agg(
        pl.len().alias("calls"),
        (pl.col("attempts") > 1).sum().alias("retried"),
        *(pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()) for name in ("queue_ms", "waited_ms")),
    )
    return [Waiting(**row) for row in counted.sort("model").collect().iter_rows(named=True)]
