"""How viewer and reports show solidity_audit: an audit's verdict, its judge's words, each finding as it was classed."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

from evalake.core.files import tables_beside
from evalake.sdk import Viewing
from evalake.sdk.figures import Answers
from evalake.suites.solidity_audit.replies import lines_in, words_in
from evalake.suites.solidity_audit.score import ADDED_COLUMNS, MISTAKE, add_columns

_SHOWN: Final = tables_beside(__file__, "presentation.toml")
QUERIES = tuple(_SHOWN["queries"])
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


_called_vulnerable = pl.col("said_vulnerable")

VERDICT_WORD = pl.when(_called_vulnerable).then(pl.lit("vulnerable")).when(~_called_vulnerable).then(pl.lit("safe"))
"""The audit's verdict; null where it gave none."""

VIEWING = Viewing(
    verdict=VERDICT_WORD,
    correct=pl.col("detection_correct"),
    error=pl.coalesce("empty_kind", "subject_error", "judge_error"),
    flags={
        "lucky_guess": pl.col("lucky_guess"),
        "target_missed": pl.col("is_vulnerable") & ~pl.col("target_found"),
        "false_alarm": ~pl.col("is_vulnerable") & _called_vulnerable,
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
    added_columns=ADDED_COLUMNS,
)
