"""Today's layout of the original: judgements, rules and tools are read, its summaries are compared."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.admin.import_results import import_recorded
from evalake.contracts.tables import RUNS
from evalake.core.configuration import Configuration
from evalake.core.errors import SourceError
from evalake.sdk import Recorded, RecordedFolder
from evalake.storage.lake import Lake
from evalake.storage.snapshots import find_snapshot, read_metrics
from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from evalake.suites.solidity_audit.sources.round_files import MISPLACED
from evalake.suites.solidity_audit.sources.rounds import read_folder
from evalake.suites.solidity_audit.suite import SUITE
from tests.cases import cases_beside
from tests.unit.suites.solidity_audit.sources.rounds_material import imported, read, reasons, write

CASES = cases_beside(__file__, "todays.json")

JUDGED = "results/detection_evaluation/llm-judge/one-judge/model-5.2/ds/tier1"
RULES = "results/detection_evaluation/rule-based/traditional/finder/ds/tier1"
TRUTH = {"is_vulnerable": True, "vulnerability_type": "reentrancy", "vulnerable_functions": ["withdraw"]}
AUDIT = CASES["judgement"]


def judgement(classification: str = "TARGET_MATCH", *, partial: bool = False, **more: Any) -> dict[str, Any]:
    """A judgement in the words of today's rounds: its finding has the number 0."""
    found = classification == "TARGET_MATCH"
    score = {"score": 0.5, "reasoning": "Half of it."} if found or partial else None
    return {
        "sample_id": "box",
        "prompt_type": "direct",
        "judge_model": "one-judge",
        "overall_verdict": {"said_vulnerable": True, "confidence_expressed": 0.9},
        "findings": [{"finding_id": 0, "vulnerability_type_claimed": "Reentrancy", "classification": classification}],
        "target_assessment": {
            "complete_found": found,
            "partial_found": partial,
            "finding_id": 0 if found or partial else None,
            "root_cause_match": found,
            "location_match": found,
            "type_match": "exact" if found else None,
            "root_cause_identification": score,
            "attack_vector_validity": score,
            "fix_suggestion_validity": score,
        },
        "judge_latency_ms": 4.0,
        **more,
    }


ROUND: dict[str, Any] = {
    "samples/ds/tier1/ground_truth/box.json": TRUTH,
    "samples/ds/tier1/metadata/box.json": {"id": "box", "original_id": "old_box", "difficulty_tier": 2},
    "results/detection/llm/model-5.2/ds/tier1/d_box.json": AUDIT,
    f"{JUDGED}/j_box.json": judgement(),
}


def _only(folder: RecordedFolder) -> Recorded:
    ((_, recorded),) = folder.lines
    return recorded


def test_a_round_of_today_is_read_by_its_folders(tmp_path: Path) -> None:
    recorded = _only(read(tmp_path, ROUND))
    item = recorded.item
    assert (item.judge, item.model, item.prompt_type, item.sample.sample_id) == (
        *("one-judge", "model-5.2", "direct", "box"),
    )
    assert (item.sample.cluster, item.sample.difficulty) == ("old_box", "2")
    audit, judged = recorded.replies
    assert (audit.input_tokens, audit.cost_usd, judged.latency_ms) == (20, 0.25, 4.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "found", "row", "stated"),
    [
        (judgement(), True, "TARGET_MATCH", None),
        (judgement("PARTIAL_MATCH", partial=True), True, "PARTIAL_MATCH", None),
        (judgement("WRONG_ROOT_CAUSE"), False, "MISCHARACTERIZED", "WRONG_ROOT_CAUSE"),
        (judgement("INVALID"), False, "HALLUCINATED", "INVALID"),
    ],
)
def test_todays_vocabulary_becomes_the_rubrics(
    tmp_path: Path, value: dict[str, Any], found: bool, row: str, stated: str | None
) -> None:
    lake, _ = imported(tmp_path, ROUND | {f"{JUDGED}/j_box.json": value})
    assert lake.frame(RESULTS).collect()["target_found"].to_list() == [found]
    of_finding = lake.frame(FINDINGS).select("finding_id", "classification", "classification_stated").collect()
    assert of_finding.rows() == [(0, row, stated)]


def test_an_unknown_class_is_refused_with_those_that_are_read(tmp_path: Path) -> None:
    folder = read(tmp_path, ROUND | {f"{JUDGED}/j_box.json": judgement("SOMETHING_ELSE")})
    assert "TARGET_MATCH" in reasons(folder)["j_box.json"]


@pytest.mark.slow
def test_what_rules_found_has_no_classes_and_no_counts(tmp_path: Path) -> None:
    rules = CASES["rules"]
    tool = {"sample_id": "box", "tool": "finder", "findings": [{"check": "reentrancy", "description": "It pays."}]}
    files = {
        **ROUND,
        f"{RULES}/e_box.json": rules,
        "results/detection/traditional/finder/ds/tier1/processed/p_box.json": tool,
    }
    lake, _ = imported(tmp_path, files)
    row = lake.frame(RESULTS).filter(pl.col("judge") == "rule-based").collect().row(0, named=True)
    assert (row["model"], row["said_vulnerable"], row["target_found"]) == ("finder", True, True)
    assert (row["total_findings"], row["finding_precision"], row["contradictions"]) == (None, None, None)


def test_gold_standard_folders_are_prompts_and_variants_keep_samples_apart(tmp_path: Path) -> None:
    judges = "results/detection_evaluation/llm-judge/one-judge/model-5.2"
    variants = {
        f"{folder}/{name}/{file}": value
        for name in ("sanitized", "trojan")
        for folder, file, value in (
            (f"{judges}/tc", "j_box.json", judgement()),
            ("samples/tc", "ground_truth/box.json", TRUTH),
        )
    }
    gold = {f"{judges}/gs/with_context/j_box.json": judgement(), "samples/gs/ground_truth/box.json": TRUTH}
    variants["samples/tc/trojan/metadata/box.json"] = {"id": "box", "original_subset": "tc"}
    variants["tools/tc/trojan/box.slither.json"] = next(iter(cases_beside(__file__, "tools.json").values()))
    items = [recorded.item for _, recorded in read(tmp_path, variants | gold).lines]
    assert [item.sample.sample_id for item in items if item.model == "slither"] == ["trojan/box"]
    assert len({item.sample.sample_hash for item in items}) == 3
    assert {(item.sample.sample_id, item.prompt_type) for item in items} == {
        *(("sanitized/box", "direct"), ("trojan/box", "direct"), ("box", "with_context"))
    }


def test_what_lies_elsewhere_is_refused_with_the_layout_that_is_expected(tmp_path: Path) -> None:
    stray = "results/detection_evaluation/llm-judge/one-judge/j_box.json"
    folder = read(tmp_path, ROUND | {stray: judgement(), f"{JUDGED}/j_box.json.bak": "{}"})
    assert reasons(folder) == {"j_box.json": MISPLACED, "j_box.json.bak": "not a JSON file"}
    with pytest.raises(SourceError, match="llm-judge/JUDGE/MODEL"):
        read_folder(write(tmp_path / "other", {"notes.json": {"a": 1}}))


def test_summaries_are_recomputed_and_failures_stand_beside_the_originals_count(tmp_path: Path) -> None:
    summary = {
        "tier": "tier1",
        "sample_counts": {"total": 2, "successful_evaluations": 1, "failed_evaluations": 1},
        "detection_metrics": {"target_found_count": 1, "precision": 1.0, "f1_score": 0.5, "mood": 3},
        "quality_scores": {"avg_rcir": 0.5, "std_rcir": None, "count": 1},
        "by_vulnerability_type": {"reentrancy": {"total_samples": 1}},
    }
    files = {
        **ROUND,
        "samples/ds/tier1/ground_truth/bag.json": TRUTH,
        f"{JUDGED}/j_bag.json": judgement(sample_id="bag", error="Failed to parse JSON response."),
        f"{JUDGED}/_tier_summary.json": summary,
    }
    compared, failed = read(tmp_path, files).remarks
    assert compared == (
        "the original's summaries (1) recomputed: 9 values are equal, "
        "1 differ (one-judge on model-5.2 (ds/tier1) detection_metrics.f1_score: 0.5 stated, 1.0 recomputed); "
        "1 others are not recomputed"
    )
    assert failed == "failed judgements of one-judge on model-5.2 (ds/tier1): 1 read, 1 in the original's summary"


def test_a_prompts_summary_and_a_table_of_votes_are_compared_by_the_originals_definitions(tmp_path: Path) -> None:
    """A prompt's summary counts judged audits alone, and types of found targets; a table knows further judges."""
    place = "results/detection_evaluation/llm-judge/one-judge/model-5.2/gs/direct"
    summary = CASES["counted"]
    partly = judgement("WRONG_ROOT_CAUSE", partial=True)
    partly["target_assessment"]["type_match"] = "wrong"
    votes = "sample_id,one-judge,other,agreement\nbox,NO,YES,SPLIT (1Y/1N)\n"
    files = {
        "samples/gs/ground_truth/box.json": TRUTH,
        "samples/gs/ground_truth/bag.json": TRUTH,
        f"{place}/j_box.json": partly,
        f"{place}/j_bag.json": judgement(error="Failed to parse JSON response."),
        f"{place}/_prompt_summary.json": summary,
        "interannotation_analysis/gs/model-5.2_judges.csv": votes,
    }
    compared, _, voted = read(tmp_path, files).remarks
    assert compared == "the original's summaries (1) recomputed: 14 values are equal, none differs"
    assert voted == (
        "the original's tables of votes (1) recomputed: 0 values are equal, "
        "1 differ (one-judge on model-5.2 box: NO stated, YES recomputed); 2 others are not recomputed"
    )


@pytest.mark.slow
def test_a_judgement_of_a_patched_contract_is_read(tmp_path: Path) -> None:
    """It has no target, but the place and cause of what was there before."""
    value = judgement("TARGET_FALSE_POSITIVE") | {
        "target_assessment": {"false_positive_detected": True, "false_positive_finding_id": 0, "location_match": True}
    }
    patched = {"samples/ds/tier1/ground_truth/box.json": TRUTH | {"is_vulnerable": False}}
    lake, _ = imported(tmp_path, ROUND | patched | {f"{JUDGED}/j_box.json": value})
    row = lake.frame(RESULTS).collect().row(0, named=True)
    assert (row["target_found"], row["detection_correct"], row["mischaracterized_findings"]) == (None, False, 1)


@pytest.mark.real_data
def test_a_real_tier_comes_to_the_originals_numbers_and_votes(real_data: Path, tmp_path: Path) -> None:
    """By summary, cell by cell of the agreement tables, and by metric with the original's options."""
    folder = real_data / "blockbench" / "v3"
    lake = Lake(str(tmp_path / "lake"))
    options = {"sui_weights": "blockbench", "sui_weight_sets": "blockbench", "std_ddof": 1}
    configuration = Configuration(suites={SUITE.name: options})
    run_id = import_recorded(lake, SUITE, [folder], configuration)
    parameters = json.loads(lake.frame(RUNS).collect().filter(run_id=run_id)["parameters"][0])
    assert parameters["remarks"][0].startswith(
        "the original's summaries (11) recomputed: 2,324 values are equal, none differs"
    )
    assert parameters["remarks"][-1].startswith(
        "the original's tables of votes (7) recomputed: 80 values are equal, none"
    )
    assert parameters["left_out"] == {}
    rows = lake.frame(RESULTS).select("judge", "model", "sample_id", "target_found").collect()
    words = {row[:3]: row[3] for row in rows.iter_rows()}
    compared = 0
    for file in (folder / "interannotation_analysis" / "ds" / "disagreement" / "llms" / "tier1").glob("*_judges.csv"):
        for line in pl.read_csv(file).iter_rows(named=True):
            for judge in ("codestral", "mimo-v2-flash"):
                key = (judge, file.stem.removesuffix("_judges"), line["sample_id"])
                if key in words:
                    assert words[key] == (line[judge] == "YES"), key
                    compared += 1
    assert compared == 80
    metrics = read_metrics(lake, find_snapshot(lake, run_id=run_id)["snapshot_id"]).filter(slice="all")
    values = {(row["judge"], row["model"], row["metric"]): row["value"] for row in metrics.iter_rows(named=True)}
    compared = 0
    for file in folder.rglob("llm-judge/*/*/ds/tier1/_tier_summary.json"):
        summary = json.loads(file.read_text(encoding="utf-8"))
        of = (file.parts[-5], file.parts[-4])
        for name, stated in summary.get("quality_scores", {}).items():
            ours = values.get((*of, name.replace("avg_", "mean_")))
            if name != "count":
                assert ours == pytest.approx(stated, abs=1e-9), (of, name)
                compared += 1
        found, precision = values[*of, "target_detection_rate"], values[*of, "finding_precision"]
        reasoning = [values[*of, f"mean_{name}"] for name in ("rcir", "ava", "fsv")]
        if None not in reasoning:
            expected = 0.4 * found + 0.3 * sum(reasoning) / 3 + 0.3 * precision
            assert values[*of, "sui"] == pytest.approx(expected, abs=1e-9)
    assert compared == 48
