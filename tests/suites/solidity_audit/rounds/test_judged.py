"""A recorded judgement is read with the truth and the audit nearest to it, whatever its spelling."""

import json
from pathlib import Path

import polars as pl
import pytest

from contracts.tables import CALLS, QUARANTINE
from suites.solidity_audit.contract import FINDINGS, RESULTS
from tests.suites.solidity_audit.rounds.material import CLAIMS, ROUND, TRUTH, imported, judgement, read, reasons

pytestmark = pytest.mark.slow


def test_a_judgement_keeps_its_own_names_reasons_and_notes_and_comes_to_a_row(tmp_path: Path) -> None:
    lake, _ = imported(tmp_path, ROUND)
    row = lake.frame(RESULTS).collect().row(0, named=True)
    assert (row["model"], row["judge"], row["sample_id"]) == ("some_model_1.5", "Judge 3", "nc_box")
    assert (row["target_found"], row["rcir"], row["fsv"]) == (True, 0.75, None)
    assert (row["severity"], row["difficulty_tier"], row["cluster"]) == ("high", 2, "recorded/box")
    assert lake.frame(FINDINGS).collect().sort("finding_id")["reason"].to_list() == ["As the code says."] * 2
    replies = lake.frame(CALLS).filter(pl.col("model") == "Judge 3").collect()
    assert json.loads(replies["response"][0]) == judgement()
    assert (replies["latency_ms"][0], replies["cost_usd"][0], row["judge_cost_usd"]) == (12.5, 0.002, 0.002)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"error": "Failed to parse JSON response"}, "Failed to parse JSON response"),
        ({"error": {"message": "timed out", "code": 504}}, "timed out"),
        ({"error": True}, "the judgement failed"),
        ({"parse_error": "no object"}, "no object"),
        ({"success": False}, "the judgement failed"),
        ({"status": "failed"}, "the judgement failed (status failed)"),
    ],
)
def test_a_judgement_that_failed_is_no_judgement_whatever_its_file_has_beside(
    tmp_path: Path, said: dict[str, object], words: str
) -> None:
    beside = {"findings": [], "target_assessment": {"found": False, "type_match": "not_mentioned"}}
    file = next(name for name in ROUND if "judge_outputs" in str(name))
    lake, _ = imported(tmp_path, {**ROUND, file: {**judgement(), **beside, **said}})
    row = lake.frame(RESULTS).collect().row(0, named=True)
    assert row["judge_error"] == words
    assert (row["target_found"], row["said_vulnerable"], row["total_findings"]) == (None, None, None)


def test_an_empty_error_says_nothing(tmp_path: Path) -> None:
    file = next(name for name in ROUND if "judge_outputs" in str(name))
    lake, _ = imported(tmp_path, {**ROUND, file: {**judgement(), "error": "", "success": True}})
    assert lake.frame(RESULTS).collect()["judge_error"].to_list() == [None]


def test_numbers_and_truths_that_were_recorded_as_texts_are_read(tmp_path: Path) -> None:
    told = judgement()
    told["overall_verdict"] = {"said_vulnerable": "Yes", "confidence_expressed": "0.9"}
    told["findings"][0] |= {"finding_id": "1", "matches_target": "true"}
    told["target_assessment"] |= {"found": "true", "finding_id": "1", "root_cause_identification": "0.5"}
    truth = {
        "sample_id": "nc_box",
        "ground_truth": {
            "is_vulnerable": "true",
            "vulnerability_type": "reentrancy",
            "vulnerable_location": {"line_numbers": ["8", 9, "x"]},
        },
        "difficulty_tier": "2",
    }
    files = {name: told if "judge" in name else truth for name in ROUND}
    lake, _ = imported(tmp_path, files)
    row = lake.frame(RESULTS).collect().row(0, named=True)
    assert (row["said_vulnerable"], row["confidence"], row["rcir"], row["target_match_id"]) == (True, 0.9, 0.5, 1)
    assert (row["is_vulnerable"], row["difficulty_tier"]) == (True, 2)


@pytest.mark.parametrize("given", ["90%", "nan", "high", "1e999"])
def test_a_text_that_is_no_number_is_refused_by_name(tmp_path: Path, given: str) -> None:
    told = judgement(overall_verdict={"said_vulnerable": True, "confidence_expressed": given})
    folder = read(tmp_path, {name: told if "judge" in name else value for name, value in ROUND.items()})
    assert "overall_verdict.confidence_expressed" in reasons(folder)["j_nc_box_direct.json"]


def test_of_several_rounds_a_judgement_goes_with_the_nearest_truth(tmp_path: Path) -> None:
    other = {**TRUTH, "ground_truth": {**TRUTH["ground_truth"], "severity": "low"}}
    second = {"v2/m_2/judge_outputs/j_nc_box_direct.json": judgement(), "v2/ground_truth/nc_box.json": other}
    folder = read(tmp_path, {**{f"v1/{name}": value for name, value in ROUND.items()}, **second})
    assert {recorded.item.model: recorded.item.sample.severity for _, recorded in folder.lines} == {
        "some_model_1.5": "high",
        "m_2": "low",
    }
    assert not folder.skipped


AUDIT = "deep/judges/some_model_1.5/nc_box.json"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_file_with_a_number_that_is_not_finite_is_left_out_and_the_rest_is_read(
    tmp_path: Path, number: float
) -> None:
    other = {"deep/judges/m_2/judge_outputs/j_nc_box_direct.json": judgement(extra=number)}
    folder = read(tmp_path, {**ROUND, **other})
    assert [recorded.item.model for _, recorded in folder.lines] == ["some_model_1.5"]
    assert [(out.where, out.reason, out.payload is not None) for out in folder.skipped] == [
        (*other, "holds a number that is not finite, or is nested too deeply", True)
    ]


def test_an_audit_with_a_number_that_is_not_finite_is_named(tmp_path: Path) -> None:
    audit = {"prediction": {"confidence": float("nan"), "vulnerabilities": []}}
    told = judgement(findings=[{"finding_id": 1, "classification": "TARGET_MATCH"}])
    folder = read(tmp_path, {**ROUND, next(iter(ROUND)): told, AUDIT: audit})
    assert reasons(folder)["j_nc_box_direct.json"].startswith(f"the audit {AUDIT} holds a number that is not finite")


def test_half_a_surrogate_pair_becomes_storable(tmp_path: Path) -> None:
    files = {**ROUND, next(iter(ROUND)): judgement(notes="a\ud800"), AUDIT: {"prediction": {"verdict": "\udcff"}}}
    files[AUDIT]["prediction"]["vulnerabilities"] = [{"explanation": CLAIMS[1]}]
    ((_, recorded),) = read(tmp_path, files).lines
    assert [reply.text is not None and "?" in reply.text for reply in recorded.replies] == [True, True]


def test_names_that_are_not_utf_8_are_refused_and_the_rest_is_imported(tmp_path: Path) -> None:
    odd = {name.replace("some_model_1.5", "m\udcff"): value for name, value in ROUND.items() if "judge" in name}
    lake, _ = imported(tmp_path, {**ROUND, **odd, "deep/m/judge_outputs/\udcff.txt": "seen"})
    assert lake.frame(RESULTS).collect()["model"].to_list() == ["some_model_1.5"]
    assert lake.frame(QUARANTINE).collect()["reason"].to_list() == [
        "deep/judges/m?/judge_outputs/j_nc_box_direct.json: a name of a file or folder that is not UTF-8"
    ]
