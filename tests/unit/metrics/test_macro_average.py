"""Macro averages: every label counts alike, however many rows it has."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalake.metrics.composite import MacroAverage
from tests.unit.metrics.frames import estimate, one_group


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcd") | st.none()), min_size=1, max_size=40))
@settings(max_examples=50)
def test_a_macro_average_is_the_plain_mean_of_the_labels_rates(rows: list[tuple[bool, str | None]]) -> None:
    frame = one_group(hit=[r[0] for r in rows], label=pl.Series([r[1] for r in rows], dtype=pl.String))
    got = estimate(frame, MacroAverage(pl.col("hit"), pl.lit(True), pl.col("label")))
    labels = {label for _, label in rows if label is not None}
    rates = [np.mean([hit for hit, own in rows if own == label]) for label in labels]
    assert got["value"] == (pytest.approx(np.mean(rates)) if rates else None)
    assert got["n"] == sum(label is not None for _, label in rows)
