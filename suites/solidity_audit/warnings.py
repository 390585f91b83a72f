"""What a reader of the metrics must know: judges that judge themselves, panels of one, judgements that failed."""

from collections.abc import Sequence

import polars as pl

from suites.solidity_audit.options import DAWID_SKENE
from suites.solidity_audit.panels.rows import PREFIX


def warnings(frame: pl.DataFrame) -> Sequence[str]:
    """Write one sentence for each thing that makes the numbers less reliable than they look."""
    rows = frame.filter(~pl.col("judge").str.starts_with(PREFIX))
    of_judges = [*_self_judging(rows), *_single_judge(rows), *_failed(rows), *_repaired(rows), *_contradictory(rows)]
    return [*of_judges, *_undecided(frame), *_two_judges(frame), *_unstated(rows)]


def _self_judging(rows: pl.DataFrame) -> list[str]:
    own = rows.filter(pl.col("model") == pl.col("judge"))["model"].unique().sort()
    return [f"self-judging: {model} judges its own audits, which favours it" for model in own]


def _single_judge(rows: pl.DataFrame) -> list[str]:
    judges = rows["judge"].unique().sort()
    if len(judges) != 1:
        return []
    return [f"a panel of one judge: all judgements are {judges[0]}'s, and no agreement can be measured (--judges a,b)"]


def _failed(rows: pl.DataFrame) -> list[str]:
    given = rows.filter(pl.col("subject_error").is_null())
    failed = given.group_by("judge").agg(rate=pl.col("judge_error").is_not_null().mean()).sort("judge")
    return [
        f"{judge}: {rate:.1%} of its judgements failed; their audits are in no rate"
        for judge, rate in failed.filter(pl.col("rate") > 0.05).iter_rows()
    ]


def _repaired(rows: pl.DataFrame) -> list[str]:
    return [
        f"{judge}: {taken:,} of {judged:,} judgements took a second attempt, for the first could not be used"
        for judge, taken, judged in _counted(rows, pl.col("repaired"))
    ]


def _contradictory(rows: pl.DataFrame) -> list[str]:
    return [
        f"{judge}: {flagged:,} of {judged:,} imported judgements contradict themselves (column contradictions); they "
        "count as they stand"
        for judge, flagged, judged in _counted(rows, pl.col("contradictions").is_not_null())
    ]


def _counted(rows: pl.DataFrame, flag: pl.Expr) -> list[tuple[str, int, int]]:
    """Count each judge's judgements that have the flag, and all of them; judges without a flagged one are left out."""
    judged = rows.filter(pl.col("subject_error").is_null(), pl.col("judgement_hash").is_not_null())
    of_judge = judged.group_by("judge").agg(flag.sum(), judged=pl.len())
    return [(judge, count, judged) for judge, count, judged in of_judge.sort("judge").iter_rows() if count]


def _undecided(frame: pl.DataFrame) -> list[str]:
    panels = frame.group_by("judge").agg(rate=pl.col("panel_undecided").mean()).drop_nulls().sort("judge")
    return [
        f"{panel}: undecided on {rate:.1%} of the audits, which are in no rate"
        for panel, rate in panels.filter(pl.col("rate") > 0).iter_rows()
    ]


def _two_judges(frame: pl.DataFrame) -> list[str]:
    of_two = frame.filter(pl.col("panel_judges") == 2, pl.col("judge").str.starts_with(f"{PREFIX}{DAWID_SKENE}:"))
    return [
        f"{panel}: the words of two judges do not tell which of them errs; ask a third, or take the majority"
        for panel in of_two["judge"].unique().sort()
    ]


def _unstated(rows: pl.DataFrame) -> list[str]:
    judged = rows.filter(pl.col("detection_correct").is_not_null())
    without = judged.group_by("model").agg(known=pl.col("confidence").count()).filter(pl.col("known") == 0)
    return [
        f"{model} stated no confidence: calibration in its sui is not measured but set by sui_calibration_unstated"
        for model in without["model"].sort()
    ]
