"""Fit: the weights of a suite's index to a ranking of models by people."""

import csv
import json
from collections.abc import Mapping
from io import StringIO
from math import isfinite
from pathlib import Path

import polars as pl

from core.errors import SourceError, UsageError
from core.files import LARGEST_SHEET, read_file
from metrics.weights import Fit, fit_weights
from storage.lake import Lake
from storage.snapshots import find_snapshot, read_metrics
from suites.registry import suite as find_suite
from tasks.runtime.context import SEED


def fit_to_ranking(lake: Lake, run_id: str | None, ranking: Path) -> Fit:
    """Fit the index of a run's suite (of the newest snapshot without a run) to a ranking file.

    Raises UsageError where the suite has no index or a ranked model was not measured, SourceError for a bad file.
    """
    snapshot = find_snapshot(lake, run_id=run_id)
    suite = find_suite(snapshot["suite"])
    if suite.metrics.index is None:
        raise UsageError(f"{suite.name} has no index whose weights could be fitted")
    ranks = read_ranking(ranking)
    measured = _metrics_by_model(lake, snapshot["snapshot_id"])
    if missing := sorted(ranks.keys() - measured.keys()):
        raise UsageError(f"the model {missing[0]} is ranked, but the run {snapshot['run_id']} did not measure it")
    parts = [suite.metrics.index.components(measured[model]) for model in ranks]
    components = {name: [part[name] for part in parts] for name in parts[0]}
    options = {**suite.options, **json.loads(snapshot["options"])}
    return fit_weights(components, list(ranks.values()), suite.metrics.index.weights(options), SEED)


def read_ranking(file: Path) -> dict[str, float]:
    """Read people's ranking: a CSV file with the columns model and rank, 1 the best; equal ranks are no preference."""
    try:
        stream = StringIO(read_file(file, LARGEST_SHEET).decode("utf-8-sig"), newline="")
        rows = [(row["model"], float(row["rank"])) for row in csv.DictReader(stream)]
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise SourceError(f"the ranking {file} must be CSV with the columns model and rank: {error}") from error
    if not rows:
        raise SourceError(f"the ranking {file} is empty")
    for model, rank in rows:
        if not isfinite(rank):
            raise SourceError(f"the ranking {file} gives {model} the rank {rank}, which is none")
    ranks = dict(rows)
    if len(ranks) < len(rows):
        raise SourceError(f"the ranking {file} has a model twice: keep one line of each")
    return ranks


def _metrics_by_model(lake: Lake, snapshot_id: str) -> Mapping[str, Mapping[str, float | None]]:
    """Read the metrics of slice `all` by model; of several judges, the panel's or else the first by name."""
    by_model = {}
    rows = read_metrics(lake, snapshot_id).filter(pl.col("slice") == "all").with_columns(pl.col("judge").fill_null(""))
    for (model,), of_model in rows.group_by("model"):
        judge = min(of_model["judge"].unique(), key=lambda name: (not name.startswith("panel:"), name))
        by_model[str(model)] = dict(of_model.filter(judge=judge).select("metric", "value").iter_rows())
    return by_model
