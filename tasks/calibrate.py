"""Calibrate: measure judges on items with a known judgement.

The ledger answers known calls, so that a calibration is paid once, and later measurements use its replies.
"""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from math import isfinite
from pathlib import Path

import polars as pl

from evalake.core.errors import EvalakeError, SourceError, UsageError
from evalake.core.files import LARGEST_SHEET, read_file
from evalake.metrics.agreement import PANEL, agreement_table
from evalake.metrics.weights import Fit, fit_weights
from evalake.sdk import Calibration
from evalake.storage.lake import Lake
from evalake.storage.ledger import LedgerIndex
from evalake.storage.snapshots import find_snapshot, read_metrics
from evalake.suites.registry import suite as find_suite
from evalake.suites.registry import usable_suites
from evalake.tasks.call import recall_or_call
from evalake.tasks.converse import Conversation, replay_from_ledger
from evalake.tasks.failures import without_answer
from evalake.tasks.runtime.context import SEED, RunContext


class CalibrationError(EvalakeError):
    """A judge did not answer the whole calibration, so that it has no accuracy."""


def calibrated_suites() -> tuple[str, ...]:
    """List the suites that have a calibration set."""
    return tuple(each.name for each in usable_suites() if each.calibration is not None)


def calibrate(context: RunContext, judge: str) -> pl.DataFrame:
    """Call the judge for new items, and return its accuracy by decision.

    Raises CalibrationError for failed calls, UsageError where the suite has no calibration set.
    """
    calibration, conversations = _begin(context, judge)
    recall_or_call(context, conversations, LedgerIndex.read(context.lake))
    if problem := without_answer(conversations, judge, "another calibration"):
        raise CalibrationError(problem)
    return _accuracy(calibration, _pairs(calibration, conversations))


def accuracy_known(context: RunContext, judge: str) -> pl.DataFrame | None:
    """Compute the judge's accuracy by decision from the ledger alone; None where it was not calibrated."""
    pairs = pairs_known(context, judge)
    return None if pairs is None or context.suite.calibration is None else _accuracy(context.suite.calibration, pairs)


def pairs_known(context: RunContext, judge: str) -> pl.DataFrame | None:
    """Pair known decisions with the judge's from the ledger alone; None where it was not calibrated."""
    if context.suite.calibration is None:
        return None
    calibration, conversations = _begin(context, judge)
    index = LedgerIndex.read(context.lake)
    # For most judges, the first item shows that they were never asked
    parts = (conversations[:1], conversations[1:])
    if any(replay_from_ledger(context, part, index).unanswered for part in parts):
        return None
    return _pairs(calibration, conversations)


def _begin(context: RunContext, judge: str) -> tuple[Calibration, list[Conversation]]:
    calibration = context.suite.calibration
    if calibration is None:
        choices = ", ".join(calibrated_suites())
        raise UsageError(f"{context.suite_name} has no audits of known judgement: choose one of {choices}")
    return calibration, [Conversation(item, answered=answered) for item, answered in calibration.items(judge)]


def _pairs(calibration: Calibration, conversations: Sequence[Conversation]) -> pl.DataFrame:
    return calibration.compare([(conversation.item, conversation.answered) for conversation in conversations])


def _accuracy(calibration: Calibration, pairs: pl.DataFrame) -> pl.DataFrame:
    return agreement_table(pairs, calibration.decisions)


def calibration_notes(context: RunContext, judges: Iterable[str]) -> list[str]:
    """Write notes for readers of a run's metrics on its judges that were calibrated: how often each was right."""
    known = [(judge, accuracy_known(context, judge)) for judge in judges]
    return [f"{judge}, calibrated: {_words(table)}" for judge, table in known if table is not None]


def _words(table: pl.DataFrame) -> str:
    shares = ", ".join(
        f"{row['decision']} {row['agreement']:.0%} [{100 * row['ci_low']:.0f}–{row['ci_high']:.0%}]"
        for row in table.iter_rows(named=True)
    )
    return f"right where the right judgement is known: {shares}"


# Fit: the weights of a suite's index to a ranking of models by people.


def fit_to_ranking(lake: Lake, run_id: str | None, ranking: Path) -> Fit:
    """Fit the index of a run's suite (of the newest snapshot without a run) to a ranking file.

    Raises UsageError where the suite has no index or a ranked model was not measured, SourceError for a bad file.
    """
    snapshot = find_snapshot(lake, run_id=run_id)
    suite = find_suite(snapshot["suite"], lake)
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
        judge = min(of_model["judge"].unique(), key=lambda name: (not name.startswith(PANEL), name))
        by_model[str(model)] = dict(of_model.filter(judge=judge).select("metric", "value").iter_rows())
    return by_model
