"""Coverage: when a run lacks too much, what is said of it, and that every surface has the same words."""

import json
from typing import Any

import pytest

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import RUN_COVERAGE
from evalake.reports import coverage


def covered(
    missing: int = 0,
    unread: int = 0,
    asked: int = 100,
    model: str = "a/b",
    judge: str | None = None,
    dataset: str = "d",
    **more: Any,
) -> coverage.Coverage:
    """Coverage of so many items, the missing ones of the kind `server`, the unread ones of `format_error`."""
    kinds = {"missing_kinds": {"server": missing} if missing else {}}
    kinds["without_verdict_kinds"] = {"format_error": unread} if unread else {}
    counts = {"asked": asked, "answered": asked - missing, "without_verdict": unread, "missing": missing}
    return coverage.Coverage(model, judge, dataset, **{**counts, **kinds, **more})


def test_at_the_bound_a_run_is_complete_and_says_what_it_lacks() -> None:
    rows = [covered(5)]
    assert coverage.problems(rows, coverage.DEFAULT) == []
    assert coverage.remarks(rows, coverage.DEFAULT) == [
        "a/b lacks 5 of 100 (5.0 %) items: 5 server (5.0 % may be missing)"
    ]


def test_above_the_bound_it_names_model_counts_kinds_and_how_to_accept_them() -> None:
    rows = [covered(6)]
    (said,) = coverage.problems(rows, coverage.DEFAULT)
    assert said == (
        "a/b lacks 6 of 100 (6.0 %) items: 6 server; only 5.0 % may be missing (--max-missing 0.06 accepts this)"
    )
    assert coverage.remarks(rows, coverage.DEFAULT) == []
    assert coverage.problems(rows, coverage.Tolerance(max_missing=0.06)) == []
    assert coverage.problems([covered(1)], coverage.Tolerance(max_missing=0)) != []


def test_each_model_and_judge_is_counted_alone_over_its_datasets() -> None:
    of_judges = [covered(judge="x", asked=50), covered(8, judge="y", asked=50)]
    assert [said.partition(" lacks")[0] for said in coverage.problems(of_judges, coverage.DEFAULT)] == [
        "a/b judged by y"
    ]
    assert coverage.problems([covered(8, dataset="one"), covered(0, dataset="two")], coverage.DEFAULT) == []  # 8 of 200


def test_quarantine_is_accepted_by_no_share() -> None:
    (said,) = coverage.problems([covered(9, missing_kinds={coverage.IN_QUARANTINE: 9})], coverage.DEFAULT)
    assert "--max-missing" not in said


def test_a_lost_label_is_a_problem_however_little_is_missing() -> None:
    rows = [covered(1, lost_labels=("malicious",))]
    (said,) = coverage.problems(rows, coverage.DEFAULT)
    assert "no answer to any malicious item of d" in said
    assert coverage.problems(rows, coverage.Tolerance(max_missing=1)) == []
    assert "no answer to any malicious item of d" in coverage.remarks(rows, coverage.Tolerance(max_missing=1))[-1]
    (alone,) = coverage.problems([covered(100, lost_labels=("malicious", "harmless"))], coverage.DEFAULT)
    assert "lacks 100 of 100" in alone  # which says it of every label


@pytest.mark.parametrize(("unread", "state"), [(50, "complete"), (51, "incomplete")])
def test_above_half_of_its_replies_without_a_verdict_a_model_ends_a_run_unless_that_is_accepted(
    unread: int, state: str
) -> None:
    rows = [covered(unread=unread)]
    assert bool(coverage.problems(rows, coverage.DEFAULT)) == (state == "incomplete")
    assert coverage.problems(rows, coverage.Tolerance(accept_unreadable=True)) == []
    said = [*coverage.problems(rows, coverage.DEFAULT), *coverage.remarks(rows, coverage.DEFAULT)]
    assert len(said) == 1
    assert f"a/b: {unread} of 100 ({unread}.0 %) replies hold no verdict: {unread} format_error" in said[0]
    assert coverage.remarks(rows, coverage.Tolerance(accept_unreadable=True)) != []  # it is said all the same


def test_the_share_of_unread_replies_is_of_the_replies_and_not_of_the_items() -> None:
    assert coverage.problems([covered(missing=4, unread=49, asked=100)], coverage.DEFAULT) != []  # 49 of 96


@pytest.mark.parametrize(("empty", "is_said"), [(20, False), (21, True)])
def test_one_frequent_kind_of_replies_without_a_verdict_is_named(empty: int, is_said: bool) -> None:
    rows = [covered(unread=empty + 5, without_verdict_kinds={"empty": empty, "format_error": 5})]
    said = coverage.remarks(rows, coverage.DEFAULT)
    assert bool(said) == is_said
    assert all(f"{empty} empty" in each and "format_error" not in each for each in said)


def test_rows_that_a_rule_left_out_are_said_and_no_problem() -> None:
    rows = [covered(left_out={"duplicate": 7}, refused={"not a JSON object": 3}, source_rows=110)]
    assert coverage.problems(rows, coverage.DEFAULT) == []
    (said,) = coverage.lines(rows)
    assert "7 (6.4 %) left out of the source: 7 duplicate" in said
    assert "3 (2.7 %) refused: 3 not a JSON object" in said


def test_a_line_for_each_row_that_lacks_something_and_one_for_all_others() -> None:
    rows = [covered(4, unread=2), covered(model="c"), covered(model="e")]
    assert list(coverage.lines(rows)) == [
        "a/b in d: 100 asked, 96 answered (96.0 %); 2 (2.0 %) without a verdict: 2 format_error; "
        "4 (4.0 %) missing: 4 server",
        "2 combinations of model, judge and source: all of 200 asked items answered, each with a verdict",
    ]
    assert list(coverage.lines([])) == []


def test_names_of_others_steer_no_terminal() -> None:
    rows = [covered(4, model="a\x1b]0;x\x07\nb", dataset="d\ne", missing_kinds={"k\n": 4})]
    said = [*coverage.lines(rows), *coverage.remarks(rows, coverage.DEFAULT), *coverage.as_table(rows)[1][0]]
    assert not any(character in text for text in said for character in "\x1b\n\x07")


def test_the_table_keeps_all_of_it_and_json_has_shares_null_of_nothing() -> None:
    row = covered(4, unread=2, judge="j", left_out={"duplicate": 1}, source_rows=101, lost_labels=("x",))
    frame = conform([{"run_id": "r", **coverage.to_table(each)} for each in (row, covered())], RUN_COVERAGE)
    assert [coverage.from_table(each) for each in frame.iter_rows(named=True)] == [row, covered()]
    first, nothing = coverage.as_objects([row, covered(asked=0)])
    assert (first["missing_share"], first["without_verdict_share"]) == (0.04, 2 / 96)
    assert (nothing["missing_share"], nothing["without_verdict_share"]) == (None, None)
    assert json.loads(json.dumps(first))["missing_kinds"] == {"server": 4}


def test_a_table_leaves_out_the_columns_that_say_nothing() -> None:
    headings, texts = coverage.as_table([covered(4), covered(model="c")])
    assert headings == ("model", "source", "asked", "answered", "without verdict", "missing")
    assert texts[0] == ("a/b", "d", "100", "96 (96.0 %)", "0 (0.0 %)", "4 (4.0 %): 4 server")
    assert {"judge", "lost labels", "source rows"} <= {*coverage.as_table([covered(judge="j", lost_labels=("x",))])[0]}
