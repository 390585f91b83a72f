"""The suite as one object: what flows, storage and reports know of session_review."""

import polars as pl

from contracts.tables import HUMAN_LABELS
from metrics.compute import measure
from suites.base import Options, Suite
from suites.session_review.answers import ANSWERS
from suites.session_review.baselines import BASELINES
from suites.session_review.contract import MISSING_TOOLS, OUTCOMES, RESULTS
from suites.session_review.conversation import OPTIONS, PROMPT_TYPES, converse
from suites.session_review.figures import FIGURES
from suites.session_review.metrics import TOOL_METRICS, metrics, tools_named
from suites.session_review.people import LABELLING
from suites.session_review.prompts import PARTS, SETS, check_prompt, templates_of
from suites.session_review.roadmap import ROADMAP
from suites.session_review.score import SCORER_VERSION, score
from suites.session_review.sources.read import read_dataset
from suites.session_review.viewing import VIEWING


def _tool_metrics(frame: pl.DataFrame, _: Options) -> pl.DataFrame:
    """Compute how often each tool was missed, counted over sessions and tools, not over scorings."""
    return measure(tools_named(frame.lazy()), TOOL_METRICS)


SUITE = Suite(
    name="session_review",
    title="Session review",
    baselines=BASELINES,
    baseline_models=("agents",),
    baseline_judges=("baseline/rubric-judge",),
    calls_subject=False,
    caches_prompts=True,
    fenced=True,
    streams=True,
    starter=("starter",),
    read_dataset=read_dataset,
    imports="samples",
    converse=converse,
    usual_replies=("50", ""),
    score=score,
    scorer_version=SCORER_VERSION,
    results=RESULTS,
    extra_tables=(MISSING_TOOLS,),
    own_metrics=metrics,
    inputs=(HUMAN_LABELS,),
    labelling=LABELLING,
    cross_row_metrics=_tool_metrics,
    headline=("score_mean", "score_median", "scoring_failure_rate"),
    prompt_types=PROMPT_TYPES,
    prompt_parts=PARTS,
    prompt_sets=SETS,
    check_prompt=check_prompt,
    prompt_texts=templates_of,
    options=OPTIONS,
    repeated=pl.col("total_score"),
    roadmap=ROADMAP,
    outcomes=OUTCOMES,
    viewing=VIEWING,
    figures=FIGURES,
    answers=ANSWERS,
    queries=(
        "select session_id, judge, total_score, failure_tags from session_review_run_results where run_id = $run "
        "order by total_score",
        "select failure, count(*) as sessions from (select unnest(failure_tags) as failure "
        "from session_review_run_results where run_id = $run) group by all order by sessions desc",
    ),
)
