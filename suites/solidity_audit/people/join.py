"""How people's labels join the results, and the bin of a confidence."""

from collections.abc import Mapping

import polars as pl

from contracts.tables.human_labels import HUMAN_LABELS, YES
from metrics.calibration import equal_width_bin
from suites.base.drawing import represented
from suites.base.labelling import ANSWER
from suites.solidity_audit.contract import FINDINGS
from suites.solidity_audit.taxonomy import BONUS, VALID
from suites.solidity_audit.truth import SUITE

RESULT = (
    *("prompt_hash", "endpoint", "judge_hash", "judge_endpoint"),
    *("sample_hash", "replicate", "reply_revision"),
)

BINS = {k: f"{k / 10:.1f} to {(k + 1) / 10:.1f}" for k in range(10)}

INPUTS = (FINDINGS, HUMAN_LABELS)


def join_inputs(results: pl.LazyFrame, inputs: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
    """Join to the results what the metrics need beside them.

    human_target_found      what most people answer, whichever the judge; null on a tie, or where nobody answered
    human_valid_findings    how many of a judge's findings people call valid; null unless they labelled every one
    human_weight            how many audits it stands for, over all draws; null where it was picked, not drawn
    bonus_confirmed, bonus_rejected  how many bonus findings people judged so; a finding they disagree on is neither
    confidence_bin          which tenth the stated confidence is in, as in the calibration error
    findings                id, class, claimed type and place of each of the judge's findings; null without any
    """
    labels = inputs[HUMAN_LABELS.table].filter(pl.col("suite") == SUITE)
    labels = labels.join(results.select(ANSWER).unique(), on=ANSWER, how="semi")
    joined = results.join(_on_audits(labels), on=ANSWER, how="left", maintain_order="left")
    on_findings = _on_findings(labels, results, inputs[FINDINGS.table])
    for more in (on_findings, _findings(inputs[FINDINGS.table])):
        joined = joined.join(more, on=[*RESULT, "scorer_version"], how="left", maintain_order="left")
    every = pl.col("labelled_findings") == pl.col("total_findings")
    return joined.with_columns(
        pl.col("bonus_confirmed", "bonus_rejected").fill_null(0),
        human_valid_findings=pl.when(every).then("human_valid_findings"),
        confidence_bin=equal_width_bin(pl.col("confidence")).replace_strict(BINS, default=None, return_dtype=pl.String),
    ).drop("labelled_findings")


def _on_audits(labels: pl.LazyFrame) -> pl.LazyFrame:
    yes = (pl.col("answer") == YES).filter(pl.col("question") == "target_found").mean()
    answered = labels.group_by(ANSWER).agg(
        human_target_found=pl.when(yes != 0.5).then(yes > 0.5),
        drawn=pl.col("inclusion_probability").is_not_null().any(),
    )
    weight = pl.when("drawn").then("human_weight").alias("human_weight")
    return answered.join(represented(labels, ANSWER), on=ANSWER).with_columns(weight).drop("drawn")


def _findings(findings: pl.LazyFrame) -> pl.LazyFrame:
    fields = pl.struct("finding_id", "classification", "vulnerability_type_claimed", "location_claimed")
    return findings.group_by(*RESULT, "scorer_version").agg(findings=fields)


def _on_findings(labels: pl.LazyFrame, results: pl.LazyFrame, findings: pl.LazyFrame) -> pl.LazyFrame:
    shown = results.select(*RESULT, "model", "prompt_type", "judge").unique()
    answers = labels.filter(pl.col("finding_id").is_not_null(), pl.col("question") == "classification")
    known = answers.join(shown, on=[*ANSWER, "judge"])
    voted = known.group_by(*RESULT, "finding_id").agg(valid=pl.col("answer").is_in(VALID).mean())
    judged = findings.select(*RESULT, "scorer_version", "finding_id", bonus=pl.col("classification") == BONUS)
    matched = judged.join(voted, on=[*RESULT, "finding_id"])
    counts = {
        "labelled_findings": pl.col("valid") != 0.5,
        "human_valid_findings": pl.col("valid") > 0.5,
        "bonus_confirmed": pl.col("bonus") & (pl.col("valid") == 1),
        "bonus_rejected": pl.col("bonus") & (pl.col("valid") == 0),
    }
    return matched.group_by(*RESULT, "scorer_version").agg(
        [condition.sum().cast(pl.Int64).alias(name) for name, condition in counts.items()]
    )
