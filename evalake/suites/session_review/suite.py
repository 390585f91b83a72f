"""The suite as one object: what flows, storage and reports know of session_review."""

from pathlib import Path

import polars as pl

from evalake.contracts.tables import HUMAN_LABELS
from evalake.metrics.compute import measure
from evalake.sdk import Conversation, Data, Metrics, Options, Presentation, Prompts, Scoring, Suite
from evalake.sdk.figures import read_figures
from evalake.sdk.people import people_figures
from evalake.suites.session_review.baselines import BASELINES
from evalake.suites.session_review.contract import MISSING_TOOLS, OUTCOMES, RESULTS
from evalake.suites.session_review.metrics import TOOL_METRICS, metrics, tools_named
from evalake.suites.session_review.people import CORRECTED, LABELLING
from evalake.suites.session_review.prompts import (
    OPTIONS,
    PARTS,
    PROMPT_TYPES,
    SETS,
    check_prompt,
    converse,
    templates_of,
)
from evalake.suites.session_review.roadmap import ROADMAP
from evalake.suites.session_review.score import SCORER_VERSION, score
from evalake.suites.session_review.sources.read import holds_sessions, read_dataset
from evalake.suites.session_review.viewing import ANSWERS, QUERIES, VIEWING


def _tool_metrics(frame: pl.DataFrame, _: Options) -> pl.DataFrame:
    """Compute how often each tool was missed, counted over sessions and tools, not over scorings."""
    return measure(tools_named(frame.lazy()), TOOL_METRICS)


SUITE = Suite(
    name="session_review",
    title="Session review",
    data=Data(read=read_dataset, starter=("starter",), imports="samples", knows=holds_sessions),
    conversation=Conversation(
        next_request=converse,
        asks_subject=False,
        baselines=BASELINES,
        default_models=("agents",),
        default_judges=("baseline/rubric-judge",),
        caches_prompts=True,
        fenced=True,
        streams=True,
        usual_replies=("50", ""),
    ),
    prompts=Prompts(types=PROMPT_TYPES, parts=PARTS, sets=SETS, check=check_prompt, texts=templates_of),
    scoring=Scoring(
        score=score, version=SCORER_VERSION, results=RESULTS, extra_tables=(MISSING_TOOLS,), outcomes=OUTCOMES
    ),
    metrics=Metrics(
        own=metrics,
        headline=("score_mean", "score_median", "scoring_failure_rate"),
        repeated=pl.col("total_score"),
        inputs=(HUMAN_LABELS,),
        across_rows=_tool_metrics,
        corrected=CORRECTED,
    ),
    presentation=Presentation(
        figures=read_figures(Path(__file__).with_name("figures.toml"), people_figures(LABELLING)),
        answers=ANSWERS,
        viewing=VIEWING,
        queries=QUERIES,
    ),
    people=LABELLING,
    options=OPTIONS,
    roadmap=ROADMAP,
)
