"""The suite as one object: what flows, storage and reports know of solidity_audit."""

from pathlib import Path

import polars as pl

from evalake.sdk import Conversation, Data, Metrics, Presentation, Prompts, Scoring, Suite
from evalake.sdk.figures import read_figures
from evalake.sdk.people import people_figures
from evalake.sdk.suite import read_examples
from evalake.suites.solidity_audit.baselines import BASELINES
from evalake.suites.solidity_audit.calibration import CALIBRATION
from evalake.suites.solidity_audit.contract import FINDINGS, OUTCOMES, RESULTS
from evalake.suites.solidity_audit.conversation import converse
from evalake.suites.solidity_audit.cross_row_metrics import cross_row_metrics, warnings
from evalake.suites.solidity_audit.metrics import metrics
from evalake.suites.solidity_audit.panels.rows import derive
from evalake.suites.solidity_audit.people import CORRECTED, INPUTS, LABELLING, join_inputs
from evalake.suites.solidity_audit.prompts import PARTS, PROMPT_TYPES
from evalake.suites.solidity_audit.recorded import read_recorded, stated_label
from evalake.suites.solidity_audit.score import SCORER_VERSION, score
from evalake.suites.solidity_audit.sources.read import read_dataset
from evalake.suites.solidity_audit.sources.rounds import read_folder
from evalake.suites.solidity_audit.truth import DEFAULTS, INDEX, always
from evalake.suites.solidity_audit.truth import SUITE as NAME
from evalake.suites.solidity_audit.viewing import ANSWERS, QUERIES, VIEWING

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
        queries=QUERIES,
    ),
    options=DEFAULTS,
    people=LABELLING,
    calibration=CALIBRATION,
)
