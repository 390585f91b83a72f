"""Recorded results: lines are read or refused by name, and real ones come to the values recorded beside them."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.admin.import_results import import_recorded
from evalake.contracts.tables import QUARANTINE
from evalake.core.errors import SourceError
from evalake.storage.lake import Lake
from evalake.storage.snapshots import find_snapshot, read_metrics
from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from evalake.suites.solidity_audit.recorded import read_recorded
from evalake.suites.solidity_audit.suite import SUITE
from tests.unit.suites.solidity_audit.support import SAFE, finding, judgement, line, target

pytestmark = pytest.mark.slow

GOOD = line(0, judged=judgement([finding()], target()))


def test_a_line_is_two_replies_of_one_conversation() -> None:
    read = read_recorded({**GOOD, "prediction": {"verdict": "vulnerable", "confidence": 0.9}, "expected_x": object()})
    assert (read.item.model, read.item.judge) == ("subject", "judge")
    subject, judge = read.prompt_hashes
    other = read_recorded({**GOOD, "judge": "another"})
    assert other.prompt_hashes[0] == subject, "judges of one audit share the audit"
    assert other.prompt_hashes[1] != judge
    assert other.item.sample.sample_hash == read.item.sample.sample_hash
    assert [reply.text is None for reply in read.replies] == [False, False]


def test_where_there_is_a_judgement_no_error_need_be_named() -> None:
    assert read_recorded({key: value for key, value in GOOD.items() if key != "judge_error"}) == read_recorded(GOOD)


def test_a_judge_error_is_no_judgement() -> None:
    read = read_recorded(line(0))
    assert (read.replies[1].text, read.replies[1].error_kind) == (None, "unparseable judgement")


@pytest.mark.parametrize("error", ["no JSON in the reply", {"message": "no JSON in the reply"}])
def test_a_judgement_that_says_it_failed_is_none_whatever_its_other_fields_say(error: object) -> None:
    failed = {"error": error, "findings": [], "target_assessment": {"found": False}}
    read = read_recorded({**GOOD, "judgement": failed, "judge_error": None})
    assert (read.replies[1].text, read.replies[1].error_kind) == (None, "no JSON in the reply")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"surprise": 1, "another": 2}, "unknown field 'surprise'; unknown field 'another'"),
        ({"judge_error": "both"}, "exactly when"),
        ({"judgement": None}, "exactly when"),
        ({"model": " "}, "model: blank"),
        ({"sample_id": "a\x00b"}, "sample_id"),
        ({"judge": "panel:a+b"}, "names a panel"),
        ({"replicate": -1}, "replicate"),
        ({"replicate": "0"}, "replicate"),
        ({"ground_truth": {"is_vulnerable": True, "surprise": 1}}, "surprise"),
        ({"ground_truth": {"is_vulnerable": "yes"}}, "is_vulnerable"),
        ({"ground_truth": {"is_vulnerable": True, "vulnerability_type": "a\x00b"}}, "cannot be stored"),
        ({"judgement": judgement([finding(1, "NICE")], target())}, "NICE"),
        ({"judgement": judgement([finding()], target(type_match="sort of"))}, "sort of"),
        ({"judgement": judgement([finding(1, surprise=1)], target())}, "surprise"),
        ({"judgement": judgement([finding()])}, "target_assessment"),
        ({"judgement": {"findings": []}}, "overall_verdict"),
        ({"judgement": GOOD["judgement"] | {"summary": {"x": float("nan")}}}, "holds a number that is not finite"),
    ],
)
def test_a_bad_line_is_refused_by_name(change: dict[str, Any], named: str) -> None:
    with pytest.raises(SourceError, match=named):
        read_recorded({**GOOD, **change})


def test_half_a_surrogate_pair_in_an_audit_or_a_summary_becomes_storable() -> None:
    summary = GOOD["judgement"] | {"summary": {"x": "a\ud800"}}
    replies = read_recorded({**GOOD, "prediction": {"verdict": "\udcff"}, "judgement": summary}).replies
    assert [reply.text is not None and "?" in reply.text for reply in replies] == [True, True]


def test_of_a_safe_contract_no_assessment_is_needed() -> None:
    assert read_recorded(line(0, SAFE, judgement(said=False))).item.sample.label == "safe"


def test_of_a_safe_contract_no_target_can_have_been_matched() -> None:
    matched = judgement([finding(1, "TARGET_MATCH")])
    with pytest.raises(SourceError, match="TARGET_MATCH, but there is no target_assessment"):
        read_recorded(line(0, SAFE, matched))


def test_ground_truth_is_taken_as_it_was_recorded(tmp_path: Path) -> None:
    """A type nobody told leaves no judgement out; a patched twin may have the type it was cured of."""
    untold = {"is_vulnerable": True, "vulnerability_type": None, "severity": "", "vulnerable_functions": [""]}
    cured = {"is_vulnerable": False, "vulnerability_type": "reentrancy", "severity": "high", "vulnerable_lines": [3]}
    twins = [line(0, judged=judgement([finding()], target())), line(1, judged=judgement(said=False, confidence=None))]
    lake, run_id = imported(tmp_path, [{**twins[0], "ground_truth": untold}, {**twins[1], "ground_truth": cured}])
    metrics = read_metrics(lake, find_snapshot(lake, run_id=run_id)["snapshot_id"]).filter(
        pl.col("metric") == "accuracy"
    )
    told = {(row["slice"], row["slice_value"]): row["n"] for row in metrics.iter_rows(named=True)}
    assert told["all", ""] == 2
    assert (told["vulnerability_type", "reentrancy"], told["severity", "high"]) == (1, 1)


@given(st.dictionaries(st.sampled_from([*GOOD]), st.none() | st.integers() | st.text() | st.lists(st.none())))
def test_no_line_makes_reading_fail_otherwise(changes: dict[str, Any]) -> None:
    line = {**GOOD, **changes}
    with suppress(SourceError):
        item = read_recorded(line).item
        assert (item.sample.sample_id, item.model) == (line["sample_id"], line["model"])


def imported(tmp_path: Path, lines: list[dict[str, Any]]) -> tuple[Lake, str]:
    file = tmp_path / "judgements.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
    lake = Lake(str(tmp_path / "lake"))
    return lake, import_recorded(lake, SUITE, [file])


def test_contradictions_go_to_quarantine_and_the_rest_goes_on(tmp_path: Path) -> None:
    contradiction = judgement([finding(1), finding(1)], target())
    lake, run_id = imported(tmp_path, [GOOD, line(1, judged=contradiction), line(2), {**GOOD, "extra": 1}])
    refused = lake.frame(QUARANTINE).collect()["rules"].to_list()
    assert sorted(refused) == [["finding_ids_differ"], ["recorded_line"]]
    findings = lake.frame(FINDINGS).collect()
    assert findings["finding_id"].to_list() == [1], "only those of the good judgement"
    metrics = read_metrics(lake, find_snapshot(lake, run_id=run_id)["snapshot_id"])
    of_all = metrics.filter(pl.col("slice") == "all")
    values = {row["metric"]: (row["value"], row["n"]) for row in of_all.iter_rows(named=True)}
    assert values["target_detection_rate"] == (1.0, 1)
    assert values["judge_error_rate"] == (0.5, 2)


FURTHER = {
    "finding_id is null": judgement([finding()], target(number=None)),
    "but its matches_target is false": judgement([finding(matches_target=False)], target()),
}


def test_further_contradictions_land_flagged_and_are_counted(tmp_path: Path) -> None:
    lines = [line(number, judged=judged) for number, judged in enumerate(FURTHER.values(), start=1)]
    lake, run_id = imported(tmp_path, [GOOD, *lines])
    assert lake.frame(QUARANTINE).collect().is_empty()
    rows = lake.frame(RESULTS).sort("sample_id").collect()
    first, *flagged = rows["contradictions"].to_list()
    assert first is None
    assert all(words in said for words, said in zip(FURTHER, flagged, strict=True))
    assert "judge: 2 of 3 imported judgements contradict themselves" in str(find_snapshot(lake, run_id=run_id))


FILES = (
    "solidity_audit/claude_opus_4.5__direct_n58",
    "solidity_audit/gpt-5.2__three_prompts_n15",
    "solidity_audit/llama_3.1_405b__seed_n5",
    "solidity_audit_panel/ds_tier1",
)


@pytest.mark.real_data
@pytest.mark.parametrize("name", FILES)
def test_real_judgements_come_to_the_recorded_values(real_data: Path, tmp_path: Path, name: str) -> None:
    """Values and standard errors to 1e-9, denominators exactly."""
    folder = real_data.parent / "oracles"
    lake = Lake(str(tmp_path / "lake"))
    run_id = import_recorded(lake, SUITE, [folder / f"{name}.judgements.jsonl"])
    metrics = read_metrics(lake, find_snapshot(lake, run_id=run_id)["snapshot_id"])
    key = ("model", "judge", "slice", "slice_value", "metric")
    found = {tuple(row[k] for k in key): row for row in metrics.iter_rows(named=True)}
    compared = 0
    for text in (folder / f"{name}.expected_metrics.jsonl").read_text(encoding="utf-8").splitlines():
        expected = json.loads(text)
        if expected["metric"] == "rows_quarantined":
            continue
        row = found[tuple(expected[k] for k in key)]
        for number in ("value", "se"):
            if expected[number] is not None:
                assert row[number] == pytest.approx(expected[number], rel=1e-9, abs=1e-9), expected
        assert (row["value"] is None) == (expected["value"] is None), expected
        assert expected["n"] is None or row["n"] == expected["n"], expected
        compared += 1
    assert compared >= 77
