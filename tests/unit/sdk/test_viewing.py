"""How suites show their answers: by columns that their rows have, and in kinds that the viewer knows."""

import polars as pl
import pytest

from evalake.contracts.engines.arrow import polars_schema
from evalake.sdk import Sample, Viewing
from evalake.suites.registry import suite, suite_names


@pytest.mark.parametrize("name", suite_names())
def test_what_is_shown_are_columns_of_the_rows(name: str) -> None:
    of = suite(name)
    assert {column for column, _ in of.presentation.viewing.shown} <= of.results.column.keys()
    further = {column for contract in of.scoring.extra_tables for column in contract.column}
    assert {column for column, _ in of.presentation.viewing.details} <= further


@pytest.mark.parametrize("name", suite_names())
def test_expressions_are_over_result_rows_and_give_what_the_viewer_takes(name: str) -> None:
    viewing = suite(name).presentation.viewing
    rows = pl.DataFrame(schema=polars_schema(suite(name).results))
    kinds = {"verdict": pl.String, "correct": pl.Boolean, "error": pl.String}
    expressions = {what: getattr(viewing, what) for what in kinds}
    given = rows.select(**{what: each for what, each in expressions.items() if each is not None})
    assert dict(given.schema) == {what: kinds[what] for what in given.columns}
    assert set(rows.select(**viewing.flags).schema.values()) <= {pl.Boolean()}
    if viewing.score is not None:
        assert rows.select(viewing.score).dtypes[0].is_numeric()


@pytest.mark.parametrize("name", suite_names())
def test_every_sample_has_a_text_to_read_and_a_brief_one(name: str) -> None:
    of = suite(name)
    (sample, *_) = of.data.read(of.data.starter[0]).samples
    assert of.presentation.viewing.input_text(sample).strip()
    assert of.presentation.viewing.input_brief is None or of.presentation.viewing.input_brief(sample.input).strip()


def test_a_suite_that_says_nothing_shows_the_input_as_it_is() -> None:
    plain = Viewing()
    assert plain.input_text(Sample("quiz", "d", "s", "2 + 2?")) == "2 + 2?"
    assert (plain.verdict, plain.flags, plain.shown, plain.input_is_code) == (None, {}, (), False)
