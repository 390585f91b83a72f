"""Options that several commands share."""

import pytest

from evalake.cli.options import names, suite_with
from evalake.core.errors import UsageError


def test_a_list_is_given_by_comma() -> None:
    assert names("--models", "a, b ,,c") == ["a", "b", "c"]
    assert names("--models", None) is None


@pytest.mark.parametrize("text", ["", " , "])
def test_an_option_that_names_nothing_is_not_the_default(text: str) -> None:
    with pytest.raises(UsageError, match="--models names nothing"):
        names("--models", text)


def test_a_suite_is_the_one_wanted_or_the_first_that_has_such_a_thing() -> None:
    assert (suite_with("roadmap", ["a", "b"], None), suite_with("roadmap", ["a", "b"], "b")) == ("a", "b")
    with pytest.raises(UsageError, match="c has no roadmap: choose one of a, b"):
        suite_with("roadmap", ["a", "b"], "c")
