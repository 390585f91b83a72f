"""Report: gather one run's snapshot, its rows, and the columns and figures of its suite."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl

from evalake.metrics.columns import STRATUM
from evalake.metrics.compute import Metric, measure
from evalake.metrics.corrected import Corrected
from evalake.metrics.estimators import Rate
from evalake.metrics.limits import limits_of, measure_exact, open_bounds, undecided_trials, widened
from evalake.reports.ranking import Comparison, Limits, compare_all
from evalake.reports.report import MISTAKES_SHOWN, Report, Subject
from evalake.sdk import Options, Suite
from evalake.sdk.figures import Answers, Ranking
from evalake.storage.lake import Lake
from evalake.storage.ledger import KEY, Key, LedgerIndex, priced
from evalake.storage.snapshots import find_snapshot, read_metrics
from evalake.suites.registry import suite as find_suite
from evalake.tasks.clusters import Versions
from evalake.tasks.corrected import Corrections, corrected_rows, correction_notes, corrections
from evalake.tasks.coverage import coverage_of
from evalake.tasks.failures import Lacking, headline_bounds, lacking, missing_items
from evalake.tasks.measure import inputs, measured_rows, over_all, run_results
from evalake.tasks.runtime.runs import require_measured, run_row


def build_report(lake: Lake, run_id: str, *, corrected: bool = False) -> Report:
    """Build the report of a run's newest snapshot, by corrected rates if wanted.

    Raises UsageError where there is no such run, or no snapshot.
    """
    run = run_row(lake, run_id)
    if run["cost_usd"] is None:
        run |= priced(lake, run_id)
    require_measured(lake, run_id)
    snapshot = find_snapshot(lake, run_id=run_id)
    suite = find_suite(run["suite"], lake)
    versions, options = json.loads(snapshot["pinned_versions"]), json.loads(snapshot["options"])
    as_scored = suite.scored_by(snapshot["scorer_version"])
    ranks = _ranking_metric(suite, options)
    known = corrections(lake, snapshot) if corrected else {}
    ranked = Ranked()
    with measured_rows(lake, as_scored, run_id, versions, options) as rows:
        lacks = lacking(lake, suite, run_id, versions, rows)
        bounds = headline_bounds(suite, rows, lacks, options)
        if ranks is not None:
            ranked = _ranked(suite, rows, ranks, lacks, known)
    metrics = read_metrics(lake, snapshot["snapshot_id"])
    if corrected:
        metrics = corrected_rows(metrics, known)
        subjects = [
            (str(model), judge) for model, judge in metrics.select("model", "judge").unique().sort("model").rows()
        ]
        said = correction_notes(known, [*suite.metrics.corrected, *([] if ranks is None else [ranks.name])], subjects)
        snapshot = {**snapshot, "warnings": [*snapshot["warnings"], *said]}
    results, wrong = _first_mistakes(lake, as_scored, run_id, versions)
    return Report(
        title=suite.title,
        run=run,
        snapshot=snapshot,
        metrics=metrics,
        figures=suite.presentation.figures,
        target=options.get("target"),
        comparisons=ranked.comparisons,
        limits=ranked.limits,
        trivial=ranked.trivial,
        answers=suite.presentation.answers,
        coverage=coverage_of(lake, run),
        missing=missing_items(lacks, bounds),
        results=results,
        wrong=wrong,
    )


def _first_mistakes(
    lake: Lake, suite: Suite, run_id: str, versions: Versions
) -> tuple[pl.DataFrame | None, dict[Subject, int]]:
    """Read the answers that a report lists, with the columns that it shows, and count those that it could list."""
    answers = suite.presentation.answers
    if answers is None:
        return None, {}
    key = list(dict.fromkeys([*answers.sample, *suite.results.key, "sample_hash", "model", "judge"]))
    every = run_results(lake, suite, run_id, versions).filter(answers.listed)
    counted = every.select("model", "judge").group_by("model", "judge").len().collect(engine="streaming")
    counts = {Subject(*of): count for *of, count in counted.sort("model", "judge").iter_rows()}
    of_subject = [every.filter(pl.col("model") == m, pl.col("judge").eq_missing(j)).select(key) for m, j in counts]
    first = [each.bottom_k(MISTAKES_SHOWN, by=key).collect(engine="streaming") for each in of_subject]
    keys = pl.concat([every.select(key).clear().collect(), *first])
    shown = pl.col("sample_hash").is_in(keys["sample_hash"].unique().implode())
    rows = every.filter(shown).join(keys.lazy(), on=key, how="semi", nulls_equal=True).collect().sort(answers.sample)
    tables = {each.table: lake.pinned(each, versions) for each in inputs(suite)}
    if suite.metrics.join_inputs is not None:
        rows = suite.metrics.join_inputs(rows.lazy(), tables).collect()
    rows = _with_replies(lake, answers, rows if suite.is_judged else rows.drop("judge", "judge_hash"))
    return rows if answers.add_columns is None else answers.add_columns(rows, tables), counts


def _with_replies(lake: Lake, answers: Answers, listed: pl.DataFrame) -> pl.DataFrame:
    """Add how the replies began, as far as the suite wants it shown and the ledger has them."""
    if answers.reply_of is None:
        return listed
    keys = [Key(*key) for key in listed.filter(answers.reply_of).select(KEY).unique().rows()]
    replies = LedgerIndex.read(lake).fetch(keys) if keys else {}
    starts = [(*key, row["response"][: answers.reply_length]) for key, row in replies.items() if row["response"]]
    schema = {name: listed.schema[name] for name in KEY} | {"reply_start": pl.String()}
    texts = pl.DataFrame(starts, schema=schema, orient="row")
    shown = pl.when(answers.reply_of).then("reply_start").alias("reply_start")
    return listed.join(texts, on=KEY, how="left", maintain_order="left").with_columns(shown)


Lacks = Mapping[tuple[str, str | None], Lacking]


@dataclass(frozen=True)
class Ranked:
    """What a report says of the metric that ranks: comparisons by judge, limits by model and judge, trivial models."""

    comparisons: Mapping[str | None, tuple[Comparison, ...]] = field(default_factory=dict)
    limits: Mapping[tuple[str, str | None], Limits] = field(default_factory=dict)
    trivial: Mapping[str, float] = field(default_factory=dict)


def _ranked(suite: Suite, rows: pl.LazyFrame, metric: Metric, lacks: Lacks, corrected: Corrections) -> Ranked:
    """Compare every pair of models, and each with the target and with trivial models."""
    answered = {subject: each.answered for subject, each in lacks.items()}
    comparisons = {}
    if rows.select(pl.col("model").n_unique()).collect(engine="streaming").item() > 1:
        read = [*metric.estimator.inputs().values(), *undecided_trials(metric.estimator)]
        frame = _reading(rows, read, "sample_hash", "model", "judge", "cluster", STRATUM)
        frame = frame.with_columns(pl.col("model", "judge").cast(pl.String))  # of categories
        comparisons = compare_all(frame, metric, answered, _of_metric(corrected, metric))
    return Ranked(comparisons, _limits(rows, metric, lacks, corrected), _trivial(suite, rows, metric))


def _reading(rows: pl.LazyFrame, read: Iterable[pl.Expr], *more: str) -> pl.DataFrame:
    """Read the columns that expressions read, and more."""
    names = {*more, *(name for each in read for name in each.meta.root_names())}
    return rows.select(name for name in rows.collect_schema() if name in names).collect(engine="streaming")


def _of_metric(corrected: Corrections, metric: Metric) -> dict[tuple[str, str | None], Corrected]:
    return {(model, judge): each for (model, judge, name), each in corrected.items() if name == metric.name}


def _limits(
    rows: pl.LazyFrame, metric: Metric, lacks: Lacks, corrected: Corrections
) -> dict[tuple[str, str | None], Limits]:
    """Compute the limits for the comparison with the target, without and with missing items."""
    found = {}
    for row in measure_exact(rows, [metric]).iter_rows(named=True):
        subject = row["model"], row["judge"]
        own = rows.filter(pl.col("model") == row["model"], pl.col("judge").eq_missing(row["judge"]))
        ends = open_bounds(own, metric, lacks[subject].unknown if subject in lacks else (0, None))
        if (known := _of_metric(corrected, metric).get(subject)) is not None:
            moved = known.value - row["value"]
            ends = None if ends is None else (ends[0] + moved, ends[1] + moved)
            low, high = limits_of(known, metric.estimator)
            row |= {"value": known.value, "ci_low": low, "ci_high": high, "n_eff": None}
        trials = row["n_eff"] if type(metric.estimator) is Rate else None
        exact = row["ci_low"], row["ci_high"]
        found[subject] = Limits(exact, widened(row, metric, ends), trials, ends, row["units"])
    return found


def _trivial(suite: Suite, rows: pl.LazyFrame, metric: Metric) -> dict[str, float]:
    """Compute the ranking metric of trivial models, which answer every sample alike."""
    given = [
        *metric.estimator.inputs().values(),
        *(x for each in suite.metrics.trivial.values() for x in each.values()),
    ]
    samples = _reading(rows, given, "sample_hash", "prompt_type", "model", "judge").sort("model", "judge")
    samples = samples.unique(["sample_hash", "prompt_type"], keep="first", maintain_order=True)
    if samples.is_empty():
        return {}
    measured = {
        name: measure(samples.with_columns(**columns), (metric,), groups=())["value"].item()
        for name, columns in suite.metrics.trivial.items()
    }
    return {name: value for name, value in measured.items() if value is not None}


def _ranking_metric(suite: Suite, options: Options) -> Metric | None:
    """Find the metric that ranks, over all samples; None where it is not computed row by row."""
    ranking = next(
        (figure.quantity.metric for figure in suite.presentation.figures if isinstance(figure, Ranking)), None
    )
    return over_all(suite.all_metrics(options), ranking)
