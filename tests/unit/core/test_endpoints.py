"""The words for endpoints: no name of the user's, and no address, can pass for one of them."""

import pytest

from evalake.core.configuration import WORDS, Configuration


@pytest.mark.parametrize("name", [*WORDS, "Lab", "a b", "http://x", "x" * 65])
def test_names_that_could_pass_for_something_else_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="endpoint"):
        Configuration.model_validate({"models": {"openai/m": {"endpoint": name}}})
