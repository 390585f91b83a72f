"""The rubric decides every class, and has five levels for each score; it is told where there is a target."""

import re

from evalake.suites.solidity_audit.prompts import TEXTS
from evalake.suites.solidity_audit.truth import CLASSIFICATIONS
from tests.unit.suites.solidity_audit.prompts.material import judge_prompt
from tests.unit.suites.solidity_audit.support import SAFE, sample

JUDGE = TEXTS["judge"]


def test_the_rubric_decides_every_class_and_has_five_levels_for_each_score() -> None:
    rubric = JUDGE["classes"] + JUDGE["target_classes"]
    assert all(rubric.count(f": {name}.") == 1 for name in CLASSIFICATIONS)
    for score in ("root cause", "attack vector", "fix"):
        part = JUDGE["scores"].split(f"   {score} ")[1].split("Example:")[0]
        assert re.findall(r"\b[01]\.\d\d\b", part) == ["0.00", "0.25", "0.50", "0.75", "1.00"]


def test_only_who_judges_a_target_is_told_how_to_score_one() -> None:
    assert JUDGE["scores"] in judge_prompt("x").messages[0]["content"]
    assert JUDGE["scores"] not in judge_prompt("x", sample=sample(SAFE)).messages[0]["content"]
