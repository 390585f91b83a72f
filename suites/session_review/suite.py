"""The suite as one object: what flows, storage and reports know of session_review."""

import polars as pl

from metrics.compute import measure
from metrics.definition import Metric
from suites.base import Options, Suite
from suites.session_review.contract import MISSING_TOOLS, RESULTS
from suites.session_review.dialogue import OPTIONS, converse
from suites.session_review.figures import FIGURES
from suites.session_review.metrics import METRICS, TOOL_METRICS, tools_named
from suites.session_review.ratings import INPUTS, assemble
from suites.session_review.score import SCORER_VERSION, score
from suites.session_review.sources import read_dataset


def _metrics(_: Options) -> tuple[Metric, ...]:
    return METRICS


def _tool_metrics(frame: pl.DataFrame, _: Options, seed: int) -> pl.DataFrame:
    """How often each tool was missed: counted over sessions and tools, not over scorings."""
    return measure(tools_named(frame.lazy()), TOOL_METRICS, seed=seed)


SUITE = Suite(
    name="session_review",
    title="Session review",
    baseline_models=("agents",),
    baseline_judges=("baseline/rubric-judge",),
    calls_subject=False,
    starter=("starter",),
    read_dataset=read_dataset,
    read_recorded=None,
    converse=converse,
    score=score,
    scorer_version=SCORER_VERSION,
    results=RESULTS,
    details=(MISSING_TOOLS,),
    metrics=_metrics,
    inputs=INPUTS,
    assemble=assemble,
    further_metrics=_tool_metrics,
    headline=("score_mean", "score_median", "scoring_failure_rate"),
    options=OPTIONS,
    figures=FIGURES,
    queries=(
        "select session_id, judge, total_score, failure_tags from session_scores order by total_score",
        "select failure, count(*) as sessions from (select unnest(failure_tags) as failure from session_scores) "
        "group by all order by sessions desc",
    ),
)
