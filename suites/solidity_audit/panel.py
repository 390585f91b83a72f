"""A panel: the rows that follow where several judges saw the same audits, by majority and median.

The panel of a model is all its judges in the run. An answer is a judgement; judge errors and rows in quarantine are
none. Target found and verdict are each the strict majority of the answers, of which there must be two; a reasoning
score is the median of the scores that were given. Findings of several judges are not merged: a panel counts none.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

import polars as pl

from contracts.hashing import content_hash
from suites.base import Derived
from suites.solidity_audit.contract import RESULTS
from suites.solidity_audit.score import UNJUDGED

PREFIX = "panel:"
FEWEST_ANSWERS = 2
SUBJECT = ("model", "prompt_type", "replicate", "sample_hash", "prompt_hash")
SCORES = ("rcir", "ava", "fsv")

Row = Mapping[str, Any]


def panel_name(judges: Iterable[str]) -> str:
    """The name under which a panel's rows are kept: `panel:` and its judges' names, sorted, joined by `+`."""
    return PREFIX + "+".join(sorted(judges))


def derive(results: pl.DataFrame) -> Derived:
    """The panel rows of a run, from its result rows, and what the manifest says of each."""
    rows: list[dict[str, Any]] = []
    items: list[dict[str, Any]] = []
    columns = [name for name in RESULTS.row.model_fields if name in results.columns]
    singles = results.filter(~pl.col("judge").str.starts_with(PREFIX)).select(
        *columns, *[name for name in ("dataset_version",) if name in results.columns]
    )
    for _, of_model in singles.sort(*SUBJECT, "judge_hash").group_by("model", maintain_order=True):
        judges = of_model["judge"].unique().to_list()
        groups = [group.to_dicts() for _, group in of_model.group_by(*SUBJECT, maintain_order=True)]
        if max(map(len, groups)) < FEWEST_ANSWERS:
            continue  # no audit was seen by two judges
        for group in groups:
            row = panel_row(judges, group)
            rows.append(row)
            items.append(_item(row, group[0]))
    return Derived({RESULTS.table: rows}, items)


def panel_row(judges: Sequence[str], members: Sequence[Row]) -> dict[str, Any]:
    """The row of a panel of `judges` for one audit, from the rows that its members have."""
    first, name = members[0], panel_name(judges)
    answers = [row for row in members if row["judge_error"] is None]
    found, found_decided = majority([row["target_found"] for row in answers])
    said, said_decided = majority([row["said_vulnerable"] for row in answers])
    correct = (said is not None and said == first["is_vulnerable"]) if said_decided else None
    confidence = median_of(row["confidence"] for row in answers) if said_decided else None
    is_lucky = bool(first["is_vulnerable"] and said is True and found is False)
    reasoning = {score: median_of(row[score] for row in answers) if found else None for score in SCORES}
    return {
        **{name: value for name, value in first.items() if name in _SAME},
        **UNJUDGED,
        "judge": name,
        "judge_hash": content_hash([name, sorted(row["judge_hash"] for row in members)]),
        "judge_error": None,
        "repaired": None,
        "panel_judges": len(judges),
        "panel_answers": len(answers),
        "panel_undecided": not (found_decided if first["is_vulnerable"] else said_decided),
        "said_vulnerable": said,
        "confidence": confidence,
        "detection_correct": correct,
        "calibration_error": None if confidence is None or correct is None else abs(confidence - correct),
        "target_found": found,
        "lucky_guess": is_lucky if found_decided and said_decided else None,
        **reasoning,
        **dict.fromkeys(("latency_ms", "input_tokens", "output_tokens", "cost_usd", "judge_cost_usd")),
        "audit_hash": None,
        "judgement_hash": content_hash([row["judgement_hash"] for row in members]),
    }


_SAME = frozenset(
    (
        *("dataset", "sample_id", "sample_hash", "cluster", "model", "prompt_type", "replicate", "prompt_hash"),
        *("scorer_version", "is_vulnerable", "vulnerability_type", "severity", "difficulty_tier"),
    )
)


def majority(answers: Sequence[bool | None]) -> tuple[bool | None, bool]:
    """What more than half of at least two answers say, and whether there is such a thing. None is an answer, too."""
    if len(answers) < FEWEST_ANSWERS:
        return None, False
    value, times = Counter(answers).most_common(1)[0]
    return (value, True) if 2 * times > len(answers) else (None, False)


def median_of(values: Iterable[float | None]) -> float | None:
    """The median of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return float(median(known)) if known else None


def _item(row: Row, member: Row) -> dict[str, Any]:
    names = ("dataset", "sample_id", "sample_hash", "model", "judge", "prompt_type", "replicate", "prompt_hash")
    version = {"dataset_version": member["dataset_version"]} if "dataset_version" in member else {}
    return {name: row[name] for name in (*names, "judge_hash")} | version
