"""What a report lists as mistakes: wrong verdicts, lucky guesses and invented findings, with the judge's words."""

import json
from collections.abc import Mapping
from textwrap import dedent
from typing import Any

import polars as pl

from contracts.tables import SAMPLES
from suites.solidity_audit.contract import FINDINGS, KEY, REASONS

ADDED_COLUMNS = ("mistake", "contract_excerpt", "judge_words")

LINES = 6
"""Lines of a contract that are shown, from the first that is known to be vulnerable."""

_KINDS = {
    "wrong verdict": ~pl.col("detection_correct"),
    "lucky guess": pl.col("lucky_guess"),
    "invented finding": pl.col("hallucinated_findings") > 0,
}
MISTAKE = pl.any_horizontal(*(kind.fill_null(value=False) for kind in _KINDS.values()))


def add_columns(results: pl.DataFrame, tables: Mapping[str, pl.LazyFrame]) -> pl.DataFrame:
    """Add to the results what a mistake is, where in the contract the flaw is, and what the judge said.

    mistake           the kinds of mistake in the row; null where there is none
    contract_excerpt  the contract's lines from the first vulnerable one, or from its beginning; null where unknown
    judge_words       each finding's class and the judge's reason for it, then its reasons about the target
    """
    kinds = [pl.when(kind).then(pl.lit(name)) for name, kind in _KINDS.items()]
    mistake = pl.when(MISTAKE).then(pl.concat_str(*kinds, separator=", ", ignore_nulls=True))
    with_kinds = results.with_columns(mistake=mistake)
    wrong = with_kinds.filter(MISTAKE)
    contracts = _excerpts(tables[SAMPLES.table], wrong["sample_hash"].unique().to_list())
    findings = _findings(tables[FINDINGS.table], wrong)
    reasons = [pl.col(name) for name in REASONS]
    return (
        with_kinds.join(contracts, on="sample_hash", how="left", maintain_order="left")
        .join(findings, on=KEY, how="left", maintain_order="left")
        .with_columns(judge_words=pl.concat_str("finding_words", *reasons, separator="\n", ignore_nulls=True))
        .with_columns(judge_words=pl.when(pl.col("judge_words") != "").then("judge_words"))
        .drop("finding_words")
    )


def _findings(findings: pl.LazyFrame, wrong: pl.DataFrame) -> pl.DataFrame:
    """Join what was said of the findings of each judgement that is in `wrong` into one text per result."""
    claimed = pl.concat_str("vulnerability_type_claimed", "location_claimed", separator=" in ", ignore_nulls=True)
    words = pl.concat_str(
        pl.format("{}. {}", "finding_id", "classification"),
        pl.when(claimed != "").then(pl.format(" ({})", claimed)),
        pl.format(": {}", "reason"),
        ignore_nulls=True,
    )
    ours = findings.join(wrong.lazy().select(KEY), on=KEY, how="semi").sort("finding_id")
    return ours.group_by(KEY, maintain_order=True).agg(finding_words=words.str.join("\n")).collect()


def _excerpts(samples: pl.LazyFrame, hashes: list[str]) -> pl.DataFrame:
    """Cut out the lines at each contract's flaw; samples that were recorded without a contract have none."""
    known = samples.filter(pl.col("sample_hash").is_in(hashes)).unique("sample_hash")
    excerpt = pl.struct("input", "target").map_elements(_excerpt, pl.String)
    return known.select("sample_hash", contract_excerpt=excerpt).collect()


def _excerpt(sample: Mapping[str, Any]) -> str | None:
    if not sample["input"].strip():
        return None
    vulnerable = json.loads(sample["target"] or "{}").get("vulnerable_lines") or [1]
    first = max(min(vulnerable) - 2, 0)
    return dedent("\n".join(sample["input"].split("\n")[first : first + LINES]))
