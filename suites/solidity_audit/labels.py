"""How people's labels join the results: BONUS_VALID findings that a person confirmed or rejected."""

from collections.abc import Mapping

import polars as pl

from contracts.human_labels import HUMAN_LABELS
from suites.solidity_audit.contract import FINDINGS
from suites.solidity_audit.taxonomy import BONUS, VALID
from suites.solidity_audit.truth import SUITE

RESULT = ("prompt_hash", "judge_hash", "sample_hash", "replicate")

INPUTS = (FINDINGS, HUMAN_LABELS)


def assemble(results: pl.LazyFrame, inputs: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
    """The results with `bonus_confirmed` and `bonus_rejected`: how many of their bonus findings people judged so.

    Where people disagree on a finding, it is neither.
    """
    labels = inputs[HUMAN_LABELS.table].filter(
        pl.col("suite") == SUITE, pl.col("finding_id").is_not_null(), pl.col("classification").is_not_null()
    )
    voted = labels.group_by(*RESULT, "finding_id").agg(
        confirmed=pl.col("classification").is_in(VALID).all(), rejected=(~pl.col("classification").is_in(VALID)).all()
    )
    bonus = inputs[FINDINGS.table].filter(pl.col("classification") == BONUS)
    bonus = bonus.select(*RESULT, "scorer_version", "finding_id").join(voted, on=[*RESULT, "finding_id"])
    counted = bonus.group_by(*RESULT, "scorer_version").agg(
        bonus_confirmed=pl.col("confirmed").sum().cast(pl.Int64), bonus_rejected=pl.col("rejected").sum().cast(pl.Int64)
    )
    joined = results.join(counted, on=[*RESULT, "scorer_version"], how="left", maintain_order="left")
    return joined.with_columns(pl.col("bonus_confirmed", "bonus_rejected").fill_null(0))
