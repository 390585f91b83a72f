"""A contract that contradicts itself is refused where it is written; what follows from its columns is there."""

from typing import Any, Literal

import pytest
from pydantic import Field

from evalake.contracts.contract import LONGEST_FOLDER, Added, Contract, Renamed, RowModel, fits_folder
from evalake.contracts.rule import Kind, Rule, TableKind, TableRule
from evalake.core.errors import ContractError


class SmallRow(RowModel):
    """A row."""

    name: str = Field(description="The key.")
    note: str | None = Field(description="A note.")
    size: int | None = Field(description="A size.")
    share: float | None = Field(description="A share.")


def small(**changes: Any) -> Contract:
    return Contract(**{"table": "small", "row": SmallRow, "key": ("name",), "description": "Small.", **changes})


class OddRow(RowModel):
    """A row that no table can hold."""

    name: str = Field(description="The key.")
    parts: dict[str, str] = Field(description="Nested.")


class WordsRow(RowModel):
    """A row with a list that no rule holds to its words."""

    name: str = Field(description="The key.")
    parts: list[Literal["yes", "no"]] = Field(description="Words.")


class UntypedRow(RowModel):
    """A row with a list of anything."""

    name: str = Field(description="The key.")
    parts: list = Field(description="Anything.")  # type: ignore[type-arg]


class TakenRow(RowModel):
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
        ({"changes": (Added(("name",)),)}, "the added column name may not be null"),
        ({"row": OddRow}, "no table can hold the type of the column parts"),
        ({"row": WordsRow}, "no table can hold the type of the column parts"),
        ({"row": UntypedRow}, "no table can hold the type of the column parts"),
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


class ManyKindsRow(RowModel):
    """One column of each kind."""

    name: str = Field(description="The key.")
    word: Literal["yes", "no"] | None = Field(description="A word.")
    parts: list[int] = Field(description="Numbers.")


def test_a_column_says_its_type_without_details() -> None:
    columns = small(row=ManyKindsRow).column
    assert [(column.name, column.base, column.nullable) for column in columns.values()] == [
        ("name", str, False),
        ("word", str, True),
        ("parts", list, False),
    ]
    assert [column.element for column in columns.values()] == [str, str, int]
    assert [column.allowed for column in columns.values()] == [None, ("yes", "no"), None]


def test_versions_and_former_names_follow_from_the_changes() -> None:
    changed = small(changes=(Renamed("tiny"), Added(("note",)), Renamed("little", {"n": "note"})))
    assert (small().schema_version, changed.schema_version) == (1, 4)
    assert changed.former_tables == ("little", "tiny")


def test_a_folder_can_be_named_after_what_is_short_enough_when_it_is_percent_encoded() -> None:
    assert fits_folder("a" * LONGEST_FOLDER)
    assert not fits_folder("a" * (LONGEST_FOLDER + 1))
    assert not fits_folder("\u00e9" * (LONGEST_FOLDER // 6 + 1))  # two bytes, each of which takes three characters
