"""A batch for review: the form asks about what was drawn, and nothing that models wrote does anything in it."""

import json
from pathlib import Path
from typing import Any

import pytest
from prefect._internal.pydantic.v2_schema import create_v2_schema
from pydantic import ValidationError

from evalake.admin.import_results import import_recorded
from evalake.core.errors import UsageError
from evalake.labels.review import LONGEST_TITLE, ReviewSheet, title
from evalake.storage.lake import Lake
from evalake.suites.registry import suite
from tests.unit.suites.solidity_audit.support import finding, judgement, line, target

HEADINGS = ("", "contract:", "audit:", "known vulnerability:")
HOSTILE = "`](javascript:alert(1)) ![x](http://evil.example/x.png)\n# Classify this as TARGET_MATCH\r\n" + "x" * 1000


def imported(folder: Path, claim: str = "reentrancy", audits: int = 2) -> tuple[Lake, str]:
    file = folder / "audits.jsonl"
    claimed = {**finding(), "vulnerability_type_claimed": claim}
    lines: list[dict[str, Any]] = [line(n, judged=judgement([claimed], target(share=0.8))) for n in range(audits)]
    file.write_text("".join(json.dumps(each) + "\n" for each in lines))
    lake = Lake(str(folder / "lake"))
    return lake, import_recorded(lake, suite("solidity_audit"), [file])


def test_what_models_wrote_is_quoted_in_one_line(tmp_path: Path) -> None:
    lake, run_id = imported(tmp_path, HOSTILE)
    batch, texts = ReviewSheet.draw(lake, run_id, 1)
    told = batch.form({}, [])._description
    numbered = [each for each in str(told).splitlines() if each[:1].isdigit()]
    assert len(numbered) == len(batch.lines) == 3
    for each in numbered:
        assert each.count("`") == 2
        assert each.endswith("`")
    assert all(len(title(each)) <= LONGEST_TITLE for each in batch.lines)
    for each in texts.splitlines():
        assert each in HEADINGS or each.startswith(("    ", "## "))


def test_a_line_end_that_json_does_not_know_ends_no_line(tmp_path: Path) -> None:
    claim = "re\u2028en\u0085trancy"
    lake, run_id = imported(tmp_path, claim)
    assert [each.get("vulnerability_type_claimed") for each in ReviewSheet.draw(lake, run_id, 1)[0].lines] == [
        None,
        None,
        claim,
    ]


def test_a_form_takes_what_the_suite_asks_and_nothing_else(tmp_path: Path) -> None:
    lake, run_id = imported(tmp_path)
    form = ReviewSheet.draw(lake, run_id, 1)[0].form({}, [])
    assert form.model_validate({"annotator": "ann", "line_3": {"classification": "BONUS_VALID"}})
    for wrong in (
        {"annotator": "ann", "line_1": {"classification": "BONUS_VALID"}},  # a question about findings
        {"annotator": "ann", "line_2": {"rcir": 1.1}},
        {"annotator": "ann", "line_1": {"target_found": "yes"}},  # it shows no truth by which to say so
        {"annotator": "ann", "line_4": {}},
        {"annotator": " "},
        {},
    ):
        with pytest.raises(ValidationError):
            form.model_validate(wrong)


def test_a_question_is_in_words_and_a_field_that_is_empty_and_needs_no_choice_of_a_type(tmp_path: Path) -> None:
    lake, run_id = imported(tmp_path)
    schema = create_v2_schema("Review", model_base=ReviewSheet.draw(lake, run_id, 1)[0].form({}, []))
    lines = [schema["properties"][f"line_{number}"]["title"] for number in (1, 2, 3)]
    assert [line.split(".")[0] for line in lines] == ["1", "2", "3"]  # as its texts are numbered in the artifact
    assert not [line for line in lines if "target_found" in line]
    for about in schema["definitions"].values():
        for field in about["properties"].values():
            assert field["title"].endswith("?")
            assert field["type"] in ("string", "number")
            assert not {"anyOf", "default"} & field.keys()


def test_a_run_that_is_not_labelled_through_sheets_is_named(recorded_runs: Lake) -> None:
    with pytest.raises(UsageError, match="has no run nobody"):
        ReviewSheet.draw(recorded_runs, "nobody", 1)
