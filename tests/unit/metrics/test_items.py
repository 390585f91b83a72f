"""Items that discriminate the wrong way are found, and small slices are drawn towards the others."""

import numpy as np
import polars as pl
from scipy.stats import pearsonr

from evalake.metrics.items import ITEM_REST, item_rest, shrunk, with_shrunk


def answers(models: int, wrong_labels: set[int], items: int = 60, seed: int = 1) -> pl.DataFrame:
    """Answers of models of unequal skill; where a label is wrong, who is right counts as wrong."""
    rng = np.random.default_rng(seed)
    right = rng.random((items, models)) < np.linspace(0.1, 0.95, models)
    right[list(wrong_labels)] = ~right[list(wrong_labels)]
    grid = np.indices(right.shape).reshape(2, -1)
    named = {"sample_hash": [f"s{n:02d}" for n in grid[0]], "model": [f"m{n:02d}" for n in grid[1]]}
    return pl.DataFrame({**named, "correct": right.ravel()})


def test_items_with_wrong_labels_correlate_with_the_rest_the_wrong_way() -> None:
    frame = answers(20, {3, 17})
    rows = item_rest(frame)
    assert set(rows["sample_hash"].head(2)) == {"s03", "s17"}
    assert rows["ci_high"][0] < 0
    table = frame.with_columns(pl.col("correct").cast(pl.Float64)).pivot(
        on="model", index="sample_hash", values="correct"
    )
    share = table.sort("sample_hash").drop("sample_hash").to_numpy()
    by_hand = pearsonr(share[3], np.delete(share, 3, axis=0).mean(axis=0))
    interval = by_hand.confidence_interval()
    row = rows.filter(sample_hash="s03").row(0, named=True)
    assert np.allclose([row[name] for name in ("correlation", "ci_low", "ci_high")], [by_hand.statistic, *interval])


def test_fewer_than_eight_models_say_nothing_of_items() -> None:
    assert item_rest(answers(7, {3})).is_empty()
    assert item_rest(answers(8, {3})).schema == pl.Schema(ITEM_REST)
    assert not item_rest(answers(8, {3})).is_empty()


def test_shrunk_rates_of_small_slices_hold_and_are_nearer_than_raw_ones() -> None:
    """Sixteen parts of ten samples each, whose rates vary as the model says."""
    rng, held, raw, near = np.random.default_rng(2), 0, 0.0, 0.0
    for _ in range(60):
        truth = rng.beta(8, 2, 16)
        seen = rng.binomial(10, truth) / 10
        known = shrunk(list(seen), [10.0] * 16)
        assert known is not None
        value, low, high = known
        held += int(((low <= truth) & (truth <= high)).sum())
        raw, near = raw + float(((seen - truth) ** 2).sum()), near + float(((value - truth) ** 2).sum())
    assert 0.93 <= held / (60 * 16) <= 0.98
    assert near < 0.7 * raw
    assert shrunk([0.5] * 4, [10.0] * 4) is None


def test_only_parts_of_proportions_are_shrunk() -> None:
    of = {"model": "m", "judge": None, "n_eff": 10.0}
    rows = [{**of, "metric": "rate", "slice": "part", "slice_value": str(n), "value": n / 10} for n in range(6)]
    rows += [{**of, "metric": "rate", "slice": "all", "slice_value": "", "value": 0.3}]
    rows += [{**of, "metric": "mean", "slice": "part", "slice_value": str(n), "value": 0.3} for n in range(6)]
    shown = with_shrunk(pl.DataFrame(rows, schema_overrides={"judge": pl.String}), ["rate"])
    assert shown["shrunk"].is_not_null().to_list() == [True] * 6 + [False] * 7
    first, last = shown["shrunk"][0], shown["shrunk"][5]
    assert 0.0 < first < last < 0.5
