"""Labelling as a suite declares it: headings, what is shown, and answers in the words of the questions."""

import polars as pl
import pytest

from evalake.sdk import Labelling, Question, Stage
from evalake.suites.registry import suite, suite_names

LABELLED = [(name, labelling) for name in suite_names() if (labelling := suite(name).people) is not None]


@pytest.mark.parametrize(("near", "most", "tolerance"), [(None, 20.0, 2.0), (0.25, 1.0, 0.25), (0.0, 5.0, 0.0)])
def test_numbers_agree_within_a_tenth_of_the_most_unless_it_is_said(
    near: float | None, most: float, tolerance: float
) -> None:
    assert Question("q", "?", most=most, near=near).tolerance == tolerance


@pytest.mark.parametrize(("name", "labelling"), LABELLED, ids=[name for name, _ in LABELLED])
def test_what_a_suite_asks_has_a_column_each_that_no_text_has(name: str, labelling: Labelling) -> None:
    headings = [question.heading for question in labelling.questions]
    assert labelling.suite == name
    assert len(set(headings)) == len(headings)
    assert not set(headings) & set(labelling.material)
    assert all(question.title.endswith("?") for question in labelling.questions)


@pytest.mark.parametrize(("name", "labelling"), LABELLED, ids=[name for name, _ in LABELLED])
def test_answers_are_told_from_columns_of_the_results(name: str, labelling: Labelling) -> None:
    results = pl.DataFrame(schema=dict.fromkeys(suite(name).results.column, pl.Null))
    stages: list[Stage] = [stage for stage in labelling.stages if stage.each is None]
    for question in (question for stage in stages for question in stage.questions):
        for answer in question.told.values():
            assert {*answer.meta.root_names()} <= {*results.columns}
