"""Baselines answer in the suite's forms, and refuse a prompt without its blocks."""

import pytest

from evalake.models.request import BaselineRefusedError
from evalake.suites.solidity_audit.baselines import BASELINES


def test_without_its_blocks_a_prompt_is_refused() -> None:
    with pytest.raises(BaselineRefusedError, match="no contract"):
        BASELINES["solidity-patterns"]([])
    with pytest.raises(BaselineRefusedError, match="no audit"):
        BASELINES["overlap-judge"]([{"role": "user", "content": "x"}])
    with pytest.raises(BaselineRefusedError, match="no audit"):
        BASELINES["wording-judge"]([{"role": "user", "content": "x"}])
