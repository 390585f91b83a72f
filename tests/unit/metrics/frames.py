"""Small frames and short cuts for the tests of this folder."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from evalake.metrics.compute import Metric, measure
from evalake.metrics.estimator import Estimator


def one_group(**columns: Any) -> pl.DataFrame:
    """A frame of one model without a judge."""
    return pl.DataFrame(columns).with_columns(model=pl.lit("m"), judge=pl.lit(None, pl.String))


def estimate(frame: pl.DataFrame, estimator: Estimator, **options: Any) -> dict[str, Any]:
    """The single row that measures `estimator` in a frame of one group."""
    return measure(frame, [Metric("it", estimator)], **options).row(0, named=True)


def estimates(frames: Sequence[pl.DataFrame], estimator: Estimator) -> list[dict[str, Any]]:
    """The row that measures `estimator` in each of several frames of one group, all measured at once."""
    together = pl.concat([frame.with_columns(model=pl.lit(number)) for number, frame in enumerate(frames)])
    rows = measure(together, [Metric("it", estimator)]).to_dicts()
    assert [row["model"] for row in rows] == list(range(len(frames)))
    return rows


def guard_samples(n: int, seed: int = 0) -> pl.DataFrame:
    """Random results of two models, one of them with two judges, for the metrics of `guard.py`."""
    rng = np.random.default_rng(seed)
    harmful = rng.random(n) < 0.6
    categories = rng.choice(["file-read", "upload", "shell"], n)
    cost = np.round(rng.random(n) * 0.01, 6)
    return pl.DataFrame(
        {
            "model": rng.choice(["a", "b"], n),
            "judge": [str(j) if j != "none" else None for j in rng.choice(["none", "j", "k"], n)],
            "label": np.where(harmful, "malicious", "harmless"),
            "category": [str(c) if h else None for c, h in zip(categories, harmful, strict=True)],
            "dataset": rng.choice(["x", "y"], n),
            "verdict": rng.choice(["ALLOW", "WARN", "BLOCK", "TIMEOUT_ERROR"], n),
            "latency_ms": [float(x) if x > 500 else None for x in np.round(rng.gamma(3, 1000, n), 1)],
            "cost_usd": cost,
            "cluster": rng.integers(0, max(1, n // 4), n),
        },
        strict=False,
    )
