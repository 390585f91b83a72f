"""Drawing: known chances, and what labels of several draws together stand for."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.core.errors import UsageError
from evalake.metrics.compute import Metric, measure
from evalake.metrics.estimators import WeightedRate
from evalake.sdk.dataset import draw, inclusion, represented

pytestmark = pytest.mark.slow

DAY = datetime(2026, 1, 1, tzinfo=UTC)


@given(st.lists(st.floats(1, 20), min_size=1, max_size=60), st.integers(1, 80))
def test_chances_sum_to_the_size_and_never_exceed_one(weights: list[float], size: int) -> None:
    chance = inclusion(np.array(weights), size)
    assert chance.sum() == pytest.approx(min(size, len(weights)))
    assert ((chance > 0) & (chance <= 1 + 1e-12)).all()
    order = np.argsort(weights)
    assert (np.diff(chance[order]) >= -1e-12).all()


def test_each_audit_is_drawn_as_often_as_its_chance_says() -> None:
    frame = pl.DataFrame({"n": range(12), "weight": [1.0] * 8 + [5.0] * 4})
    times, draws = np.zeros(12), 1500
    for seed in range(draws):
        drawn = draw(frame, 4, seed)
        assert drawn.height == 4
        times[drawn["n"].to_numpy()] += 1
    expected = draw(frame, 4, 0).select("n", "inclusion_probability")
    for number, chance in expected.iter_rows():
        assert times[number] / draws == pytest.approx(chance, abs=0.04)
    assert draw(frame, 4, 5).equals(draw(frame, 4, 5))


def test_a_sample_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="1 or more"):
        draw(pl.DataFrame({"weight": [1.0]}), 0, 1)
    assert draw(pl.DataFrame({"weight": []}, schema={"weight": pl.Float64}), 3, 1).is_empty()


def labelled(units: pl.DataFrame, sizes: tuple[int, ...], seed: int) -> pl.DataFrame:
    """Labels of several draws, each made when those of the ones before have landed."""
    done = (
        units.clear()
        .select("n")
        .with_columns(inclusion_probability=pl.lit(0.0), draw=pl.lit(""), labelled_at=pl.lit(DAY), label_id=pl.lit(""))
    )
    for number, size in enumerate(sizes):
        drawn = draw(units.join(done, on="n", how="anti"), size, seed + number)
        said = drawn.select("n", "inclusion_probability", "draw", labelled_at=DAY + timedelta(number))
        done = pl.concat([done, said.with_columns(label_id=pl.col("n").cast(pl.String))])
    return done


@pytest.mark.parametrize("sizes", [(60,), (30, 150, 40)])
def test_agreement_is_that_of_all_results_however_often_was_drawn(sizes: tuple[int, ...]) -> None:
    """Of 1,000 results judges and people agree on .911; those that they differ on are rather drawn."""
    units = pl.DataFrame({"n": range(1000)}).with_columns(ok=pl.col("n") >= 89)
    units = units.with_columns(weight=pl.when("ok").then(1.0 + (pl.col("n") % 7 == 0)).otherwise(2.2))
    frames = []
    for seed in range(100):
        labels = labelled(units.select("n", "weight"), sizes, 100 * seed)
        frame = represented(labels.lazy(), ["n"]).collect().join(units, on="n")
        frames.append(frame.with_columns(model=pl.lit(seed), judge=pl.lit("j")))
    metric = Metric("agreement", WeightedRate(pl.col("ok"), weight=pl.col("human_weight")))
    measured = measure(pl.concat(frames), [metric])
    assert measured.height == 100
    assert np.mean([frame["ok"].mean() for frame in frames]) < 0.875
    assert np.mean(measured["value"].to_list()) == pytest.approx(0.911, abs=0.006)
    assert measured.select(pl.lit(0.911).is_between("ci_low", "ci_high").sum()).item() / 100 >= 0.92


def test_what_was_picked_stands_for_itself_and_what_was_drawn_before_for_itself_in_later_draws() -> None:
    rows = [("a", None, None, 0), ("b", 0.5, "first", 1), ("c", 0.25, "second", 2), ("d", 0.5, "second", 3)]
    labels = pl.DataFrame(
        [(n, p, drawn, DAY + timedelta(day), n) for n, p, drawn, day in rows],
        schema=["n", "inclusion_probability", "draw", "labelled_at", "label_id"],
        orient="row",
    )
    weight = dict(represented(labels.lazy(), ["n"]).collect().iter_rows())
    third = 1 / 3
    assert weight == pytest.approx({"a": 1.0, "b": third * 2 + 2 * third, "c": 2 * third * 4, "d": 2 * third * 2})
    alone = represented(labels.filter(pl.col("draw") == "first").lazy(), ["n"]).collect()
    assert alone["human_weight"].to_list() == [2.0]
