"""The audit refuses exactly the rows that break a rule, names the rules, and stops a publication when it must."""

import polars as pl
import pytest
from hypothesis import given, settings
from polars.testing import assert_frame_equal

from evalake.contracts.audit import Audit, audit, audit_table, require
from evalake.contracts.contract import Contract
from evalake.contracts.engines.arrow import conform
from evalake.contracts.rule import Kind, Severity, TableKind, TableRule
from evalake.core.errors import ContractError, SchemaMismatchError
from tests.unit.contracts.examples import EDGES, EXAMPLE, ExampleRow, edge_frame, row
from tests.unit.contracts.strategies import frames


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
    with pytest.raises(SchemaMismatchError, match="table example: the frame has no column text"):
        audit(frame.drop("text"), EXAMPLE)
    with pytest.raises(SchemaMismatchError, match="table example, column count: expected Int64, found Int32"):
        audit(frame.with_columns(pl.col("count").cast(pl.Int32, strict=False)), EXAMPLE)
