"""Baselines answer in the suite's forms, and refuse a prompt without its blocks."""

import pytest

from evalake.models.request import BaselineRefusedError
from evalake.suites.solidity_audit.baselines import BASELINES
from evalake.suites.solidity_audit.replies import Prediction, read_prediction


@pytest.mark.parametrize("verdict", ["vulnerable", "safe"])
def test_trivial_auditors_say_the_same_of_every_contract(verdict: str) -> None:
    told = read_prediction(BASELINES[f"always-{verdict}"]([]))
    assert told == Prediction(verdict == "vulnerable", 1.0, ())


def test_without_its_blocks_a_prompt_is_refused() -> None:
    with pytest.raises(BaselineRefusedError, match="no contract"):
        BASELINES["solidity-patterns"]([])
    with pytest.raises(BaselineRefusedError, match="no audit"):
        BASELINES["overlap-judge"]([{"role": "user", "content": "x"}])
    with pytest.raises(BaselineRefusedError, match="no audit"):
        BASELINES["wording-judge"]([{"role": "user", "content": "x"}])
