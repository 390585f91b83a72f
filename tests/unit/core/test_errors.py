"""Errors: what was given wrong exits with 2, work that failed with 1."""

import inspect

import pytest

from evalake.core import errors
from evalake.core.errors import EvalakeError, InputError

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, EvalakeError)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_exits_with_2_where_something_given_is_to_be_changed(kind: type[EvalakeError]) -> None:
    assert kind.exit_code == (2 if issubclass(kind, InputError) else 1)
    assert str(kind("the lake x cannot be read")) == "the lake x cannot be read"


def test_wrong_options_names_configuration_and_sql_are_what_was_given() -> None:
    given = {kind.__name__ for kind in KINDS if kind.exit_code == 2}
    assert {"UsageError", "ConfigurationError", "SourceError", "QueryError"} <= given
    assert not {"LakeError", "ContractError", "MetricError", "SuiteError"} & given
