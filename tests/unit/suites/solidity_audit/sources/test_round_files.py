"""Names that mean one model or one sample, and files that are read, sorted or left out with a reason."""

import json
from pathlib import Path

import pytest

from evalake.core.errors import SourceError
from evalake.suites.solidity_audit.prompts import PROMPT_TYPES
from evalake.suites.solidity_audit.sources.round_files import (
    ALIASES_FILE,
    NO_JSON_FILE,
    NOT_JSON,
    aliases,
    expert_of,
    folder_name,
    is_review_folder,
    model_named,
    number_of,
    plain,
    sample_names,
)
from evalake.suites.solidity_audit.sources.rounds import NO_TRUTH, NOTHING_SAID, read_folder
from tests.unit.suites.solidity_audit.sources.rounds_material import ROUND, judgement, read, reasons, review, write

MODELS = ("claude_opus_4.5", "gpt-5.2", "org/own-model")


@pytest.mark.parametrize("name", ["Claude Opus 4.5", "claude-opus-4-5", "anthropic/CLAUDE_OPUS_4.5"])
def test_spelling_never_matters(name: str) -> None:
    assert plain(name) == "claudeopus45"


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("claude opus 4.5", "claude_opus_4.5"),
        ("Opus", "claude_opus_4.5"),
        ("GPT", "gpt-5.2"),
        ("own model", "org/own-model"),
        ("mine", "org/own-model"),
        ("grok", None),
        ("", None),
    ],
)
def test_a_model_is_known_by_its_name_an_alias_or_the_rounds_own(tmp_path: Path, name: str, model: str | None) -> None:
    (tmp_path / ALIASES_FILE).write_text(json.dumps({"Mine": "own_model"}), encoding="utf-8")
    assert model_named(name, MODELS, aliases(tmp_path)) == model


def test_two_aliases_of_one_model_are_each_other(tmp_path: Path) -> None:
    """Where the folder bears one alias and the review another."""
    assert model_named("claude opus 4.5", ["opus"], aliases(tmp_path)) == "opus"
    assert model_named("claude", ["opus"], aliases(tmp_path)) == "opus"


def test_the_rounds_own_aliases_come_first(tmp_path: Path) -> None:
    (tmp_path / ALIASES_FILE).write_text('{"opus": "gpt-5.2"}', encoding="utf-8")
    assert model_named("opus", MODELS, aliases(tmp_path)) == "gpt-5.2"


@pytest.mark.parametrize("content", ["{", "[]", '{"opus": 4}', '"opus"', "[" * 50_000])
def test_a_file_of_aliases_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / ALIASES_FILE).write_text(content, encoding="utf-8")
    with pytest.raises(SourceError, match="must be a JSON object of names"):
        aliases(tmp_path)


@pytest.mark.parametrize(
    ("folder", "holds", "expert"),
    [
        ("expert_reviews", True, None),
        ("Expert-Reviews (Cy)", True, "(Cy)"),
        ("Bob_ExpertReviews", True, "Bob"),
        ("reviews", False, "reviews"),
        ("judge_outputs", False, "judge_outputs"),
    ],
)
def test_a_folder_of_reviews_may_be_named_for_its_expert(folder: str, holds: bool, expert: str | None) -> None:
    assert is_review_folder(folder) is holds
    assert expert_of(folder) == expert


def test_folders_are_known_whatever_joins_their_words() -> None:
    assert {folder_name(name) for name in ("judge_outputs", "Judge-Outputs", "judge outputs")} == {"judgeoutputs"}


@pytest.mark.parametrize(
    ("file", "stated", "names"),
    [
        ("j_nc_box_direct.json", None, ("nc_box_direct", "nc_box")),
        ("Review_box.json", " box ", ("box",)),
        ("judge_box_adversarial.json", "nc_box", ("box_adversarial", "box", "nc_box")),
        ("box.json", 7, ("box",)),
        ("m_r_box.json", "", ("r_box",)),
    ],
)
def test_a_sample_is_named_by_its_file_and_as_the_file_states_it(
    file: str, stated: object, names: tuple[str, ...]
) -> None:
    assert sample_names(Path("round") / file, stated, PROMPT_TYPES) == names


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
