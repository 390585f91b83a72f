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
    model_named,
    number_of,
    sample_names,
)
from evalake.suites.solidity_audit.sources.rounds import NO_TRUTH, NOTHING_SAID, read_folder
from tests.unit.suites.solidity_audit.sources.rounds_material import ROUND, judgement, read, reasons, review, write

MODELS = ("claude_opus_4.5", "gpt-5.2", "org/own-model")


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


@pytest.mark.parametrize("content", ["{", "[]", '{"opus": 4}', '"opus"', "[" * 50_000])
def test_a_file_of_aliases_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / ALIASES_FILE).write_text(content, encoding="utf-8")
    with pytest.raises(SourceError, match="must be a JSON object of names"):
        aliases(tmp_path)


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
