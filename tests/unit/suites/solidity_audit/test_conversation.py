"""The conversation about an audit: the judge may repair its judgement once, and is asked of nothing that failed."""

import json

import pytest

from evalake.models.request import Reply
from evalake.sdk import Exchange
from evalake.suites.solidity_audit.contract import RESULTS
from evalake.suites.solidity_audit.conversation import converse
from evalake.suites.solidity_audit.score import score
from tests.unit.suites.solidity_audit.judgements import CONTRADICTIONS, GOOD
from tests.unit.suites.solidity_audit.support import SAFE, conversation, finding, judgement, sample


@pytest.mark.parametrize("rule", CONTRADICTIONS)
def test_a_judge_is_shown_its_contradiction_once(rule: str) -> None:
    item, answered = conversation([CONTRADICTIONS[rule]])
    repair = converse(item, answered, {})
    assert repair is not None
    assert repair.model == "a/judge"
    assert repair.messages[-2]["role"] == "assistant"
    assert "cannot be used" in repair.messages[-1]["content"]
    answered.append(Exchange("f" * 64, Reply(json.dumps(GOOD))))
    assert converse(item, answered, {}) is None
    (row,) = score(item, answered, {})[RESULTS.table]
    assert row["target_found"] is True
    assert row["repaired"] is True
    assert row["judge_hash"] == answered[1].prompt_hash


def test_a_good_judgement_is_not_asked_again() -> None:
    item, answered = conversation([GOOD])
    assert converse(item, answered, {}) is None


def test_of_a_safe_contract_no_target_may_be_claimed() -> None:
    item, answered = conversation([judgement([finding()])], sample=sample(SAFE))
    repair = converse(item, answered, {})
    assert repair is not None
    assert "TARGET_MATCH" in repair.messages[-1]["content"]
