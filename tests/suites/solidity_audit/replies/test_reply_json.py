"""The object that a reply is about is found wherever the reply puts it, in bounded time."""

import json

import pytest

from suites.solidity_audit.replies.judgement import Asked, read_judgement
from tests.suites.solidity_audit.judgements import GOOD
from tests.suites.solidity_audit.support import finding

ASKED = Asked(target=True, verdict=True)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        f"Here it is:\n```json\n{json.dumps(GOOD, indent=2)}\n```\nDone.",
        f'<think>{{"findings": []}} is one way</think>{json.dumps(GOOD)}',
        f"a chat template's thinking</think>{json.dumps(GOOD)}",
        json.dumps({"note": "first"}) + json.dumps(GOOD),
    ],
)
def test_a_judgement_is_found_wherever_the_reply_puts_it(text: str) -> None:
    reading = read_judgement(text, ASKED)
    assert reading.flaws == ()
    assert reading.judgement is not None
    assert reading.judgement.model_dump(exclude_none=True)["findings"] == [finding()]
