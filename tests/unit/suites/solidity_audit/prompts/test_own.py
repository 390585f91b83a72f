"""A rubric of one's own stands in place of the suite's, for the judge alone."""

from evalake.suites.solidity_audit.conversation import converse
from tests.unit.suites.solidity_audit.support import SAFE, TRUTH, conversation, sample


def test_a_rubric_of_ones_own_replaces_the_suites_for_the_judge_alone() -> None:
    options = {"prompts": {"mine": {"rubric": "Found is whatever names {the} function."}}}
    for truth in (TRUTH, SAFE):
        own = conversation([], "x", prompt_type="mine", sample=sample(truth))
        usual = conversation([], "x", sample=sample(truth))
        (mine, theirs) = (converse(item, answered, options) for item, answered in (own, usual))
        assert mine is not None
        assert theirs is not None
        assert "\nFound is whatever names {the} function.\n" in mine.messages[0]["content"]
        assert "Decide the class" not in mine.messages[0]["content"]
        assert "BONUS_VALID       " in mine.messages[0]["content"], "the classes stay"
        assert mine.messages[1]["content"].split("<<<audit")[0] == theirs.messages[1]["content"].split("<<<audit")[0]
        assert mine.prompt_hash != theirs.prompt_hash
    asked = [converse(item, [], options) for item in (own[0], usual[0])]
    assert asked[0] == asked[1], "the subject is asked alike, and answers from the ledger"
