"""Judged audits as people are asked about them, the sheets that they fill in, and the labels that these become."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import polars as pl

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS, HUMAN_LABELS, SAMPLES
from evalake.contracts.tables.ledger import CALL_KEY
from evalake.core.hashing import content_hash
from evalake.sdk import Labels, sheets
from evalake.sdk.sheets import NEEDED, columns, lines_to_fill_in, read_labels
from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from evalake.suites.solidity_audit.people import LABELLING
from evalake.suites.solidity_audit.truth import SUITE, as_sample
from tests.unit.suites.solidity_audit.support import CONTRACT, SAFE, TRUTH, finding, judgement, line, target

WHEN = datetime(2025, 5, 1, tzinfo=UTC)

NOBODY = conform([], HUMAN_LABELS)

FOUND = judgement([finding(location_claimed="=HYPERLINK(evil)")], target())

MISSED_NOTHING = judgement([], None, said=False)

MISSED = judgement([], target(found=False), said=False, confidence=0.5)


def write_sheet(lines: Any, form: Any) -> str:
    return sheets.write_sheet(lines, columns(LABELLING), form)


def read_sheet(text: str, form: Any, annotator: str, when: datetime) -> Labels:
    return read_labels(LABELLING, sheets.read_sheet(text, form, NEEDED), annotator, when)


def candidates(results: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    return sheets.candidates(LABELLING, results, labels)


def sheet_of(results: pl.DataFrame, findings: pl.DataFrame, size: int = 9) -> list[dict[str, Any]]:
    """The sheet of a run of one contract, vulnerable and patched, whose audits are in the ledger."""
    samples = [(as_sample("d", "s", CONTRACT, truth, "c", None), truth) for truth in (TRUTH, SAFE)]
    by_target = {truth.is_vulnerable: sample for sample, truth in samples}
    of_rows = results.select("sample_hash", "is_vulnerable").unique().iter_rows()
    known = [(name, CONTRACT, by_target[is_vulnerable].target) for name, is_vulnerable in of_rows]
    calls = results.select(CALL_KEY).unique().with_columns(response=pl.lit("the audit's words"))
    tables = {
        RESULTS.table: results,
        FINDINGS.table: findings,
        HUMAN_LABELS.table: NOBODY,
        SAMPLES.table: pl.DataFrame(known, schema=["sample_hash", "input", "target"], orient="row"),
        CALLS.table: calls,
    }
    return [dict(each) for each in lines_to_fill_in(LABELLING, results, tables, size, 1)]


def lines_of_run() -> list[dict[str, Any]]:
    """Five audits by two judges: the judges differ on s1, s2 is confidently wrong, s3 has a bonus."""
    told: list[tuple[int, Any, Any]] = [
        (0, FOUND, FOUND),
        (1, FOUND, MISSED),
        (2, judgement([], target(found=False), said=False, confidence=0.95), MISSED),
        (3, judgement([finding(), finding(2, "BONUS_VALID")], target()), FOUND),
        (4, None, None),
    ]
    return [line(n, judged=each, judge=judge) for n, a, b in told for judge, each in (("a", a), ("b", b))]


def people_say(frame: pl.DataFrame, answers: dict[str, bool], chance: float | None = 0.5) -> pl.DataFrame:
    """Labels on target found of every audit, by sample."""
    rows = []
    for row in frame.unique("sample_id", maintain_order=True).iter_rows(named=True):
        if row["sample_id"] in answers:
            named = ("sample_id", "sample_hash", "model", "prompt_type", "prompt_hash", "replicate")
            identity = {name: row[name] for name in named}
            told = identity | {"target_found": answers[row["sample_id"]], "inclusion_probability": chance}
            rows.append(json.dumps(told))
    return conform(read_sheet("\n".join(rows), "jsonl", "ann", WHEN).rows, HUMAN_LABELS)


def word(row: Mapping[str, Any], question: str, said: str | float, who: str = "ann", **more: Any) -> dict[str, Any]:
    """A person's answer about the audit of a result row; with `judge` and `finding_id`, about one of its findings."""
    about = {name: row[name] for name in ("sample_id", "sample_hash", "model", "prompt_type", "replicate")}
    answer = {"score": said} if isinstance(said, float) else {"answer": said}
    label_id = content_hash([*about.values(), question, who, more.get("judge"), more.get("finding_id")])
    given = {"label_id": label_id, "suite": SUITE, "question": question, "annotator": who, "labelled_at": WHEN}
    return {**dict.fromkeys(HUMAN_LABELS.column), **about, **given, **answer, **more}


def on_finding(row: Mapping[str, Any], number: int, classification: str, who: str = "ann") -> dict[str, Any]:
    """A person's class for a finding of a result row, as its judge numbered it."""
    return word(row, "classification", classification, who, judge=row["judge"], finding_id=number)
