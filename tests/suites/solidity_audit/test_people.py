"""People: informative samples with known chances, sheets that come back as labels, judges corrected by them."""

import csv
import io
import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

from contracts.audit import audit
from contracts.compile.arrow import conform
from contracts.tables import CALLS, HUMAN_LABELS, SAMPLES
from core.errors import SourceError
from suites.base import Labels, sheet_lines, sheets
from suites.base.sheet_answers import read_labels
from suites.base.sheet_lines import NEEDED, columns, lines_to_fill_in
from suites.solidity_audit.contract import FINDINGS, RESULTS
from suites.solidity_audit.cross_row_metrics import cross_row_metrics
from suites.solidity_audit.options import DEFAULTS
from suites.solidity_audit.people.agreement import finding_precision
from suites.solidity_audit.people.questions import LABELLING, in_words
from suites.solidity_audit.truth import as_sample
from tests.suites.solidity_audit.support import (
    CONTRACT,
    SAFE,
    TRUTH,
    finding,
    frame_of,
    judgement,
    line,
    rows_of,
    target,
)

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
    return sheet_lines.candidates(LABELLING, results, labels)


def sheet_of(results: pl.DataFrame, findings: pl.DataFrame, size: int = 9) -> list[dict[str, Any]]:
    """The sheet of a run of one contract, vulnerable and patched, whose audits are in the ledger."""
    samples = [(as_sample("d", "s", CONTRACT, truth, "c", None), truth) for truth in (TRUTH, SAFE)]
    by_target = {truth.is_vulnerable: sample for sample, truth in samples}
    of_rows = results.select("sample_hash", "is_vulnerable").unique().iter_rows()
    known = [(name, CONTRACT, by_target[is_vulnerable].target) for name, is_vulnerable in of_rows]
    calls = results.select("prompt_hash", "replicate").unique().with_columns(response=pl.lit("the audit's words"))
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


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_sheet_tells_nothing_of_the_truth_where_people_must_be_blind(form: Any) -> None:
    told = [(f"bank-{n}/{twin}", truth) for n in range(3) for twin, truth in (("vulnerable", TRUTH), ("patched", SAFE))]
    lines = [
        line(truth=truth, judged=FOUND if truth is TRUTH else MISSED_NOTHING, sample_id=name) for name, truth in told
    ]
    results, findings = rows_of(lines)
    lines = sheet_of(results, findings, 6)
    text = write_sheet(lines, form)
    assert "bank" not in text
    assert "patched" not in text
    assert "cluster" not in text
    labels = read_sheet(text.replace('"target_found": null', '"target_found": true'), form, "ada", WHEN)
    assert not labels.refused
    assert {row["sample_hash"] for row in labels.rows} <= {*results["sample_hash"]}
    blind, told = lines[:6], lines[6:]
    for each in blind:
        assert (each["fill_in"], each["contract"], each["audit"]) == ("verdict", CONTRACT, "the audit's words")
        assert each["known_vulnerability"] is None
    assert {each["fill_in"] for each in told} == {"target_found, rcir, ava, fsv", "classification"}
    assert all(each["known_vulnerability"] for each in told)  # a safe contract's audit has neither target nor findings
    assert {each["sample_hash"] for each in told} == {*results.filter("is_vulnerable")["sample_hash"]}


def test_what_is_known_is_told_in_words_beside_the_questions_that_need_it() -> None:
    known = TRUTH.model_copy(update={"vulnerable_lines": [7], "root_cause": "it pays before it books", "fix": None})
    words = in_words(known)
    assert words.splitlines()[0] == f"type: {known.vulnerability_type}"
    assert "line 7" in words
    assert "root cause: it pays before it books" in words
    assert "fix" not in words
    assert in_words(SAFE) == "none is known: the contract counts as safe"


def test_audits_worth_a_look_weigh_more() -> None:
    results, _ = rows_of(lines_of_run())
    names = results.select("sample_hash", "sample_id").unique()
    weighed = candidates(results, NOBODY).join(names, on="sample_hash")
    weights = dict(weighed.select("sample_id", "weight").iter_rows())
    assert weights == {"s0": 1.0, "s1": 5.0, "s2": 4.0, "s3": 3.0}


def test_a_labelled_audit_is_not_drawn_again() -> None:
    results, findings = rows_of(lines_of_run())
    text = write_sheet(sheet_of(results, findings), "jsonl")
    filled = [json.loads(each) | {"target_found": "yes"} for each in text.splitlines()]
    labels = read_sheet("\n".join(map(json.dumps, filled)), "jsonl", "ann", WHEN)
    assert candidates(results, conform(labels.rows, HUMAN_LABELS)).is_empty()


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_filled_sheet_comes_back_as_labels(form: Any) -> None:
    results, findings = rows_of(lines_of_run())
    lines = sheet_of(results, findings)
    assert not any("classification" in each and each["classification"] for each in lines), "people are not led"
    for each in lines:
        if each["fill_in"] == "verdict":
            each |= {"verdict": "Vulnerable"}
        elif each["finding_id"] is None:
            each |= {"target_found": "yes", "rcir": "0,5"}
        else:
            each |= {"classification": "bonus_valid", "note": "-1 is wrong", "annotator": "bob"}
    labels = read_sheet(write_sheet(lines, form), form, "ann", WHEN)
    assert labels.refused == []
    assert audit(conform(labels.rows, HUMAN_LABELS), HUMAN_LABELS).bad.is_empty()
    assert {(row["annotator"], row["question"], row["answer"], row["score"], row["note"]) for row in labels.rows} == {
        ("ann", "verdict", "vulnerable", None, None),
        ("ann", "target_found", "yes", None, None),
        ("ann", "root_cause_score", None, 0.5, None),
        ("bob", "classification", "BONUS_VALID", None, "-1 is wrong"),
    }
    assert all(row["inclusion_probability"] == 1.0 for row in labels.rows)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x0b", "\x1c", "\x85", "\u2028", "\u2029"])
def test_a_claim_with_any_line_end_stays_one_line_of_the_sheet(form: Any, end: str) -> None:
    claimed = judgement([finding(location_claimed=f"withdraw(){end}line 7")], target())
    results, findings = rows_of([line(0, judged=claimed)])
    lines = sheet_of(results, findings, 1)
    filled = [each | {"note": "seen", "verdict": "vulnerable"} for each in lines]
    labels = read_sheet(write_sheet(filled, form), form, "ann", WHEN)
    assert labels.refused == []
    assert len(labels.rows) == 2
    assert len(lines) == 3


def test_a_sheet_runs_nothing_in_a_spreadsheet() -> None:
    results, findings = rows_of(lines_of_run())
    text = write_sheet(sheet_of(results, findings), "csv")
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert "'=HYPERLINK(evil)" in cells
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"verdict": "maybe"}, "vulnerable, safe"),
        ({"target_found": "dunno"}, "yes or no"),
        ({"classification": "NICE", "finding_id": 1}, "TARGET_MATCH"),
        ({"classification": "BONUS_VALID"}, "finding_id"),
        ({"rcir": "1.5"}, "0 to 1"),
        ({"rcir": "nan"}, "0 to 1"),
        ({"target_found": "yes", "prompt_hash": ""}, "prompt_hash"),
        ({"target_found": "yes", "replicate": "x"}, "replicate"),
    ],
)
def test_a_bad_line_is_refused_and_the_others_are_read(change: dict[str, Any], named: str) -> None:
    identity = {
        "sample_id": "s",
        "sample_hash": "a" * 64,
        "prompt_hash": "b" * 64,
        "model": "m",
        "prompt_type": "direct",
    }
    good = {**identity, "target_found": True}
    bad = {name: value for name, value in good.items() if name != "target_found"} | change
    text = "\n".join(map(json.dumps, [good, bad, {**good, "target_found": None}])) + "\nnot json\n[]\n"
    labels = read_sheet(text, "jsonl", "ann", WHEN)
    assert len(labels.rows) == 1
    assert labels.empty == 1
    assert named in labels.refused[0].reason
    assert [refusal.where for refusal in labels.refused] == ["line 2", "line 4", "line 5"]


def test_a_sheet_of_before_names_its_annotator_otherwise() -> None:
    identity = dict.fromkeys(("sample_id", "sample_hash", "prompt_hash", "model", "prompt_type"), "x")
    (label,) = read_sheet(json.dumps({**identity, "verdict": "safe", "labeller": "bob"}), "jsonl", "ann", WHEN).rows
    assert label["annotator"] == "bob"


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", 'prompt_hash,sample_hash,model\n"unfinished'])
def test_what_is_no_sheet_is_refused(text: str) -> None:
    with pytest.raises(SourceError):
        read_sheet(text, "csv", "ann", WHEN)


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


def test_judges_are_held_against_people_and_corrected_by_them() -> None:
    """The judge finds every target; people say that it is wrong about every fourth."""
    lines = [line(n, judged=FOUND) for n in range(80)] + [line(80 + n, SAFE, judgement(said=False)) for n in range(5)]
    results, _ = rows_of(lines)
    answers = {f"s{n}": n % 4 != 0 for n in range(40)}
    frame = frame_of(lines, people_say(results, answers))
    rows = {row["metric"]: row for row in cross_row_metrics(frame, DEFAULTS).iter_rows(named=True)}
    corrected = rows["target_detection_rate_corrected"]
    assert corrected["value"] == pytest.approx(0.75)
    assert corrected["n"] == 40
    assert corrected["ci_low"] < 0.75 < corrected["ci_high"] < 1.0
    assert rows["judge_human_agreement"]["value"] == pytest.approx(0.75)
    assert rows["judge_found_human_missed"]["value"] == 10
    assert rows["judge_missed_human_found"]["value"] == 0
    assert (rows["judge_human_kappa"]["value"], rows["judge_human_kappa"]["n"]) == (0.0, 40)
    assert (rows["finding_precision_corrected"]["value"], rows["finding_precision_corrected"]["n"]) == (None, 0)


def test_audits_without_findings_do_not_raise_the_corrected_precision() -> None:
    """Half of the audits find nothing; of the others' two findings people confirm 0 to 2, whatever the judge says."""
    rng = np.random.default_rng(20)
    total = np.tile([0, 2], 1000)
    judge, human = (np.where(total > 0, rng.integers(low, 3, len(total)), 0) for low in (1, 0))
    drawn = rng.random(len(total)) < 0.2
    rows = pl.DataFrame({"total_findings": total, "valid_findings": judge, "human_valid_findings": human})
    labelled = pl.Series(drawn) & (rows["total_findings"] > 0)  # where there is no finding there is none to label
    rows = rows.with_columns(
        pl.when(labelled).then("human_valid_findings").alias("human_valid_findings"),
        human_weight=pl.when(pl.Series(drawn)).then(5.0),
        sample_hash=pl.int_range(pl.len()).cast(pl.String),
        prompt_hash=pl.lit("p"),
        replicate=pl.lit(0),
    )
    corrected = finding_precision(rows)
    assert corrected is not None
    assert corrected.ci_low < human.sum() / total.sum() < corrected.ci_high
    assert corrected.labels == labelled.sum()


def test_picked_labels_correct_nothing() -> None:
    lines = [line(n, judged=FOUND) for n in range(40)]
    results, _ = rows_of(lines)
    frame = frame_of(lines, people_say(results, {f"s{n}": False for n in range(20)}, chance=None))
    rows = {row["metric"]: row for row in cross_row_metrics(frame, DEFAULTS).iter_rows(named=True)}
    assert rows["target_detection_rate_corrected"]["value"] is None
    assert rows["judge_human_agreement"]["value"] == 0.0


def test_without_labels_nothing_is_said_of_people() -> None:
    rows = cross_row_metrics(frame_of([line(0, judged=FOUND)]), DEFAULTS)
    assert not rows["metric"].str.contains("human|corrected").any()
