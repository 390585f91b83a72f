"""A rule or a contract that cannot be meant is refused where it is written, in one sentence."""

from typing import Any

import pytest
from pydantic import Field

from contracts.compile.words import describe
from contracts.contract import Contract, Row
from contracts.rule import Kind, Rule, TableKind, TableRule
from core.errors import ContractError
from tests.contracts.examples import EXAMPLE


class SmallRow(Row):
    """A row."""

    name: str = Field(description="The key.")
    note: str | None = Field(description="A note.")
    size: int | None = Field(description="A size.")
    share: float | None = Field(description="A share.")


def small(**changes: Any) -> Contract:
    return Contract(**{"table": "small", "row": SmallRow, "key": ("name",), "description": "Small.", **changes})


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


class OddRow(Row):
    """A row that no table can hold."""

    name: str = Field(description="The key.")
    parts: dict[str, str] = Field(description="Nested.")


class TakenRow(Row):
    """A row with a name that the audit needs."""

    name: str = Field(description="The key.")
    broken: str = Field(description="Taken.")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"key": ()}, "it has no key"),
        ({"key": ("absent",)}, "the row has no column absent"),
        ({"key": ("note",)}, "the key column note may be null"),
        ({"partition_by": ("absent",)}, "the row has no column absent"),
        ({"row_rules": (Rule("r", "absent", Kind.PRESENT),)}, "the row has no column absent"),
        ({"row_rules": (Rule("r", "size", Kind.NOT_ABOVE, {"other": "absent"}),)}, "the row has no column absent"),
        ({"row_rules": (Rule("r", "size", Kind.NOT_ABOVE, {"other": "share"}),)}, "columns of different types"),
        ({"row_rules": (Rule("r", "size", Kind.NOT_BLANK),)}, "does not fit the type of size"),
        ({"row_rules": (Rule("r", "size", Kind.FINITE),)}, "does not fit the type of size"),
        ({"row_rules": (Rule("r", "note", Kind.EMPTY),)}, "does not fit the type of note"),
        ({"row_rules": (Rule("name_present", "name", Kind.PRESENT),)}, "two rules are called name_present"),
        ({"extra_table_rules": (TableRule("t", TableKind.UNIQUE, {"columns": ("absent",)}),)}, "no column absent"),
        ({"row": OddRow}, "no table can hold the type of the column parts"),
        ({"row": TakenRow}, "a column cannot be called broken"),
    ],
)
def test_a_contract_that_contradicts_itself_cannot_be_made(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ContractError, match=f"^the contract of table small contradicts itself: .*{message}"):
        small(**changes)


def test_rules_follow_from_the_types() -> None:
    rules = {rule.id: rule.kind for rule in small().rules}
    assert rules == {"name_present": Kind.PRESENT, "share_finite": Kind.FINITE}
    assert [rule.id for rule in small().table_rules] == ["key_unique"]
    assert small(append_only=True).table_rules == ()


def test_every_rule_can_be_said_in_words() -> None:
    words = {rule.id: describe(rule) for rule in (*EXAMPLE.rules, *EXAMPLE.table_rules)}
    assert words["needed_present"] == "needed is not null"
    assert words["text_not_blank"] == "text holds more than white space"
    assert words["number_finite"] == "number is a finite number"
    assert words["count_between"] == "count is between 0 and 10"
    assert words["ceiling_between"] == "ceiling is at most 3"
    assert words["code_matches"] == "code is of the form [0-9a-f]{2}(?:-.+)?"
    assert words["low_not_above"] == "low is not above high"
    assert words["reason_present"] == 'reason is not null where state is failed or it\'s or say "x"'
    assert words["error_absent"] == "error is null where flag is true"
    assert words["items_empty"] == "items is an empty list"
    assert words["key_unique"] == "no two rows agree in name"
    assert words["rows"] == "the number of rows is between 1 and 1000"
    assert words["failed_share"] == "in no word do more than 50% of the rows say that state is failed"
    assert len(set(words.values())) == len(words)
