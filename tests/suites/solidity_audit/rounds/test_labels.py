"""Reviews become labels of the audits and findings that they are about."""

from pathlib import Path

import pytest

from core.errors import SourceError
from storage.lake import Lake
from suites.solidity_audit.rounds.folder import read_folder
from suites.solidity_audit.rounds.labels import NO_FINDING, NO_JUDGEMENT
from suites.solidity_audit.suite import SUITE
from tasks.jobs.import_results import import_recorded
from tests.suites.solidity_audit.rounds.material import CLAIMS, ROUND, read, review, write


@pytest.mark.parametrize(
    "folder", ["expert_reviews", "Group1_ExpertReviews", "EXPERT-REVIEWS 2", "x/myexpert_reviewsB"]
)
@pytest.mark.parametrize("model", ["some_model_1.5", "Some Model 1.5", "some-model-1-5", "org/nested/SOME_MODEL_1_5"])
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
    with pytest.raises(SourceError, match=r"model_aliases\.json must be a JSON object of names"):
        read_folder(write(tmp_path / "round", {"model_aliases.json": [1]}))


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
