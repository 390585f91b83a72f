"""Contracts: their rules, patterns, and audits by them."""

import re
import sys
import unicodedata
from typing import Any, Literal

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from pydantic import Field

from evalake.contracts.audit import Audit, audit, audit_table, require
from evalake.contracts.contract import LONGEST_FOLDER, Added, Contract, Renamed, RowModel, fits_folder
from evalake.contracts.engines.arrow import conform
from evalake.contracts.rule import WHITE_SPACE, Kind, Rule, Severity, TableKind, TableRule, whole
from evalake.contracts.tables.metrics import DAY_IS_DATE
from evalake.core.errors import ContractError, SchemaMismatchError
from tests.unit.contracts.examples import EDGES, EXAMPLE, ExampleRow, edge_frame, row
from tests.unit.contracts.strategies import frames

# A contract that contradicts itself is refused where it is written; what follows from its columns is there.


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


# The audit refuses exactly the rows that break a rule, names the rules, and stops a publication when it must.


def result(found: Audit, rule_id: str) -> tuple[bool, int, int]:
    (one,) = [each for each in found.results if each.rule_id == rule_id]
    return one.passed, one.rows_checked, one.rows_failed


def test_every_kind_of_rule_has_edges() -> None:
    rules = {rule.id: rule for rule in EXAMPLE.rules}
    assert {rules[rule_id].kind for rule_id in EDGES} == set(Kind)
    assert rules.keys() - EDGES.keys() == {"name_present"} | {
        f"{name}_finite" for name in ("share", "floor", "low", "high")
    }


@pytest.mark.parametrize("rule_id", EDGES)
def test_a_rule_holds_at_its_edges(rule_id: str) -> None:
    kept, broken = EDGES[rule_id]
    all_kept = audit(conform([row(**values) for values in kept], EXAMPLE), EXAMPLE)
    assert result(all_kept, rule_id) == (True, len(kept), 0)
    for values in broken:
        found = audit(conform([row(), row(**values)], EXAMPLE), EXAMPLE)
        assert result(found, rule_id) == (False, 2, 1), values


def test_bad_rows_name_every_rule_they_broke_and_warnings_refuse_nothing() -> None:
    rows = [row(), row(needed=None, count=11, share=-1.0, part=2, total=1), row(part=2, total=1)]
    found = audit(conform(rows, EXAMPLE), EXAMPLE)
    assert found.good.height == 2
    assert found.bad["broken"].to_list() == [["needed_present", "count_between", "share_between"]]
    assert result(found, "part_not_above") == (False, 3, 2)


def test_a_critical_row_rule_refuses_the_row_and_stops_the_publication() -> None:
    found = audit(conform([row(), row(name="m", ceiling=4)], EXAMPLE), EXAMPLE)
    assert found.bad["broken"].to_list() == [["ceiling_between"]]
    with pytest.raises(
        ContractError, match=r"^table example: nothing was published, because 1 of 2 rows break .*at most 3$"
    ):
        require(found)


@pytest.mark.slow
@given(frames())
@settings(max_examples=60)
def test_good_and_bad_together_are_the_rows_that_came(frame: pl.DataFrame) -> None:
    numbered = frame.with_row_index("came")
    found = audit(numbered, EXAMPLE)
    together = pl.concat([found.good, found.bad.drop("broken")]).sort("came")
    assert_frame_equal(together, numbered)
    assert found.good["came"].is_sorted()
    assert found.bad["came"].is_sorted()
    assert found.bad["broken"].list.len().min() != 0
    again = audit(found.good, EXAMPLE)
    assert again.bad.is_empty()
    assert_frame_equal(again.good, found.good)


def test_an_empty_frame_has_no_bad_rows_and_breaks_only_the_row_count() -> None:
    found = audit(conform([], EXAMPLE), EXAMPLE)
    assert found.good.schema == conform([], EXAMPLE).schema
    assert found.bad.is_empty()
    assert [each.rule_id for each in found.results if not each.passed] == ["rows"]
    with pytest.raises(
        ContractError, match="a table of 0 rows breaks the rule that the number of rows is between 1 and 1000"
    ):
        require(found)


def test_table_rules_are_held_to_the_good_rows_only() -> None:
    found = audit(conform([row(name="a"), row(name="a", needed=None)], EXAMPLE), EXAMPLE)
    assert result(found, "key_unique") == (True, 1, 0)
    require(found)


def test_repeated_keys_stop_the_publication_in_one_sentence() -> None:
    found = audit(conform([row(name="a"), row(name="a"), row(name="b")], EXAMPLE), EXAMPLE)
    assert result(found, "key_unique") == (False, 3, 2)
    with pytest.raises(
        ContractError, match=r"^table example: .* 2 of 3 rows break the rule that no two rows agree in name$"
    ):
        require(found)


def test_a_null_in_a_key_is_like_no_other() -> None:
    by_pair = Contract(
        "pairs",
        ExampleRow,
        ("name",),
        "Pairs.",
        extra_table_rules=(TableRule("pair", TableKind.UNIQUE, {"columns": ("text", "count")}),),
    )
    rows = [
        row(name=str(n), text=text, count=count) for n, (text, count) in enumerate([("a", 1), ("a", None), ("a", None)])
    ]
    _, pair = audit_table(conform(rows, by_pair), by_pair)
    assert pair.passed
    rows.append(row(name="4", text="a", count=1))
    _, pair = audit_table(conform(rows, by_pair), by_pair)
    assert pair.rows_failed == 2


@pytest.mark.parametrize(
    ("height", "passed", "failed"), [(0, False, 0), (1, True, 0), (1000, True, 0), (1003, False, 3)]
)
def test_row_counts_are_inclusive_bounds(height: int, passed: bool, failed: int) -> None:
    frame = conform([row(name=str(number)) for number in range(height)], EXAMPLE)
    (found,) = [each for each in audit_table(frame, EXAMPLE) if each.rule_id == "rows"]
    assert (found.passed, found.rows_failed) == (passed, failed)


def test_a_share_above_the_bound_in_one_group_is_a_warning_that_counts_the_rows_to_blame() -> None:
    states = {"yes": ["failed", "failed", "done"], "no?": ["failed", "done"], None: ["done"] * 3}
    rows = [
        row(name=f"{word} {number}", word=word, state=state, reason="r")
        for word, of_word in states.items()
        for number, state in enumerate(of_word)
    ]
    found = audit(conform(rows, EXAMPLE), EXAMPLE)
    (share,) = [each for each in found.results if each.rule_id == "failed_share"]
    assert (share.passed, share.rows_checked, share.rows_failed) == (False, 8, 2)
    assert share.severity is Severity.WARNING
    assert share.message is not None
    assert "in no word do more than 50% of the rows say that state is failed" in share.message
    require(found)


def test_columns_beyond_the_contract_ride_along() -> None:
    frame = conform([row(), row(needed=None)], EXAMPLE).with_columns(line=pl.Series([7, 8]))
    found = audit(frame, EXAMPLE)
    assert found.good["line"].to_list() == [7]
    assert found.bad["line"].to_list() == [8]


def test_a_frame_of_another_schema_is_not_audited() -> None:
    frame = edge_frame()
    with pytest.raises(SchemaMismatchError, match="table example, column count: expected Int64, found Int32"):
        audit(frame.with_columns(pl.col("count").cast(pl.Int32, strict=False)), EXAMPLE)


# Patterns mean the same to Polars and to Python, and white space is what Unicode calls so.

PATTERNS = ["[0-9a-f]{64}", DAY_IS_DATE.parameters["pattern"], "a|b", "(?:a|b)+c?", "[^a-z]", "a.b", "é+", ".*"]


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "*a", "a{3,2}", "a\\"])
def test_what_is_no_expression_is_refused_when_the_rule_is_made(pattern: str) -> None:
    with pytest.raises(ContractError, match=r"^the pattern .* is not a regular expression"):
        Rule("no_pattern", "column", Kind.MATCHES, {"pattern": pattern})


@given(
    st.sampled_from(PATTERNS), st.lists(st.text(alphabet="ab-x.é\n\r\t 0f\u2028\U0001f600", max_size=4), max_size=30)
)
def test_polars_and_python_agree(pattern: str, texts: list[str]) -> None:
    by_polars = pl.Series(texts, dtype=pl.String).str.contains(whole(pattern)).to_list()
    assert by_polars == [re.fullmatch(pattern, text) is not None for text in texts]


def test_white_space_is_what_unicode_calls_white_space() -> None:
    def is_white_space(character: str) -> bool:
        # The property's definition: the separators, and the controls that move to another place or line.
        return unicodedata.category(character) in ("Zs", "Zl", "Zp") or character in "\t\n\v\f\r\x85"

    assert set(WHITE_SPACE) == {chr(code) for code in range(sys.maxunicode + 1) if is_white_space(chr(code))}


# A rule that cannot be meant is refused where it is written, in one sentence.


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        (Kind.PRESENT, {"values": ()}, "takes exactly these parameters: none"),
        (Kind.BETWEEN, {"minimum": 0}, "takes exactly these parameters: maximum, minimum"),
        (Kind.BETWEEN, {"minimum": None, "maximum": None}, "has no bound"),
        (Kind.ONE_OF, {}, "takes exactly these parameters: values"),
        (Kind.PRESENT_WHEN, {"other": "name"}, "takes exactly these parameters: other, values"),
        (Kind.PRESENT_WHEN, {"other": "note", "values": ()}, "names no values"),
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
