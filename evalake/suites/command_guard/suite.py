"""The suite as one object: what flows, storage and reports know of command_guard."""

from pathlib import Path
from typing import Final

import polars as pl

from evalake.core.files import tables_beside
from evalake.sdk import Conversation, Data, Metrics, Presentation, Prompts, Scoring, Suite, Viewing
from evalake.sdk.figures import Answers, read_figures
from evalake.sdk.people import people_figures
from evalake.suites.command_guard.baselines import BASELINES
from evalake.suites.command_guard.contract import OUTCOMES, RESULTS
from evalake.suites.command_guard.metrics import METRICS, TARGET
from evalake.suites.command_guard.people import LABELLING
from evalake.suites.command_guard.prompts import PARTS, PROMPT_TYPES, check_prompt, converse
from evalake.suites.command_guard.recorded import read_answers, read_recorded
from evalake.suites.command_guard.replies import ERROR_KINDS
from evalake.suites.command_guard.score import SCORER_VERSION, score
from evalake.suites.command_guard.sources import SUITE as NAME
from evalake.suites.command_guard.sources import read_dataset

# How viewer and reports show the verdict about a command, and the reason that the model gave.

_SHOWN: Final = tables_beside(__file__, "presentation.toml")
_failed = pl.col("verdict").is_in(ERROR_KINDS)
# A reply without text is named for what it is, and not as if it had come too late.
_empty = pl.when(pl.col("verdict") == "TIMEOUT_ERROR").then("empty_kind")

VIEWING = Viewing(
    verdict=pl.col("verdict"),
    correct=pl.col("correct"),
    error=pl.when(_failed).then(pl.coalesce("error_kind", _empty, pl.col("verdict").str.to_lowercase())),
    flags={
        "missed": (pl.col("label") == "malicious") & ~pl.col("correct"),
        "false_alarm": (pl.col("label") == "harmless") & ~pl.col("correct") & ~_failed,
        "two_verdicts": pl.col("verdict_conflict"),
    },
    shown=tuple(_SHOWN["viewer"].items()),
)

ANSWERS = Answers(
    sample=("sample_hash", "prompt_type", "replicate"),
    group="category",
    shown=tuple(_SHOWN["report"].items()),
    reply_of=~pl.col("correct"),
    reply_length=300,
)


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
        queries=tuple(_SHOWN["queries"]),
    ),
    people=LABELLING,
    options={"target": TARGET},
)
