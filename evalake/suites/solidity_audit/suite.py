"""The suite as one object: what flows, storage and reports know of solidity_audit."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl

from evalake.core.files import tables_beside
from evalake.sdk import Conversation, Data, Metrics, Presentation, Prompts, Scoring, Suite, Viewing
from evalake.sdk.figures import Answers, read_figures
from evalake.sdk.people import people_figures
from evalake.sdk.suite import read_examples
from evalake.suites.solidity_audit.baselines import BASELINES
from evalake.suites.solidity_audit.calibration import CALIBRATION
from evalake.suites.solidity_audit.contract import FINDINGS, OUTCOMES, RESULTS, VERDICT_WORD
from evalake.suites.solidity_audit.cross_row_metrics import cross_row_metrics, warnings
from evalake.suites.solidity_audit.metrics import metrics
from evalake.suites.solidity_audit.panels import derive
from evalake.suites.solidity_audit.people import CORRECTED, INPUTS, LABELLING, join_inputs
from evalake.suites.solidity_audit.prompts import PARTS, converse
from evalake.suites.solidity_audit.recorded import read_recorded, stated_label
from evalake.suites.solidity_audit.replies import lines_in, words_in
from evalake.suites.solidity_audit.score import MISTAKE, SCORER_VERSION, add_columns, score
from evalake.suites.solidity_audit.sources.read import read_dataset
from evalake.suites.solidity_audit.sources.rounds import read_folder
from evalake.suites.solidity_audit.truth import DEFAULTS, INDEX, PROMPT_TYPES, always
from evalake.suites.solidity_audit.truth import SUITE as NAME

# How viewer and reports show an audit: its verdict, its judge's words, each finding as it was classed.

_SHOWN: Final = tables_beside(__file__, "presentation.toml")
_NAMED = re.compile(r"\s*(?:function|modifier)\s+(\w+)")


def remarks(source: str, _: Mapping[str, Any], findings: Sequence[Mapping[str, Any]]) -> list[tuple[int, str]]:
    """Place each finding at the lines or functions that it claims, with its class and the judge's reason."""
    lines = source.split("\n")
    heads = [(number, found[1]) for number, line in enumerate(lines, 1) if (found := _NAMED.match(line))]
    placed = []
    for row in findings:
        claimed = row["location_claimed"] or ""
        names = words_in(claimed)
        at = sorted(lines_in(claimed))[:1] or [number for number, name in heads if name in names]
        told = (row["vulnerability_type_claimed"], row["classification"].replace("_", " ").lower(), row["reason"])
        placed += [(line, ": ".join(filter(None, told))) for line in at if line <= len(lines)]
    return placed


VIEWING = Viewing(
    verdict=VERDICT_WORD,
    correct=pl.col("detection_correct"),
    error=pl.coalesce("empty_kind", "subject_error", "judge_error"),
    flags={
        "lucky_guess": pl.col("lucky_guess"),
        "target_missed": pl.col("is_vulnerable") & ~pl.col("target_found"),
        "false_alarm": ~pl.col("is_vulnerable") & pl.col("said_vulnerable"),
        "hallucinated_findings": pl.col("hallucinated_findings") > 0,
        "panel_undecided": pl.col("panel_undecided"),
        "repaired_judgement": pl.col("repaired"),
        "contradictory_judgement": pl.col("contradictions").is_not_null(),
    },
    shown=tuple(_SHOWN["viewer"].items()),
    details=tuple(_SHOWN["details"].items()),
    input_is_code=True,
    remarks=remarks,
)

ANSWERS = Answers(
    correct="detection_correct",
    mistake=MISTAKE,
    label="is_vulnerable",
    sample=("sample_hash", "judge", "prompt_type", "replicate"),
    group="mistake",
    shown=tuple(_SHOWN["report"].items()),
    reply_of=MISTAKE,
    reply_length=600,
    add_columns=add_columns,
)


HEADLINE = (
    *("sui", "target_detection_rate", "lucky_guess_rate", "hallucination_rate", "finding_precision"),
    "ece_debiased",
)

SUITE = Suite(
    name=NAME,
    title="Smart contract audit",
    data=Data(
        read=read_dataset,
        starter=("starter",),
        read_recorded=read_recorded,
        stated_label=stated_label,
        read_folder=read_folder,
    ),
    conversation=Conversation(
        next_request=converse,
        baselines=BASELINES,
        default_models=("baseline/solidity-patterns", "baseline/always-vulnerable", "baseline/always-safe"),
        default_judges=("baseline/overlap-judge",),
        judge_parameters={"temperature": 0, "seed": 20_260},
        streams=True,
    ),
    prompts=Prompts(types=PROMPT_TYPES, parts=PARTS, check=read_examples),
    scoring=Scoring(
        score=score, version=SCORER_VERSION, results=RESULTS, extra_tables=(FINDINGS,), outcomes=OUTCOMES, derive=derive
    ),
    metrics=Metrics(
        own=metrics,
        headline=HEADLINE,
        trivial={"always vulnerable": always(vulnerable=True), "always safe": always(vulnerable=False)},
        repeated=pl.col("detection_correct"),
        inputs=INPUTS,
        join_inputs=join_inputs,
        across_rows=cross_row_metrics,
        corrected=CORRECTED,
        across_rows_version=8,
        index=INDEX,
        warnings=warnings,
    ),
    presentation=Presentation(
        figures=read_figures(Path(__file__).with_name("figures.toml"), people_figures(LABELLING)),
        answers=ANSWERS,
        viewing=VIEWING,
        queries=tuple(_SHOWN["queries"]),
    ),
    options=DEFAULTS,
    people=LABELLING,
    calibration=CALIBRATION,
)
