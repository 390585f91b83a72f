"""Mistakes are wrong verdicts, lucky guesses and invented findings, told with the contract and the judge's words."""

from typing import Any

import polars as pl

from evalake.contracts.tables import SAMPLES
from evalake.sdk import Dataset
from evalake.suites.solidity_audit.contract import FINDINGS
from evalake.suites.solidity_audit.recorded import read_recorded
from evalake.suites.solidity_audit.score import ADDED_COLUMNS, MISTAKE, add_columns
from evalake.tasks.extract import sample_rows
from tests.unit.suites.solidity_audit.support import finding, judgement, line, rows_of, target

RIGHT = judgement([finding(reason="the flaw itself")], target())
LUCKY = judgement([finding(1, "MISCHARACTERIZED", reason="the check is there")], target(False))
INVENTED = judgement(
    [finding(1), finding(2, "HALLUCINATED", reason="no such function", location_claimed="burn()")],
    target(type_match_reason="the same name"),
)
MISSED = judgement([], target(False), said=False)


def told(*judged: dict[str, Any]) -> list[dict[str, Any]]:
    lines = [line(number, judged=each) for number, each in enumerate(judged)]
    results, findings = rows_of(lines)
    samples = [read_recorded(each).item.sample for each in lines]
    known = sample_rows(Dataset("recorded", tuple(samples)))
    tables = {FINDINGS.table: findings.lazy(), SAMPLES.table: pl.DataFrame(known).lazy()}
    answers = add_columns(results, tables)
    assert {*answers.columns} - {*results.columns} == {*ADDED_COLUMNS}
    return answers.sort("sample_id").to_dicts()


def test_a_right_verdict_for_no_right_reason_is_a_mistake_too() -> None:
    rows = told(RIGHT, LUCKY, INVENTED, MISSED)
    assert [row["mistake"] for row in rows] == [None, "lucky guess", "invented finding", "wrong verdict"]
    listed = pl.DataFrame(rows, infer_schema_length=None).filter(MISTAKE)["sample_id"].to_list()
    assert listed == ["s1", "s2", "s3"]


def test_the_judges_words_stand_beside_a_mistake() -> None:
    _, lucky, invented, missed = told(RIGHT, LUCKY, INVENTED, MISSED)
    assert lucky["judge_words"] == "1. MISCHARACTERIZED: the check is there"
    assert invented["judge_words"].split("\n") == [
        "1. TARGET_MATCH",
        "2. HALLUCINATED (burn()): no such function",
        "the same name",
    ]
    assert missed["judge_words"] is None
    assert missed["contract_excerpt"] is None, "the contract was not recorded"
