"""A subject sees the numbered contract and nothing of its truth; prompt types ask otherwise about the same."""

import pytest

from evalake.sdk.sample import read_delimited
from evalake.suites.solidity_audit.conversation import converse
from evalake.suites.solidity_audit.prompts import PROMPT_TYPES
from tests.unit.suites.solidity_audit.support import CONTRACT, TRUTH, conversation


@pytest.mark.parametrize("prompt_type", PROMPT_TYPES)
def test_a_subject_sees_the_numbered_contract_and_nothing_of_its_ground_truth(prompt_type: str) -> None:
    item, _ = conversation([], prompt_type=prompt_type)
    request = converse(item, [], {})
    assert request is not None
    text = request.messages[1]["content"]
    lines = (read_delimited("contract", text) or "").split("\n")
    assert [each.partition("| ")[2] for each in lines[:2]] == CONTRACT.split("\n")[:2]
    assert lines[7].startswith("8| ")
    hidden = (TRUTH.root_cause, TRUTH.attack_scenario, TRUTH.fix, TRUTH.vulnerability_type, "box", "tests")
    assert not any(str(each) in text for each in hidden)
    assert request.parameters == {}


def test_every_prompt_type_asks_differently_about_the_same_data() -> None:
    items = [conversation([], prompt_type=prompt_type)[0] for prompt_type in PROMPT_TYPES]
    requests = [converse(item, [], {}) for item in items]
    assert len({request.prompt_hash for request in requests if request}) == len(PROMPT_TYPES)
    assert len({read_delimited("contract", request.messages[1]["content"]) for request in requests if request}) == 1
