"""The lines of a sheet: which results are drawn, in which order, and what they show."""

from dataclasses import replace

import polars as pl
import pytest

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import HUMAN_LABELS
from evalake.sdk.sheets import LONGEST_TEXT, candidates
from tests.unit.sdk.quiz import LABELLING, results, said, sheet


def test_blind_lines_come_first_and_an_answer_is_drawn_at_random_beside_its_chance() -> None:
    lines = sheet(results(30), 10)
    blind, rest = lines[:10], lines[10:]
    assert {line["fill_in"] for line in blind} == {"true"}
    assert {line["fill_in"] for line in rest} == {"p"}
    assert all(line["answer"] is None for line in blind)
    assert [line["sample_hash"] for line in blind] == [line["sample_hash"] for line in rest]
    assert {line["model"] for line in rest} == {"m0", "m1"}
    for one, other in zip(blind, rest, strict=True):
        assert other["inclusion_probability"] == pytest.approx(one["inclusion_probability"] / 2)
    assert len({line["draw"] for line in lines}) == 1
    assert sheet(results(30), 10) == lines


def test_what_was_labelled_is_not_drawn_again_and_what_differs_is_rather_drawn() -> None:
    rows = results(30)
    labels = said([line | {"true": "yes"} for line in sheet(rows, 10) if line["fill_in"] == "true"])
    again = {line["sample_hash"] for line in sheet(rows, 30, labels)}
    assert len(again) == 20
    assert not again & {*labels["sample_hash"]}
    chances = {line["sample_hash"]: line["inclusion_probability"] for line in sheet(rows, 10) if line["p"] is None}
    assert len({round(chance, 6) for chance in chances.values()}) == 2


def test_a_text_is_as_long_as_a_cell_of_a_spreadsheet() -> None:
    rows = results(1, models=1).with_columns(question=pl.lit("x" * (LONGEST_TEXT + 1)))
    question = sheet(rows, 1)[0]["question"]
    assert question == "x" * LONGEST_TEXT + "\n[…]"


def test_what_is_not_counted_is_not_drawn_and_labels_of_another_suite_are_none_of_this() -> None:
    rows = results(4)
    only = replace(LABELLING, counted=pl.col("label"))
    nobody = conform([], HUMAN_LABELS)
    assert candidates(only, rows, nobody).height == 2
    labels = said([line | {"true": "yes"} for line in sheet(rows, 4) if line["fill_in"] == "true"])
    assert candidates(LABELLING, rows, labels).is_empty()
    assert candidates(LABELLING, rows, labels.with_columns(suite=pl.lit("other"))).height == 4
