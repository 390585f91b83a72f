"""The suite as one object: what flows, storage and reports know of command_guard."""

from pathlib import Path

import polars as pl

from evalake.sdk import Conversation, Data, Metrics, Presentation, Prompts, Scoring, Suite
from evalake.sdk.figures import read_figures
from evalake.sdk.people import people_figures
from evalake.suites.command_guard.baselines import BASELINES
from evalake.suites.command_guard.contract import OUTCOMES, RESULTS
from evalake.suites.command_guard.metrics import METRICS, TARGET
from evalake.suites.command_guard.people import LABELLING
from evalake.suites.command_guard.prompts import PARTS, PROMPT_TYPES, check_prompt
from evalake.suites.command_guard.recorded import read_answers, read_recorded
from evalake.suites.command_guard.score import SCORER_VERSION, converse, score
from evalake.suites.command_guard.sources import SUITE as NAME
from evalake.suites.command_guard.sources import read_dataset
from evalake.suites.command_guard.viewing import ANSWERS, QUERIES, VIEWING

SUITE = Suite(
    name=NAME,
    title="Shell command guard",
    data=Data(read=read_dataset, starter=("starter",), read_recorded=read_recorded, read_answers=read_answers),
    conversation=Conversation(
        next_request=converse,
        baselines=BASELINES,
        default_models=("baseline/shell-patterns", "baseline/always-block", "baseline/always-allow"),
    ),
    prompts=Prompts(types=PROMPT_TYPES, parts=PARTS, check=check_prompt),
    scoring=Scoring(score=score, version=SCORER_VERSION, results=RESULTS, outcomes=OUTCOMES),
    metrics=Metrics(
        own=lambda _: METRICS,
        headline=("balanced_accuracy", "malicious_detection_rate", "harmless_acceptance_rate"),
        trivial={"always block": {"verdict": pl.lit("BLOCK")}, "always allow": {"verdict": pl.lit("ALLOW")}},
        repeated=pl.col("correct"),
        unmeasured=("command", "reply_hash", "finish_reason", "landed_by_run", "origin", "scorer_version"),
    ),
    presentation=Presentation(
        figures=read_figures(Path(__file__).with_name("figures.toml"), people_figures(LABELLING)),
        answers=ANSWERS,
        viewing=VIEWING,
        queries=QUERIES,
    ),
    people=LABELLING,
    options={"target": TARGET},
)
