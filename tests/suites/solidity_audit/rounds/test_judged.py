"""A recorded judgement is read with the truth and the audit nearest to it, whatever its spelling."""

import json
from pathlib import Path

import polars as pl
import pytest

from contracts.tables import CALLS
from suites.solidity_audit.contract import FINDINGS, RESULTS
from tests.suites.solidity_audit.rounds.material import ROUND, TRUTH, imported, judgement, read, reasons


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
