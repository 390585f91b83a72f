"""A round that was recorded elsewhere imports as it lies; what is left out is named."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.admin.import_results import import_recorded
from evalake.contracts.tables import CALLS, QUARANTINE, RUNS
from evalake.core.errors import SourceError
from evalake.storage.lake import Lake
from evalake.storage.snapshots import find_snapshot, read_metrics
from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from evalake.suites.solidity_audit.sources.round_files import NOT_JSON
from evalake.suites.solidity_audit.sources.rounds import (
    JUDGED_TWICE,
    NO_CLASS,
    NO_FINDING,
    NO_JUDGEMENT,
    NO_TRUTH,
    REVIEWED_TWICE,
    read_folder,
)
from evalake.suites.solidity_audit.suite import SUITE
from tests.integration.cli.command import evalake_here
from tests.unit.suites.solidity_audit.sources.rounds_material import (
    CLAIMS,
    ROUND,
    TRUTH,
    imported,
    judgement,
    read,
    reasons,
    review,
    write,
)

pytestmark = pytest.mark.slow


def test_what_is_left_out_is_named_by_file(tmp_path: Path) -> None:
    files: dict[str, Any] = {
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


def test_a_folder_without_judgements_is_no_round(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    assert read_folder(write(tmp_path / "lines", {"recorded.jsonl": ""})) is None
    write(tmp_path / "round", {"notes.json": {}})
    with pytest.raises(SourceError, match=r"no round was found: .*judge_outputs/j_SAMPLE.json"):
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


ALIKE = (
    *("detection_correct", "target_found", "lucky_guess", "type_match", "confidence", "calibration_error"),
    *("total_findings", "valid_findings", "invalid_findings", "hallucinated_findings", "finding_precision"),
)
SINGLE = dict(zip(ALIKE, ALIKE, strict=True)) | {f"{name}_score": name for name in ("rcir", "ava", "fsv")}
SINGLE |= {"ground_truth_vulnerable": "is_vulnerable", "response_said_vulnerable": "said_vulnerable"}
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
    done = evalake_here("import", folder, "--suite", "solidity_audit", *where, folder=tmp_path)
    assert done.returncode == 1
    assert "left out, not a JSON object: 1\n  expert_reviews/claude_opus_4.5/r_nc_ds_234.json\n" in done.stdout
    assert "Traceback" not in done.stderr


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


@pytest.mark.parametrize(
    ("folder", "model"),
    [
        ("expert_reviews", "some_model_1.5"),
        ("Group1_ExpertReviews", "Some Model 1.5"),
        ("EXPERT-REVIEWS 2", "some-model-1-5"),
        ("x/myexpert_reviewsB", "org/nested/SOME_MODEL_1_5"),
    ],
)
def test_reviews_become_labels_of_the_audit_whatever_the_spelling(tmp_path: Path, folder: str, model: str) -> None:
    claim = {"finding_number": 1, "model_claim": [f"[{CLAIMS[2]}]"], "classification": "SECURITY_THEATER"}
    files = {**ROUND, f"{folder}/{model}/r_nc_box.json": review(claim)}
    read = read_folder(write(tmp_path / "round", files))
    assert read is not None
    assert {label["annotator"] for label in read.labels} == {"ann"}
    answers = {(label["question"], label["finding_id"]): label["answer"] for label in read.labels}
    assert answers == {
        ("target_found", None): "yes",
        ("target_class", None): "found",
        ("type_correct", None): "yes",
        ("classification", 2): "SECURITY_THEATER",
    }


def test_a_model_of_another_name_is_told_by_a_stated_alias(tmp_path: Path) -> None:
    files = {**ROUND, "expert_reviews/the-usual/r_nc_box.json": review()}
    folder = read_folder(write(tmp_path / "round", files))
    assert folder is not None
    assert [out.reason for out in folder.skipped] == [NO_JUDGEMENT]
    assert not folder.labels
    stated = read_folder(write(tmp_path / "round", {"model_aliases.json": {"The usual": "some_model_1.5"}}))
    assert stated is not None
    assert stated.labels
    for no_names in ([1], '{"opus": 4}', "[" * 50_000):
        with pytest.raises(SourceError, match=r"model_aliases\.json must be a JSON object of names"):
            read_folder(write(tmp_path / "round", {"model_aliases.json": no_names}))


def test_a_claim_belongs_to_one_finding_only(tmp_path: Path) -> None:
    twice = [{"model_claim": CLAIMS[2], "classification": name} for name in ("BONUS_VALID", "INFORMATIONAL")]
    folder = read_folder(
        write(tmp_path / "round", {**ROUND, "expert_reviews/some_model_1.5/r_nc_box.json": review(*twice)})
    )
    assert folder is not None
    of_findings = [label["answer"] for label in folder.labels if label["question"] == "classification"]
    assert of_findings == ["BONUS_VALID"]
    assert [out.reason for out in folder.skipped] == [NO_FINDING]


def test_reviews_without_a_name_are_of_whom_their_folder_is_named_for(tmp_path: Path) -> None:
    unsigned = {**review(), "evaluation_info": {"sample_id": "box"}}
    names = ("Bob_ExpertReviews", "expert-reviews (Cy)", "expert_reviews")
    folder = read(tmp_path, ROUND | {f"{name}/some_model_1.5/r_nc_box.json": unsigned for name in names})
    assert {label["annotator"] for label in folder.labels} == {"Bob", "(Cy)", "expert"}


def test_a_folder_of_reviews_alone_says_which_have_no_partner(tmp_path: Path) -> None:
    write(tmp_path / "round", {"expert_reviews/m/r_a.json": review(), "expert_reviews/m/r_b.json": review()})
    with pytest.raises(SourceError, match=r"a review without a judged audit \(expert_reviews/m/r_a.json, .*r_b.json\)"):
        import_recorded(Lake(str(tmp_path / "lake")), SUITE, [tmp_path / "round"])
