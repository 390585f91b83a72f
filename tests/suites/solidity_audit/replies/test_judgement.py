"""Reading a judgement: what was not asked for, and what was and is missing, is named."""

import json
from typing import Any

import pytest

from suites.solidity_audit.replies.judgement import Asked, read_judgement
from tests.suites.solidity_audit.support import finding, judgement, target

WITHOUT_VERDICT = {name: value for name, value in judgement().items() if name != "overall_verdict"}


@pytest.mark.parametrize(
    ("reply", "asked", "named"),
    [
        (judgement(), Asked(True, True), "target_assessment: the field is missing"),
        (judgement([], target(False)), Asked(False, True), "target_assessment: leave the field out"),
        (
            judgement([finding()]),
            Asked(None, None),
            "one is classified TARGET_MATCH, but there is no target_assessment",
        ),
        (judgement([finding()]), Asked(False, True), "are no classifications where there is no known vulnerability"),
        (WITHOUT_VERDICT, Asked(None, True), "overall_verdict: the field is missing"),
        (judgement(), Asked(None, False), "overall_verdict: leave the field out"),
    ],
)
def test_what_does_not_answer_the_question_is_a_flaw(reply: dict[str, Any], asked: Asked, named: str) -> None:
    reading = read_judgement(json.dumps(reply), asked)
    assert reading.judgement is None
    assert any(named in flaw for flaw in reading.flaws)


def test_what_is_taken_as_it_comes_may_be_there_or_not() -> None:
    for reply in (judgement(), WITHOUT_VERDICT, judgement([finding()], target())):
        assert read_judgement(json.dumps(reply), Asked(None, None)).judgement is not None
