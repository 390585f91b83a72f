"""Files and fields of a round."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from evalake.core.errors import SourceError
from evalake.suites.solidity_audit.sources.round_fields import (
    Claim,
    cluster_of,
    in_our_words,
    match,
    read_review,
    read_truth,
)
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
from evalake.suites.solidity_audit.truth import PROMPT_TYPES, GroundTruth
from tests.cases import cases_beside
from tests.unit.suites.solidity_audit.sources.rounds_material import (
    CLAIMS,
    ROUND,
    judgement,
    read,
    reasons,
    review,
    write,
)

FIELDS = cases_beside(__file__, "fields.json")

# Names that mean one model or one sample, and files that are read, sorted or left out with a reason.

MODELS = ("claude_opus_4.5", "gpt-5.2", "org/own-model")


@pytest.mark.parametrize(("name", "model"), FIELDS["models"])
def test_a_model_is_known_by_its_name_an_alias_or_the_rounds_own(tmp_path: Path, name: str, model: str | None) -> None:
    (tmp_path / ALIASES_FILE).write_text(json.dumps({"Mine": "own_model"}), encoding="utf-8")
    assert model_named(name, MODELS, aliases(tmp_path)) == model


@pytest.mark.parametrize(("file", "stated", "names"), FIELDS["samples"])
def test_a_sample_is_named_by_its_file_and_as_the_file_states_it(file: str, stated: object, names: list[str]) -> None:
    assert [*sample_names(Path("round") / file, stated, PROMPT_TYPES)] == names


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


# Fields of recorded judgements, truths and reviews are read into ours, and what they do not say stays unknown.


@pytest.mark.parametrize(("stated", "read"), FIELDS["findings"])
def test_a_finding_is_told_in_our_field_names(stated: Any, read: Any) -> None:
    assert in_our_words({"findings": [stated]}) == {"findings": [read]}


def test_a_verdict_may_be_told_in_texts() -> None:
    told = in_our_words({"findings": [], "overall_verdict": {"is_vulnerable": "Yes", "confidence": "0.9"}})
    assert told["overall_verdict"] == {"said_vulnerable": True, "confidence_expressed": 0.9}


@pytest.mark.parametrize(("score", "read"), FIELDS["scores"])
def test_a_score_may_be_a_number_a_text_or_an_object(score: Any, read: Any) -> None:
    target = in_our_words({"findings": [], "target_assessment": {"root_cause_identification": score}})
    assert target["target_assessment"]["root_cause_identification"] == read


@pytest.mark.parametrize(("stated", "read"), cases_beside(__file__, "truths.json")["truths"])
def test_what_is_told_in_other_words_is_read_and_what_is_none_is_unknown(
    stated: dict[str, Any], read: dict[str, Any]
) -> None:
    assert read_truth(stated) == read_truth({"ground_truth": stated}) == GroundTruth(is_vulnerable=False, **read)


@pytest.mark.parametrize("stated", [{}, {"is_vulnerable": None}, {"is_vulnerable": "perhaps"}, {"ground_truth": []}])
def test_a_truth_that_does_not_say_whether_it_is_vulnerable_is_refused(stated: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match="is_vulnerable"):
        read_truth(stated)


def test_lines_that_no_table_can_hold_are_refused() -> None:
    with pytest.raises(SourceError, match="vulnerable_lines"):
        read_truth({"is_vulnerable": False, "vulnerable_lines": [2**40]})


@pytest.mark.parametrize(
    ("stated", "cluster"),
    [
        ({"original_id": "box"}, "box"),
        ({"original_id": "box", "base_id": "base"}, "base"),
        ({"base_id": "base", "cluster": "pair"}, "pair"),
        ({"cluster": " "}, None),
        ({"cluster": 7}, None),
        ({"cluster": "a\ud800"}, None),
        ({}, None),
    ],
)
def test_variants_of_one_base_hang_together(stated: dict[str, Any], cluster: str | None) -> None:
    assert cluster_of(stated) == cluster


NO_ANSWERS = dict.fromkeys(
    ("target_found", "target_class", "type_correct", "location_correct", "reasoning_quality", "overall_quality")
)


def test_a_review_is_read_whole() -> None:
    claim = {"model_claim": [f"[{CLAIMS[2]}", "or so]"], "classification": "security theater", "reasoning": "no way"}
    read = read_review(review(claim, reasoning_quality="Accurate") | {"summary": {"overall_quality": "high"}})
    assert (read.annotator, read.reviewed_at, read.note) == ("ann", datetime(2025, 12, 18, tzinfo=UTC), "ok")
    assert read.answers == NO_ANSWERS | {
        "target_found": True,
        "target_class": "found",
        "type_correct": True,
        "reasoning_quality": "accurate",
        "overall_quality": "high",
    }
    assert read.claims == (Claim(f"{CLAIMS[2]} or so", "SECURITY_THEATER", "security theater", "no way"),)
    assert read.unanswered == []


@pytest.mark.parametrize(("target", "question", "answer"), FIELDS["answers"])
def test_answers_are_read_in_any_spelling(target: dict[str, Any], question: str, answer: Any) -> None:
    assert read_review(review(**target)).answers[question] == answer


@pytest.mark.parametrize(("target", "question"), FIELDS["unfilled"])
def test_a_form_that_was_not_filled_in_answers_nothing_and_is_named(target: dict[str, Any], question: str) -> None:
    read = read_review(review(**target))
    assert read.answers[question] is None
    assert read.unanswered == [question]


@pytest.mark.parametrize("value", [{}, {"target_assessment": [], "other_findings": "none", "summary": 3}])
def test_a_review_that_says_nothing_answers_nothing(value: dict[str, Any]) -> None:
    read = read_review(value)
    assert (read.annotator, read.reviewed_at, read.note, read.claims) == (None, None, None, ())
    assert read.answers == NO_ANSWERS


@pytest.mark.parametrize(
    ("date", "day"),
    [
        ("2025-12-18", datetime(2025, 12, 18, tzinfo=UTC)),
        ("2025-12-18T10:00:00+02:00", datetime(2025, 12, 18, 10, tzinfo=timezone(timedelta(hours=2)))),
        ("yesterday", None),
        (20251218, None),
    ],
)
def test_the_day_of_a_review_is_of_utc_where_it_names_no_zone(date: Any, day: datetime | None) -> None:
    assert read_review({"evaluation_info": {"date": date}}).reviewed_at == day


def claim(text: str) -> Claim:
    return Claim(text, None, "", None)


FINDINGS = {1: CLAIMS[1], 2: CLAIMS[2]}


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (CLAIMS[1], 1),
        (CLAIMS[2].upper().replace(" ", "  "), 2),
        (CLAIMS[1].replace("twice", "two times"), 1),
        (CLAIMS[2][:50], 2),
        ("sends ether", None),
        ("Something else altogether, which the audit never said.", None),
        ("", None),
    ],
)
def test_a_claim_is_about_the_finding_that_it_repeats(text: str, finding: int | None) -> None:
    assert match([claim(text)], FINDINGS) == [(claim(text), finding)]
