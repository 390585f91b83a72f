"""A round that was recorded elsewhere imports as it lies; what is left out is named."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from contracts.tables import CALLS, HUMAN_LABELS, QUARANTINE, RUNS
from core.errors import SourceError
from storage.lake import Lake
from storage.snapshots import find_snapshot, read_metrics
from suites.solidity_audit.contract import FINDINGS, RESULTS
from suites.solidity_audit.rounds.folder import read_folder
from suites.solidity_audit.rounds.judged import JUDGED_TWICE, NO_TRUTH
from suites.solidity_audit.rounds.labels import NO_CLASS, NO_FINDING, NO_JUDGEMENT, REVIEWED_TWICE
from suites.solidity_audit.rounds.round import NOT_JSON
from suites.solidity_audit.suite import SUITE
from tasks.jobs.import_results import import_recorded
from tests.cli.command import evalake
from tests.suites.solidity_audit.rounds.material import CLAIMS, ROUND, imported, judgement, read, review, write

pytestmark = pytest.mark.slow


def test_what_is_left_out_is_named_by_file(tmp_path: Path) -> None:
    files = {
        **ROUND,
        "j/some_model_1.5/judge_outputs/j_other_direct.json": judgement(sample_id="other", transformed_id=None),
        "j/some_model_1.5/judge_outputs/j_nc_box_naturalistic.json": judgement(findings="none", prompt_type=None),
        "expert_reviews/some_model_1.5/r_broken.json": '{"target_found": true/false}',
        "expert_reviews/some_model_1.5/r_nobody.json": review(),
        "expert_reviews/some_model_1.5/r_nc_box.json": review(
            {"model_claim": "Something else altogether, which the audit never said.", "classification": "BONUS_VALID"},
            {"model_claim": CLAIMS[2], "classification": "SECURITY_THEATER|HALLUCINATED"},
            reasoning_quality="accurate|partial",
        ),
    }
    files["expert_reviews/some_model_1.5/r_nobody.json"]["evaluation_info"]["sample_id"] = "nobody"
    lake, run_id = imported(tmp_path, files)
    quarantined = lake.frame(QUARANTINE).collect().sort("origin")
    reasons = {row["origin"].rpartition("/")[2]: row["reason"] for row in quarantined.iter_rows(named=True)}
    assert {name: reason.partition(": ")[2] for name, reason in reasons.items()} == {
        "j_nc_box_naturalistic.json": "judgement: findings: Input should be a valid list",
        "j_other_direct.json": NO_TRUTH,
        "r_broken.json": NOT_JSON,
        "r_nobody.json": NO_JUDGEMENT,
    }
    parameters = json.loads(lake.frame(RUNS).filter(pl.col("run_id") == run_id).collect()["parameters"][0])
    assert parameters["left_out"][NO_TRUTH] == ["j/some_model_1.5/judge_outputs/j_other_direct.json"]
    assert {NO_FINDING, NO_CLASS} <= parameters["left_out"].keys()


def test_importing_again_changes_nothing(tmp_path: Path) -> None:
    files = {**ROUND, "expert_reviews/some_model_1.5/r_nc_box.json": review()}
    lake, run_id = imported(tmp_path, files)
    tables = (RESULTS, FINDINGS, HUMAN_LABELS, CALLS)
    before = [lake.frame(table).collect().height for table in tables]
    assert imported(tmp_path, files)[1] == run_id
    assert [lake.frame(table).collect().height for table in tables] == before


def test_a_folder_without_judgements_is_no_round(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    assert read_folder(write(tmp_path / "round", {"notes.json": {}})) is None
    with pytest.raises(SourceError, match="holds no recorded result"):
        import_recorded(lake, SUITE, [tmp_path / "round"])


def test_what_was_judged_or_reviewed_twice_is_named(tmp_path: Path) -> None:
    copies = {f"copy/{name}": value for name, value in ROUND.items()}
    others = {"z/some_model_1.5/judge_outputs/j_nc_box_direct.json": judgement(notes="Another one.")}
    reviews = {f"{name}expert_reviews/some_model_1.5/r_nc_box.json": review() for name in ("a_", "b_")}
    folder = read(tmp_path, {**ROUND, **copies, **others, **reviews})
    assert len(folder.lines) == 1
    told = [(out.where.partition("/")[0], out.reason, out.payload is not None) for out in folder.skipped]
    assert told[:3] == [
        ("deep", JUDGED_TWICE, False),
        ("z", JUDGED_TWICE, True),
        ("b_expert_reviews", REVIEWED_TWICE, True),
    ]
    ids = [label["label_id"] for label in folder.labels]
    assert len(ids) == len(set(ids)) == 3


SINGLE = {
    "detection_correct": "detection_correct",
    "ground_truth_vulnerable": "is_vulnerable",
    "response_said_vulnerable": "said_vulnerable",
    "target_found": "target_found",
    "lucky_guess": "lucky_guess",
    "total_findings": "total_findings",
    "valid_findings": "valid_findings",
    "invalid_findings": "invalid_findings",
    "hallucinated_findings": "hallucinated_findings",
    "finding_precision": "finding_precision",
    "rcir_score": "rcir",
    "ava_score": "ava",
    "fsv_score": "fsv",
    "type_match": "type_match",
    "confidence": "confidence",
    "calibration_error": "calibration_error",
}
"""Recorded values of one audit, and the columns that must equal them."""


@pytest.mark.real_data
def test_a_real_round_comes_to_its_recorded_values(real_data: Path, tmp_path: Path) -> None:
    """Value by value: every number of its sample_metrics and of its aggregated_metrics, overall and by prompt type."""
    folder = real_data / "blockbench" / "v1"
    lake = Lake(str(tmp_path / "lake"))
    run_id = import_recorded(lake, SUITE, [folder])
    rows = {(row["model"], row["sample_id"]): row for row in lake.frame(RESULTS).collect().iter_rows(named=True)}
    compared = 0
    for file in folder.rglob("sample_metrics/*.json"):
        recorded = json.loads(file.read_text(encoding="utf-8"))
        row = rows.pop((file.parent.parent.name, recorded["transformed_id"]))
        for name, column in SINGLE.items():
            value = recorded[name]
            assert row[column] == (pytest.approx(value, abs=1e-12) if isinstance(value, float) else value), (file, name)
            compared += 1
    assert not rows
    assert compared == 30 * len(SINGLE)
    metrics = read_metrics(lake, find_snapshot(lake, run_id=run_id)["snapshot_id"])
    key = ("model", "slice", "slice_value", "metric")
    values = {tuple(row[k] for k in key): row for row in metrics.iter_rows(named=True)}
    compared = 0
    for file in folder.rglob("aggregated_metrics.json"):
        recorded = json.loads(file.read_text(encoding="utf-8"))
        slices = {("prompt_type", kind): part for kind, part in recorded.pop("by_prompt_type").items()}
        for place, part in {("all", ""): recorded, **slices}.items():
            for name, value in numbers(part):
                row = values[(file.parent.name, *place, name)]
                if row["n"] == 0:
                    assert (row["value"], value) == (None, 0), "of nothing: null here, 0 there"
                else:
                    assert row["value"] == pytest.approx(value, abs=1e-9), (file, name)
                compared += 1
    assert compared == 6 * 2 * 42


def numbers(part: dict[str, Any]) -> list[tuple[str, float]]:
    """The recorded metrics by their names; what counts samples or repeats a component is no metric of its own."""
    groups = [group for group in part.values() if isinstance(group, dict)]
    return [
        (name, value)
        for group in groups
        for name, value in group.items()
        if not isinstance(value, dict) and not name.startswith("n_")
    ]


@pytest.mark.real_data
def test_a_real_round_is_counted_by_folder_and_file(real_data: Path, tmp_path: Path) -> None:
    folder = real_data / "blockbench" / "v1"
    read = read_folder(folder)
    assert read is not None
    judged = {name: count for name, count in read.files.items() if name.endswith("judge_outputs")}
    assert set(judged.values()) == {5}
    assert len(judged) == 6
    reviewed = {name.rpartition("/")[2]: count for name, count in read.files.items() if "expert" in name}
    assert reviewed == {"claude_opus_4.5": 4, "deepseek_v3.2": 5, "gemini_3_pro_preview": 5}
    refused = [(out.where, out.reason) for out in read.skipped if out.payload is not None]
    assert refused == [("expert_reviews/claude_opus_4.5/r_nc_ds_234.json", NOT_JSON)]
    where = ("--lake", tmp_path / "lake", "--out", tmp_path)
    done = evalake("import", folder, "--suite", "solidity_audit", *where, folder=tmp_path)
    assert done.returncode == 1
    assert "left out, not a JSON object: 1\n  expert_reviews/claude_opus_4.5/r_nc_ds_234.json\n" in done.stdout
    assert "Traceback" not in done.stderr
