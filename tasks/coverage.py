"""Cover: counts of a run's items by model, judge and dataset, kept in `run_coverage`."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
from polars import selectors

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import METRIC_SNAPSHOTS, RUN_COVERAGE, RUN_ITEMS, SAMPLES
from evalake.core.configuration import Configuration
from evalake.metrics.agreement import PANEL
from evalake.reports.coverage import (
    MAX_MISSING,
    NOT_ASKED,
    NOT_IN_LOG,
    Coverage,
    Tolerance,
    from_table,
    to_table,
)
from evalake.request import RunRequest
from evalake.sdk import Dataset, Suite
from evalake.sdk.sources import is_storable
from evalake.sdk.suite import EMPTY
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.tasks.clusters import item_hash, sample_hash
from evalake.tasks.failures import UNDECIDED, with_reasons
from evalake.tasks.measure import run_results
from evalake.tasks.runtime.runs import as_scored

EMPTY_KIND = "empty_kind"
"""The column by which result rows name an empty reply, in suites that have it."""

_GROUP = ("model", "judge", "dataset")
_OUTCOME = (*_GROUP, "label", "missing", "without_verdict")


@dataclass(frozen=True)
class Source:
    """The rows of one dataset's source: read, left out and refused."""

    dataset: str
    rows: int | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    lost_labels: frozenset[str] = frozenset()

    @classmethod
    def of(cls, dataset: Dataset) -> "Source":
        """Count the source of a dataset, before samples are chosen."""
        reasons = {
            is_refused: Counter(each.reason for each in dataset.skipped if (each.payload is not None) is is_refused)
            for is_refused in (False, True)
        }
        there = {sample.label for sample in dataset.samples}
        lost = {each.label for each in dataset.skipped if each.label is not None} - there
        rows = len(dataset.samples) + len(dataset.skipped)
        return cls(dataset.name, rows, reasons[False], reasons[True], frozenset(filter(None, lost)))


def cover(
    lake: Lake, suite: Suite, run_id: str, judges: Sequence[str], sources: Iterable[Source] = ()
) -> list[Coverage]:
    """Count a run's items by outcome, without derived ones like those of panels.

    Args:
        lake: The lake.
        suite: The suite of the run, with the scorer version whose rows count.
        run_id: The run.
        judges: The called judges; none where rules judge.
        sources: The sources of its datasets.
    """
    counted = _outcomes(lake, suite, run_id, judges).sort(_OUTCOME)
    by_source = {source.dataset: source for source in sources}
    return [
        _coverage(part, model, judge, by_source.get(dataset, Source(dataset)))
        for (model, judge, dataset), part in counted.group_by(*_GROUP, maintain_order=True)
    ]


def _outcomes(lake: Lake, suite: Suite, run_id: str, judges: Sequence[str]) -> pl.DataFrame:
    """Count the items of a run by `_OUTCOME`.

    `missing` says why there is no answer, `without_verdict` why it cannot be read.
    """
    asked = pl.col("judge").is_in(list(judges)) if judges else pl.col("judge").is_null()
    items = lake.frame(RUN_ITEMS).filter(pl.col("run_id") == run_id, asked)
    items = items.with_columns(item_hash(suite), sample_hash())
    results = run_results(lake, suite, run_id, {}).select(
        *_GROUP,
        sample_hash(),
        item_hash(suite),
        missing=_word(suite.scoring.outcomes.missing),
        without_verdict=_unread(suite),
    )
    listed, scored = (rows.select("item").collect(engine="streaming")["item"].sort() for rows in (items, results))
    if listed.equals(scored):  # each item has its row: the join would take 100 MB for a million
        found = _narrow(results.drop("item"))
    else:
        without_row = with_reasons(lake, suite, run_id, items.filter(~pl.col("item").is_in(scored.implode())))
        without_row = without_row.select(*_GROUP, "named", missing="why", without_verdict=pl.lit(None, pl.String))
        of_items = _narrow(items.select(*_GROUP, "named", "item"))
        present = of_items.join(_narrow(results.drop(*_GROUP, "named")), on="item").drop("item")
        found = pl.concat([present, _narrow(without_row)])
    readable = pl.when(pl.col("missing").is_null()).then("without_verdict").alias("without_verdict")
    return _counted(lake, suite, found.with_columns(readable))


def _counted(lake: Lake, suite: Suite, found: pl.LazyFrame) -> pl.DataFrame:
    """Count by `_OUTCOME`. Labels tell which of them lack every answer, so they are null where nothing is missing."""
    counted = found.group_by(*_GROUP, "missing", "without_verdict").len().collect(engine="streaming")
    counted = counted.with_columns(label=pl.lit(None, pl.String))
    if counted["missing"].null_count() < counted.height:
        ours = lake.frame(SAMPLES).filter(pl.col("suite") == suite.name)
        labels = _narrow(ours.select(sample_hash(), "label")).unique("named")
        counted = found.join(labels, on="named", how="left").group_by(_OUTCOME).len().collect(engine="streaming")
    return counted.with_columns(pl.col(_OUTCOME).cast(pl.String))


def _narrow(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Replace texts by categories, since a join holds its rows: 300 MB less for a million."""
    return rows.with_columns(selectors.string().cast(pl.Categorical))


def _word(expression: pl.Expr | None) -> pl.Expr:
    return pl.lit(None, pl.String) if expression is None else expression.cast(pl.String)


def _unread(suite: Suite) -> pl.Expr:
    """Build why a row's reply holds no verdict; the kind of a reply without text where the suite's rows name it."""
    why = _word(suite.scoring.outcomes.without_verdict)
    named = EMPTY_KIND in suite.results.column
    return (
        pl.when(why == EMPTY).then(pl.coalesce(pl.format(f"{EMPTY} ({{}})", EMPTY_KIND), why)).otherwise(why)
        if named
        else why
    )


def _coverage(counted: pl.DataFrame, model: str, judge: str | None, source: Source) -> Coverage:
    kinds = {name: _counts(counted, name) for name in ("missing", "without_verdict")}
    asked, missing = int(counted["len"].sum()), sum(kinds["missing"].values())
    unanswered = counted.drop_nulls("label").group_by("label").agg(pl.col("missing").is_not_null().all())
    lost = {label for label, all_missing in unanswered.iter_rows() if all_missing}
    return Coverage(
        model=model,
        judge=judge,
        dataset=source.dataset,
        asked=asked,
        answered=asked - missing,
        without_verdict=sum(kinds["without_verdict"].values()),
        missing=missing,
        without_verdict_kinds=kinds["without_verdict"],
        missing_kinds=kinds["missing"],
        left_out=source.left_out,
        refused=source.refused,
        source_rows=source.rows,
        lost_labels=tuple(sorted(lost | source.lost_labels)),
    )


def _counts(counted: pl.DataFrame, kind: str) -> dict[str, int]:
    sums = counted.drop_nulls(kind).group_by(kind).agg(pl.col("len").sum()).sort("len", kind, descending=[True, False])
    return {name: int(count) for name, count in sums.iter_rows()}


def save_coverage(lake: Lake, run_id: str, rows: Sequence[Coverage]) -> None:
    """Land a run's coverage, which replaces an earlier one."""
    if rows:
        land(lake, RUN_COVERAGE, conform([{"run_id": run_id, **to_table(row)} for row in rows], RUN_COVERAGE))


def cover_again(lake: Lake, suite: Suite, run: Mapping[str, Any]) -> None:
    """Count a run's items again, and keep the counts of its sources."""
    run_id = run["run_id"]
    kept = lake.frame(RUN_COVERAGE).filter(pl.col("run_id") == run_id).collect()
    before = {(row.model, row.judge, row.dataset): row for row in map(from_table, kept.iter_rows(named=True))}
    labels = lake.frame(SAMPLES).filter(pl.col("suite") == suite.name).select("sample_hash", "label")
    items = lake.frame(RUN_ITEMS).filter(pl.col("run_id") == run_id).select(*_GROUP, "sample_hash")
    there = {*items.join(labels, on="sample_hash").drop("sample_hash").unique().collect().iter_rows()}
    rows = []
    for row in _as_planned(run, cover(lake, suite, run_id, run["judges"])):
        known = before.get((row.model, row.judge, row.dataset), row)
        of_source = {label for label in known.lost_labels if (row.model, row.judge, row.dataset, label) not in there}
        lost = tuple(sorted({*row.lost_labels, *of_source}))
        rows.append(
            replace(
                _lacking_more(row, NOT_IN_LOG, known.missing_kinds.get(NOT_IN_LOG, 0)),
                left_out=known.left_out,
                refused=known.refused,
                source_rows=known.source_rows,
                lost_labels=lost,
            )
        )
    save_coverage(lake, run_id, rows)


def coverage_of(lake: Lake, run: Mapping[str, Any]) -> list[Coverage]:
    """Read the coverage of an ended run, or count it for a run from before `run_coverage`; empty for a running one."""
    if run["state"] in ("running", "lost"):
        return []
    kept = lake.frame(RUN_COVERAGE).filter(pl.col("run_id") == run["run_id"]).sort(*_GROUP).collect()
    if not kept.is_empty():
        return [from_table(row) for row in kept.iter_rows(named=True)]
    return _as_planned(run, cover(lake, as_scored(lake, run), run["run_id"], run["judges"]))


def _as_planned(run: Mapping[str, Any], rows: Sequence[Coverage]) -> list[Coverage]:
    """Add the items that a run which was cut off planned, and never listed: as many for each model and judge."""
    subjects = [(model, judge) for model in run["models"] for judge in run["judges"] or [None]]
    asked = Counter[tuple[str, str | None]]()
    for row in rows:
        asked[row.model, row.judge] += row.asked
    if run["origin"] == "import" or asked.total() >= run["items"] or run["items"] % (len(subjects) or 1):
        return list(rows)
    names = json.loads(run["dataset_versions"])
    dataset = next(iter(names)) if len(names) == 1 else ""
    known = {(row.model, row.judge, row.dataset): row for row in rows}
    for model, judge in subjects:
        if (never := run["items"] // len(subjects) - asked[model, judge]) > 0:
            row = known.get((model, judge, dataset), Coverage(model, judge, dataset))
            known[model, judge, dataset] = _lacking_more(row, NOT_ASKED, never)
    return list(known.values())


def _lacking_more(row: Coverage, kind: str, count: int) -> Coverage:
    """Add missing items of a kind."""
    kinds = dict(Counter(row.missing_kinds) + Counter({kind: count}))
    return replace(row, asked=row.asked + count, missing=row.missing + count, missing_kinds=kinds)


def missing_shares(lake: Lake, version: int | None = None) -> pl.LazyFrame:
    """Compute the share of items that each model and judge of a run lacks; `judge` is empty where rules judge.

    A panel lacks what it did not decide, as the run's newest snapshot has it.
    """
    rows = lake.frame(RUN_COVERAGE, version)
    asked = rows.filter(pl.col("asked") > 0).group_by("run_id", "model", "judge")
    counted = asked.agg(missing=pl.col("missing").sum() / pl.col("asked").sum())
    undecided = lake.frame(METRIC_SNAPSHOTS).filter(
        pl.col("metric") == UNDECIDED, pl.col("slice") == "all", pl.col("judge").str.starts_with(PANEL)
    )
    known = undecided.filter(pl.col("run_id").is_not_null(), pl.col("value").is_not_null()).sort("measured_at")
    panels = known.unique(["run_id", "model", "judge"], keep="last").select("run_id", "model", "judge", missing="value")
    return pl.concat([counted, panels])


def tolerance_of(run: Mapping[str, Any]) -> Tolerance:
    """Read the tolerance of a run; the default for older runs."""
    parameters = json.loads(run["parameters"] or "{}")
    return Tolerance(parameters.get("max_missing", MAX_MISSING), parameters.get("accept_unreadable", False))


def tolerance_of_request(configuration: Configuration, request: RunRequest) -> Tolerance:
    """Build the tolerance of a request: its own, or else the configured one."""
    most = configuration.max_missing if request.max_missing is None else request.max_missing
    return Tolerance(most, request.accept_unreadable or configuration.accept_unreadable)


def of_sources(sources: Iterable[Source]) -> list[Coverage]:
    """Build the coverage of sources without any model."""
    return [
        Coverage(
            "",
            None,
            source.dataset,
            left_out=source.left_out,
            refused=source.refused,
            source_rows=source.rows,
            lost_labels=tuple(sorted(source.lost_labels)),
        )
        for source in sources
    ]


def with_refused(
    rows: Sequence[Coverage],
    refused: Iterable[Mapping[str, Any]],
    reason: str,
    left_out: Mapping[str, int],
    labels: Collection[tuple[str, str, str, str | None]] = (),
) -> list[Coverage]:
    """Add the refused and left-out material to the coverage of an import.

    Args:
        rows: The coverage of the items.
        refused: The readable fields of each refused piece; empty where it was no object.
        reason: Why these were refused, as a fixed phrase.
        left_out: The number of pieces that a documented rule left out, by reason.
        labels: The labels of the items that were read: model, judge, dataset, label.
    """
    pieces = [(_group(each), _name(each.get("label")).lower()) for each in refused]
    counts = Counter(group for group, _ in pieces)
    stated = {piece for piece in pieces if piece[1]}
    if left_out:
        counts[("", "", "")] += 0
    known = {(row.model, row.judge or "", row.dataset): row for row in rows}
    for group, count in counts.items():
        model, judge, dataset = group
        row = known.get(group, Coverage(model, judge or None, dataset))
        of_nobody = group == ("", "", "")
        lost_here = {label for of, label in stated if of == group and not _is_there(group, label, labels)}
        known[group] = replace(
            row,
            refused={reason: count} if count else {},
            left_out=left_out if of_nobody else row.left_out,
            lost_labels=tuple(sorted({*row.lost_labels, *lost_here})),
        )
    return list(known.values())


def with_absent(rows: Sequence[Coverage], absent: Mapping[tuple[str, str], int]) -> list[Coverage]:
    """Add the answers that logs lack, by model and dataset, to the coverage of an import."""
    known = {(row.model, row.dataset) for row in rows}
    others = [Coverage(model, None, dataset) for model, dataset in absent if (model, dataset) not in known]
    return [
        _lacking_more(row, NOT_IN_LOG, count) if (count := absent.get((row.model, row.dataset), 0)) else row
        for row in (*rows, *others)
    ]


def _group(piece: Mapping[str, Any]) -> tuple[str, str, str]:
    """Read the model, the judge and the dataset of a piece; empty where it has none."""
    model, judge, dataset = (_name(piece.get(name)) for name in _GROUP)
    return model, judge, dataset


def _is_there(group: tuple[str, ...], label: str, labels: Iterable[tuple[str, str, str, str | None]]) -> bool:
    """Tell whether an item of the piece's model, judge and dataset has the label."""
    return any(label == known and all(map(_agree, group, of)) for *of, known in labels)


def _agree(named: str, known: str) -> bool:
    return named in ("", known)


def _name(value: Any) -> str:
    return value if isinstance(value, str) and is_storable(value) else ""
