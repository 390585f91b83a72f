"""A rule that cannot be meant is refused where it is written, in one sentence."""

from typing import Any

import pytest

from evalake.contracts.rule import Kind, Rule, TableKind, TableRule
from evalake.core.errors import ContractError


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        (Kind.PRESENT, {"values": ()}, "takes exactly these parameters: none"),
        (Kind.BETWEEN, {"minimum": 0}, "takes exactly these parameters: maximum, minimum"),
        (Kind.BETWEEN, {"minimum": None, "maximum": None}, "has no bound"),
        (Kind.ONE_OF, {}, "takes exactly these parameters: values"),
        (Kind.PRESENT_WHEN, {"other": "name"}, "takes exactly these parameters: other, values"),
        (Kind.PRESENT_WHEN, {"other": "note", "values": ()}, "names no values"),
        (Kind.MATCHES, {"pattern": "(a"}, "is not a regular expression"),
    ],
)
def test_a_rule_with_wrong_parameters_cannot_be_made(kind: Kind, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ContractError, match=message):
        Rule("rule", "name", kind, parameters)


def test_a_table_rule_with_wrong_parameters_cannot_be_made() -> None:
    with pytest.raises(ContractError, match="the rule rows has no bound"):
        TableRule("rows", TableKind.ROW_COUNT, {"minimum": None, "maximum": None})
    with pytest.raises(ContractError, match="the rule share of kind share_by_group takes exactly"):
        TableRule("share", TableKind.SHARE_BY_GROUP, {"column": "name"})
