"""What a direct audit says, read by rule: what cannot be read is null, and never a guess."""

import json
from typing import Any

import pytest

from evalake.suites.solidity_audit.replies import Claim, Prediction, read_prediction

FINDING = {"type": "reentrancy", "severity": "high", "location": "withdraw", "lines": [7, 8]}
CLAIM = Claim("reentrancy", "high", "withdraw", (7, 8))
NOTHING = Prediction(None, None, ())


def audit(**fields: Any) -> str:
    return json.dumps({"verdict": "vulnerable", "confidence": 0.9, "findings": [FINDING], **fields})


@pytest.mark.parametrize(
    "text",
    [
        audit(),
        f"My audit:\n```json\n{audit()}\n```\nAsk me for more.",
        f'<think>{{"verdict": "safe"}}</think>{audit()}',
        audit(verdict=" Vulnerable "),
    ],
    ids=["alone", "in a fence", "after thinking", "in other letters"],
)
def test_an_audit_is_found_in_what_is_around_it(text: str) -> None:
    read = read_prediction(text)
    assert (read.said_vulnerable, read.confidence, read.findings) == (True, 0.9, (CLAIM,))


@pytest.mark.parametrize("text", [None, "", "no object", "[]", "{}", '{"verdict": NaN}', '{"note": "safe"}', "{" * 99])
def test_what_is_no_audit_says_nothing(text: str | None) -> None:
    read = read_prediction(text)
    assert (read.said_vulnerable, read.confidence, read.findings) == (None, None, ())


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        (audit()[:-1] + ",}", "a comma too many"),
        (audit().replace("0.9,", "0.9, // sure\n"), "a comment"),
        (audit(confidence="0.9", findings=[{**FINDING, "lines": ["7", "8"]}]), None),
        (json.dumps({"audit": json.loads(audit())}), "an object around it"),
        (audit().replace('"verdict"', '"Verdict"').replace('"findings"', '"FINDINGS"'), "the spelling of names"),
    ],
)
def test_an_audit_whose_form_alone_is_wrong_is_read(text: str, mended: str | None) -> None:
    assert read_prediction(text) == Prediction(True, 0.9, (CLAIM,), (mended,) if mended else ())


def test_a_finding_of_an_audit_that_was_cut_off_does_not_speak_for_the_audit() -> None:
    """Its finding is a whole object with a confidence; the audit's own confidence was never said."""
    cut = json.dumps({"findings": [{**FINDING, "confidence": 0.3}, FINDING], "verdict": "safe"})[:-30]
    assert read_prediction(cut) == NOTHING


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"verdict": "perhaps"}, Prediction(None, 0.9, (CLAIM,))),
        ({"verdict": ["safe"]}, Prediction(None, 0.9, (CLAIM,))),
        ({"verdict": "safe", "confidence": None}, Prediction(False, None, (CLAIM,))),
        ({"confidence": 90}, Prediction(True, None, (CLAIM,))),
        ({"confidence": "high"}, Prediction(True, None, (CLAIM,))),
        ({"confidence": True}, Prediction(True, None, (CLAIM,))),
        ({"findings": "none"}, Prediction(True, 0.9, ())),
        ({"findings": []}, Prediction(True, 0.9, ())),
        (
            {"findings": ["reentrancy", {"type": 3, "lines": "7"}]},
            Prediction(True, 0.9, (Claim(None, None, None, ()),) * 2),
        ),
        (
            {"findings": [{"lines": [True, -1, 0, 2.0, 2**40, 5]}]},
            Prediction(True, 0.9, (Claim(None, None, None, (2, 5)),)),
        ),
    ],
)
def test_what_is_not_in_the_form_that_was_asked_for_is_null(fields: dict[str, Any], expected: Prediction) -> None:
    assert read_prediction(audit(**fields)) == expected
