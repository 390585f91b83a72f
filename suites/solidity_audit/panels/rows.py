"""A panel: the rows that follow where several judges saw the same audits.

The panel of a model is all its judges in the run. An answer is a judgement; judge errors and rows in quarantine are
none. Target found, verdict and the classes of findings are aggregated as declared (`panels.consensus`), where there are
two answers at least; a reasoning score is the median of the scores that were given, type and place are the majority's.
Findings are merged (`panels.findings`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

import polars as pl

from contracts.contract import Row
from contracts.tables.run_items import ITEM_KEY
from core.endpoints import UNKNOWN
from core.hashing import content_hash
from suites.base import Derived
from suites.solidity_audit.contract import FINDINGS, RESULTS
from suites.solidity_audit.options import MAJORITY, aggregation
from suites.solidity_audit.panels.consensus import AGGREGATIONS, FEWEST_ANSWERS, Audit, Word, majority
from suites.solidity_audit.panels.findings import NUMBERED, Decided, counts, merge
from suites.solidity_audit.panels.findings import rows as finding_rows
from suites.solidity_audit.score import UNJUDGED
from suites.solidity_audit.taxonomy import PARTIAL, SCORES, TARGET, count_column

PREFIX = "panel:"
SUBJECT = ("model", "prompt_type", "replicate", "sample_hash", "prompt_hash", "endpoint")


def panel_name(judges: Iterable[str], aggregated: str = MAJORITY) -> str:
    """Build the name under which a panel's rows are kept: `panel:` and its judges' names, sorted, joined by `+`.

    Where answers are not aggregated by majority, the way and a colon stand between the two.
    """
    return PREFIX + ("" if aggregated == MAJORITY else f"{aggregated}:") + "+".join(sorted(judges))


def derive(tables: Mapping[str, pl.DataFrame], options: Mapping[str, Any]) -> Derived:
    """Derive the panel rows of a run from its results and findings, with the manifest's entry for each."""
    results = tables[RESULTS.table]
    judged = tables[FINDINGS.table].select(*FOUND_BY, *_FINDING)
    of_judgement = judged.rows_by_key(FOUND_BY, named=True, include_key=True)
    columns = [*RESULTS.row.model_fields, "dataset_version"]
    singles = results.select(name for name in columns if name in results.columns)
    aggregated = aggregation(options)
    findings: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    items: list[dict[str, Any]] = []
    panels = panels_of(singles, lambda row: of_judgement.get(tuple(row[name] for name in FOUND_BY), ()))
    for judges, audits in panels.items():
        name = panel_name(judges, aggregated)
        pool = () if aggregated == MAJORITY else (_pool_hash(audits),)
        for audit, word in zip(audits, AGGREGATIONS[aggregated](audits), strict=True):
            row = panel_row(name, len(judges), audit, word) | {"judge_hash": _panel_hash(name, audit.members, pool)}
            rows.append(row)
            base = {name: row[name] for name in FINDINGS.row.model_fields if name in row and name not in _LANDED}
            findings += finding_rows(base, word.findings)
            items.append(_item(row, audit.members[0]))
    return Derived({RESULTS.table: rows, FINDINGS.table: findings}, items)


def _panel_hash(name: str, members: Sequence[Row], pool: Sequence[str]) -> str:
    """Hash what a panel's row follows from: its judges' calls, each with its endpoint where that is known."""
    known = sorted(row["judge_hash"] for row in members)
    endpoints = sorted(row["judge_endpoint"] for row in members if row["judge_endpoint"] != UNKNOWN)
    return content_hash([name, known, *pool, *endpoints])


def panels_of(results: pl.DataFrame, findings_of: Callable[[Row], Iterable[Row]]) -> dict[tuple[str, ...], list[Audit]]:
    """Group the audits of a run by panel (its judges); a model is left out where no two judges saw the same audit.

    Args:
        results: The run's result rows; those of panels are left out.
        findings_of: The findings of a result row, each with its judge.
    """
    singles = results.filter(~pl.col("judge").str.starts_with(PREFIX)).sort(*SUBJECT, "judge_hash")
    panels: dict[tuple[str, ...], list[Audit]] = {}
    for _, of_model in singles.group_by("model", maintain_order=True):
        groups = [group.to_dicts() for _, group in of_model.group_by(*SUBJECT, maintain_order=True)]
        if max(map(len, groups)) >= FEWEST_ANSWERS:
            audits = panels.setdefault(tuple(sorted(of_model["judge"].unique())), [])
            audits += (_audit(group, findings_of) for group in groups)
    return panels


def _audit(members: Sequence[Row], findings_of: Callable[[Row], Iterable[Row]]) -> Audit:
    listed = [finding for row in members if row["judge_error"] is None for finding in findings_of(row)]
    return Audit(members, merge(listed, numbered=members[0]["prompt_type"] == NUMBERED))


def _pool_hash(audits: Sequence[Audit]) -> str:
    """Hash every judgement of the panel: what an aggregation over all audits depends on."""
    return content_hash([[row[name] for name in _IN_POOL] for audit in audits for row in audit.members])


def panel_row(name: str, judges: int, audit: Audit, word: Word) -> dict[str, Any]:
    """Build the row of a panel of `judges` judges for an audit, from its members' rows and `word`; no `judge_hash`."""
    first, answers = audit.members[0], audit.answers
    (target_found, found_decided), (verdict, said_decided) = word.target_found, word.verdict
    correct = (verdict is not None and verdict == first["is_vulnerable"]) if said_decided else None
    confidence = median_of(row["confidence"] for row in answers) if said_decided else None
    is_lucky = bool(first["is_vulnerable"] and verdict is True and target_found is False)
    reasoning = {score: median_of(row[score] for row in answers) if target_found else None for score in SCORES}
    return {
        **{name: value for name, value in first.items() if name in _SAME},
        **UNJUDGED,
        "judge": name,
        "judge_endpoint": UNKNOWN,
        "reply_revision": sum(row["reply_revision"] for row in audit.members),
        "judge_error": None,
        "repaired": None,
        "mended": None,
        "panel_judges": judges,
        "panel_answers": len(answers),
        "panel_undecided": not (found_decided if first["is_vulnerable"] else said_decided),
        "said_vulnerable": verdict,
        "confidence": confidence,
        "detection_correct": correct,
        "calibration_error": None if confidence is None or correct is None else abs(confidence - correct),
        "target_found": target_found,
        "lucky_guess": is_lucky if found_decided and said_decided else None,
        **reasoning,
        **(_about_findings(first, answers, target_found, word.findings) if len(answers) >= FEWEST_ANSWERS else {}),
        **dict.fromkeys(("latency_ms", "input_tokens", "output_tokens", "cost_usd", "judge_cost_usd")),
        "audit_hash": None,
        "judgement_hash": content_hash([row["judgement_hash"] for row in audit.members]),
    }


def _about_findings(
    first: Row, answers: Sequence[Row], target_found: bool | None, findings: Sequence[Decided]
) -> dict[str, Any]:
    """Compute the columns that follow from the merged findings, and from the judges' answers on the target."""
    counted = counts(findings)
    credit = 1.0 if counted[count_column(TARGET)] else 0.5 if counted[count_column(PARTIAL)] else 0.0
    targets = [number for number, each in enumerate(findings, start=1) if each.classification == TARGET]
    columns = {
        **counted,
        "target_credit": credit if first["is_vulnerable"] else None,
        "target_match_id": targets[0] if targets and target_found else None,
        "type_match": majority([row["type_match"] for row in answers])[0],
    }
    if target_found:
        hits = {name: [row[name] for row in answers if row[name] is not None] for name in _HITS}
        columns |= {name: majority(words)[0] for name, words in hits.items()}
        columns["location_line_iou"] = median_of(row["location_line_iou"] for row in answers)
    return columns


_HITS = ("location_function_hit", "location_line_hit")
_LANDED = ("landed_by_run", "origin", "finding_id")
_IN_POOL = ("prompt_hash", "sample_hash", "model", "judge", "judge_hash", "replicate", "judgement_hash")
FOUND_BY = (*ITEM_KEY, "reply_revision")
_FINDING = ("finding_id", "classification", "vulnerability_type_claimed", "severity_claimed", "location_claimed")

_SAME = frozenset(
    (
        *("dataset", "sample_id", "sample_hash", "cluster", "model", "prompt_type", "replicate", "prompt_hash"),
        *(
            "endpoint",
            "scorer_version",
            "is_vulnerable",
            "vulnerability_type",
            "severity",
            "difficulty_tier",
            "subject_error",
        ),
    )
)


def median_of(values: Iterable[float | None]) -> float | None:
    """Compute the median of the known values; None where there is none."""
    known = [value for value in values if value is not None]
    return float(median(known)) if known else None


def _item(row: Row, member: Row) -> dict[str, Any]:
    names = ("dataset", "sample_id", "prompt_type", *ITEM_KEY)
    version = {"dataset_version": member["dataset_version"]} if "dataset_version" in member else {}
    return {name: row[name] for name in names} | version
