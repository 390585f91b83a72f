"""Comparisons as Markdown, for pull requests."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from evalake.reports.wording import UNKNOWN, lacking, markdown_text

LONGEST = 300
"""Characters of a name."""


def markdown_of(rows: pl.DataFrame, notes: Sequence[str]) -> str:
    """Write compared rows, adjusted by Holm, as a table for each pair of sides and judge, and notes below."""
    lines = []
    for (a, b, judge), own in rows.group_by("a", "b", "judge", maintain_order=True):
        judged = "" if judge is None else f", judged by {_text(judge)}"
        first, other = (lacking(own.select(name).max().item()) for name in ("missing_a", "missing_b"))
        lines += [
            f"### {_text(a)}{first} − {_text(b)}{other}{judged}",
            "",
            "| metric | A | B | A − B [95 %] | p (Holm) | units |",
        ]
        lines += ["|---|---:|---:|---:|---:|---:|", *(_line(row) for row in own.iter_rows(named=True)), ""]
    lines += [f"* {_text(note)}" for note in notes]
    return "\n".join(lines).rstrip() + "\n"


def _line(row: Mapping[str, Any]) -> str:
    part = "" if row["slice"] == "all" else f", {row['slice']} {row['slice_value']}"
    ends = "" if row["ci_low"] is None or row["ci_high"] is None else f" [{row['ci_low']:+.3g} {row['ci_high']:+.3g}]"
    p = UNKNOWN if row["p_holm"] is None else "<.001" if row["p_holm"] < 0.001 else f"{row['p_holm']:.3f}"
    numbers = [UNKNOWN if row[name] is None else f"{row[name]:.4g}" for name in ("value_a", "value_b")]
    difference = UNKNOWN if row["difference"] is None else f"{row['difference']:+.3g}{ends}"
    return f"| {_text(row['metric'] + part)} | {' | '.join((*numbers, difference, p, str(row['units'])))} |"


def _text(text: object) -> str:
    return markdown_text(text, LONGEST)
