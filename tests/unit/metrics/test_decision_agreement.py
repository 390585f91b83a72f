"""Agreement by decision: how often two say the same, and what is left of it beyond chance."""

import polars as pl
import pytest

from evalake.metrics.agreement import PAIRS, WEIGHED_PAIRS, agreement_table


def pairs(decision: str, words: list[tuple[str, str]], judge: str = "j") -> pl.DataFrame:
    rows = [(judge, decision, f"{decision} {n}", one, two, one == two) for n, (one, two) in enumerate(words)]
    return pl.DataFrame(rows, schema=PAIRS, orient="row")


def test_words_agree_so_often_and_so_much_beyond_chance() -> None:
    words = [("yes", "yes")] * 4 + [("no", "no")] * 4 + [("yes", "no"), ("no", "yes")]
    (row,) = agreement_table(pairs("found", words), ["found"]).to_dicts()
    assert (row["agreement"], row["n"], row["units"]) == (0.8, 10, 10)
    assert row["kappa"] == pytest.approx(0.6)
    assert row["ci_low"] < 0.8 < row["ci_high"]
    assert row["difference"] is None


def test_where_all_say_one_word_nothing_is_known_beyond_chance() -> None:
    (row,) = agreement_table(pairs("found", [("yes", "yes")] * 5), ["found"]).to_dicts()
    assert (row["agreement"], row["kappa"], row["ac1"]) == (1.0, None, None)


def test_rows_are_by_judge_then_in_the_order_of_decisions_that_there_are() -> None:
    every = pl.concat([pairs("a", [("x", "y")], "k"), pairs("b", [("x", "x")]), pairs("a", [("x", "x")])])
    table = agreement_table(every, ["b", "none", "a"])
    assert table.select("judge", "decision").rows() == [("j", "b"), ("j", "a"), ("k", "a")]


def test_pairs_that_stand_for_more_count_for_more_and_scores_have_a_distance() -> None:
    rows = [
        ("j", "points", "1", None, None, True, 3.0, 10.0, 10.0),
        ("j", "points", "2", None, None, False, 1.0, 10.0, 6.0),
    ]
    (row,) = agreement_table(pl.DataFrame(rows, schema=WEIGHED_PAIRS, orient="row"), ["points"]).to_dicts()
    assert (row["agreement"], row["difference"], row["n"]) == (0.75, pytest.approx(1.0), 2)
