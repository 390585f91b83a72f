"""The files of a round are sorted by their folders, in every encoding of JSON; others are named."""

import json
from pathlib import Path

import pytest

from suites.solidity_audit.rounds.folder import read_folder
from suites.solidity_audit.rounds.judged import NO_TRUTH
from suites.solidity_audit.rounds.labels import NOTHING_SAID
from suites.solidity_audit.rounds.round import NO_JSON_FILE, NOT_JSON, number_of
from tests.suites.solidity_audit.rounds.material import ROUND, judgement, read, reasons, review, write


def test_files_of_any_kind_beside_reviews_and_judgements_are_named(tmp_path: Path) -> None:
    reviews, judged = "expert_reviews/some_model_1.5", "deep/judges/some_model_1.5/judge_outputs"
    files = {
        **ROUND,
        f"{reviews}/notes.txt": "seen",
        f"{reviews}/r_list.json": [review()],
        f"{reviews}/r_nc_box.JSON": {},
        f"{judged}/direct/j_nc_other.json": judgement(sample_id="other", transformed_id="nc_other"),
        "samples/contracts/box.sol": "contract Box {}",
    }
    assert reasons(read(tmp_path, files)) == {
        "notes.txt": NO_JSON_FILE,
        "r_list.json": NOT_JSON,
        "r_nc_box.JSON": NOTHING_SAID,
        "j_nc_other.json": NO_TRUTH,
    }


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_every_encoding_of_json_is_read(tmp_path: Path, encoding: str) -> None:
    folder = write(tmp_path / "round", ROUND)
    file = folder / "expert_reviews" / "some_model_1.5" / "r_nc_box.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(review()), encoding=encoding)
    found = read_folder(folder)
    assert found is not None
    assert found.labels
    assert not found.skipped


@pytest.mark.parametrize(
    ("value", "number"),
    [(0, 0.0), (2, 2.0), (1.5, 1.5), (10**308, 1e308), (10**309, None), (float("inf"), None), (float("nan"), None),
     (-0.5, None), (True, None), ("1", None), (None, None)],
)  # fmt: skip
def test_a_cost_or_a_time_is_a_finite_number_of_0_or_more(value: object, number: float | None) -> None:
    assert number_of(value) == number
