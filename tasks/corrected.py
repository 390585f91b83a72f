"""Correct: what people, or a calibration, say of the rates that judges give, in the place of the raw ones."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import polars as pl

from evalake.contracts.tables import HUMAN_LABELS
from evalake.core.configuration import read_configuration
from evalake.metrics.compute import Metric, measure
from evalake.metrics.corrected import Corrected, Known, PPIEstimate, by_calibration, more_labels, with_corrections
from evalake.metrics.estimators import Rate
from evalake.sdk import Suite
from evalake.sdk.people import ANSWER, Correction
from evalake.storage.lake import Lake
from evalake.suites.registry import suite as find_suite
from evalake.tasks.calibrate import pairs_known
from evalake.tasks.measure import run_frame
from evalake.tasks.runtime.context import RunContext

Key = tuple[str, str | None, str]  # model, judge, metric
Corrections = Mapping[Key, Corrected]

ENDS = ("value", "se", "ci_low", "ci_high")
FEWEST_UNITS = 30


def corrections(
    lake: Lake, snapshot: Mapping[str, Any], own: pl.DataFrame | None = None, other: pl.DataFrame | None = None
) -> Corrections:
    """Correct every rate of a run that can be: by people's labels where there are enough, else by a calibration.

    Labels count that landed after the snapshot, too.

    Args:
        lake: The lake, whose ledger has the calibrations of judges.
        snapshot: The run's row of `snapshots`.
        own: Result rows; only these answers count.
        other: Those of another side; only samples that it has count.
    """
    suite, options = find_suite(snapshot["suite"], lake), json.loads(snapshot["options"])
    if not suite.metrics.corrected:
        return {}
    versions = {**json.loads(snapshot["pinned_versions"]), HUMAN_LABELS.table: lake.version(HUMAN_LABELS)}
    frame = run_frame(lake, suite.scored_by(snapshot["scorer_version"]), snapshot["run_id"], versions)
    if own is not None:
        frame = frame.join(own.select(ANSWER).unique(), on=ANSWER, how="semi", maintain_order="left")
    if other is not None:
        frame = frame.join(other.select("sample_hash").unique(), on="sample_hash", how="semi", maintain_order="left")
    found: dict[Key, Corrected] = {}
    calibrated = _Calibrated(lake, suite, snapshot["run_id"])
    metrics = {each.name: each for each in suite.all_metrics(options)}
    for (model, judge), rows in frame.group_by("model", "judge", maintain_order=True):
        for name, correction in suite.metrics.corrected.items():
            by_people = _by_people(rows, correction)
            known = by_people or calibrated.correct(rows, metrics.get(name), judge, correction)
            if known is not None:
                found[str(model), None if judge is None else str(judge), name] = known
    return found


def _by_people(rows: pl.DataFrame, correction: Correction) -> Corrected | None:
    estimate = correction.by_people(rows)
    if estimate is None:
        return None
    reliable = estimate.units >= FEWEST_UNITS and not estimate.marked
    how = f"by people's labels of {estimate.labels:,}{_advice(estimate, rows)}"
    ends = estimate.value, estimate.se, estimate.ci_low, estimate.ci_high
    return Corrected(*ends, estimate.units, how, reliable)


def _advice(estimate: PPIEstimate, rows: pl.DataFrame) -> str:
    """Say how many more labels would halve the interval."""
    scale = max(estimate.ci_high, 1.0)  # of scores of more than one point
    share = min(max(estimate.value / scale, 0.0), 1.0)
    floor = scale * sqrt(share * (1 - share) / max(rows["cluster"].n_unique(), 1))
    more = more_labels(estimate.se, floor, estimate.labels)
    return "; more labels do not halve the interval" if more is None else f"; {more:,} more would halve the interval"


@dataclass(frozen=True)
class _Calibrated:
    """The calibrations of a run's judges, from the ledger; a judge without one corrects nothing."""

    lake: Lake
    suite: Suite
    run_id: str

    def correct(
        self, rows: pl.DataFrame, metric: Metric | None, judge: Any, correction: Correction
    ) -> Corrected | None:
        """Correct the rate of a model by what is known of its judge; what it left unsaid is missing, as in the run."""
        if judge is None or correction.decision is None or metric is None or self.suite.calibration is None:
            return None
        context = RunContext(self.run_id, self.suite.name, self.lake, read_configuration())
        pairs = pairs_known(context, judge)
        if pairs is None:
            return None
        ours = pairs.filter(pl.col("decision") == correction.decision).drop_nulls(["first", "second"])
        truly, said = (pl.col(side).is_in(list(correction.true)) for side in ("first", "second"))
        parts = {"sensitivity": Rate(said, truly), "specificity": Rate(~said, ~truly)}
        of_judge = measure(ours, [Metric(*each) for each in parts.items()], groups=(), cluster="cluster")
        errors = [Known(row["value"], row["n_eff"]) for row in of_judge.iter_rows(named=True) if row["n"]]
        judged = rows.filter(correction.judged)
        raw = measure(judged, [replace(metric, slices=("all",))], groups=(), cluster="cluster").row(0, named=True)
        if len(errors) < len(parts) or not raw["n"] or raw["n_eff"] is None:
            return None
        known = by_calibration(Known(raw["value"], raw["n_eff"]), errors[0], errors[1], raw["units"])
        if known is None or rows.select(correction.judged.all()).item():
            return known
        share = measure(rows, [Metric("judged", Rate(correction.judged))], groups=(), cluster="cluster")
        return known.of_share(share.row(0, named=True))


def corrected_rows(metrics: pl.DataFrame, found: Corrections) -> pl.DataFrame:
    """Put corrected values with their intervals in the place of the raw ones, over all samples; slices stay raw."""
    rows = [_corrected(row, found) for row in metrics.iter_rows(named=True)]
    return pl.DataFrame(rows, schema=metrics.schema)


def _corrected(row: dict[str, Any], found: Corrections) -> dict[str, Any]:
    known = found.get((row["model"], row["judge"], row["metric"])) if row["slice"] == "all" else None
    if known is None:
        return row
    mine = {name: getattr(known, name) for name in (*ENDS, "units", "reliable")}
    return row | {name: value for name, value in (mine | {"n_eff": None}).items() if name in row}


def in_both(first: Corrections, second: Corrections) -> tuple[Corrections, Corrections]:
    """Keep the values that are corrected on both sides of a comparison; each side has one model."""
    sides = [{key[1:] for key in side} for side in (first, second)]
    both = sides[0] & sides[1]
    kept = [{key: each for key, each in side.items() if key[1:] in both} for side in (first, second)]
    return kept[0], kept[1]


def corrected_differences(rows: pl.DataFrame, first: Corrections, second: Corrections) -> pl.DataFrame:
    """Put corrected differences over all samples in the place of the raw ones; either side has one model."""
    sides = [{(judge, metric): each for (_, judge, metric), each in side.items()} for side in (first, second)]

    def known(row: dict[str, Any]) -> dict[str, Any]:
        key = row["judge"], row["metric"]
        return row if row["slice"] != "all" else with_corrections(row, sides[0].get(key), sides[1].get(key))

    return pl.DataFrame([known(row) for row in rows.iter_rows(named=True)], schema=rows.schema)


def correction_notes(
    found: Corrections, asked: Iterable[str], subjects: Iterable[tuple[str, str | None]] = ()
) -> Iterator[str]:
    """Say how each rate was corrected, and which of those asked for were not, of subjects or of none."""
    for (model, judge, metric), each in found.items():
        yield f"{metric} of {_named(model, judge)} is corrected {each.how}"
    if found:
        yield "only rates over all samples are corrected: values of parts of a slice are as the judge says"
    raw: dict[str, list[str]] = {}  # metrics by whose they are
    for name in dict.fromkeys(asked):
        without = [_named(*subject) for subject in subjects if (*subject, name) not in found]
        if without or name not in {metric for *_, metric in found}:
            raw.setdefault(f" of {', '.join(without)}" if without else "", []).append(name)
    for of, names in raw.items():
        yield f"not corrected, as no labels or calibration of the judge say how: {', '.join(names)}{of}"


def _named(model: str, judge: str | None) -> str:
    return model if judge is None else f"{model} by {judge}"
