"""Compare two sides of a lake: models of a run, runs, snapshots, prompt types; and refuse what does not compare."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import polars as pl

from evalake.core.errors import UsageError, did_you_mean
from evalake.decisions.sides import (
    HEADLINE,
    ByInput,
    NotComparableError,
    Scorers,
    Side,
    by_input,
    by_one_scorer,
    common_metrics,
    find_sides,
    meanings,
    pairs_of,
    unpaired,
    with_meaning,
)
from evalake.metrics.compare import compare
from evalake.metrics.compute import Metric, definition_hash
from evalake.metrics.limits import Answered, adjusted, bounds_of_differences
from evalake.sdk import Options, Suite
from evalake.storage.lake import Lake
from evalake.suites.registry import suite as find_suite
from evalake.tasks.canary import RunPart, moves_between
from evalake.tasks.corrected import corrected_differences, correction_notes, corrections, in_both
from evalake.tasks.failures import Lacking, lacking
from evalake.tasks.measure import run_frame

FIELDS = (
    "suite", "judge", "metric", "slice", "slice_value", "a", "b", "value_a", "value_b", "difference",
    "ci_low", "ci_high", "p", "p_holm", "units", "flips_to_a", "flips_to_b", "mark", "missing_a", "missing_b",
    "bound_low", "bound_high",
)  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """The rows (`FIELDS`), headline metrics first, and the warnings about them."""

    suite: str
    headline: Sequence[str]
    sides: tuple[Side, Side]
    rows: pl.DataFrame
    forced: Sequence[str]
    """Why the two do not compare, where they are compared by force."""
    notes: Sequence[str] = ()
    """What either side lacks, which metrics claim nothing, and how rates are corrected."""

    @property
    def remarks(self) -> list[str]:
        """All of both, as sentences."""
        return [*(f"compared by force: {reason}" for reason in self.forced), *self.notes]


def compare_sides(
    lake: Lake,
    a: str,
    b: str,
    *,
    run_id: str | None = None,
    tag: str | None = None,
    metric: str | None = None,
    force: bool = False,
    corrected: bool = False,
) -> Comparison:
    """Compare A with B: every metric of the suite over all samples, or one metric in all of its slices.

    Args:
        lake: The lake that holds both.
        a: A model of the run, a run, a snapshot, RUN:MODEL or RUN:MODEL:PROMPT_TYPE.
        b: The other side, named alike.
        run_id: The run that models are of; without it the newest that was measured and has them.
        tag: Without `run_id`, only of runs with this tag.
        metric: Only this metric.
        force: Compare what would be refused, with a warning.
        corrected: Correct rates by people's labels, or a calibration, where there are.

    Raises:
        UsageError: A name stands for nothing, or there is no such metric.
        NotComparableError: The two do not compare.
    """
    first, second = find_sides(lake, (a, b), run_id, tag)
    names = None if metric is None else (metric,)
    compared = compare_found(lake, first, second, names, force=force, corrected=corrected)
    return replace(compared, rows=adjusted(compared.rows).select(FIELDS))


def compare_found(
    lake: Lake, first: Side, second: Side, names: Sequence[str] | None, *, force: bool = False, corrected: bool = False
) -> Comparison:
    """Compare two sides, without adjusting p values: every metric over all samples, or those named in all their slices.

    `missing_a` and `missing_b` are missing shares. `bound_low` and `bound_high` are the difference at the worst and the
    best case, null where nothing bounds it: intervals and p do not know of it. Raises as `compare_sides`.
    """
    suites = [find_suite(side.run["suite"], lake) for side in (first, second)]
    pairs = pairs_of(first, second)
    frames = [rows_of(lake, suite, side) for suite, side in zip(suites, (first, second), strict=True)]
    of_tools = any(suite.data.read_answers for suite in suites)
    if across := suites[0].name != suites[1].name:
        frames = [with_meaning(suite, frame) for suite, frame in zip(suites, frames, strict=True)]
        metrics, warnings = common_metrics(suites, frames, names), []
    else:
        metrics = _metrics(suites[0], first, names)
        warnings = _refusals(suites[0], first, second, frames, of_tools=of_tools) + _moved_judges(lake, pairs)
    if warnings and not force:
        raise NotComparableError(f"these do not compare: {'; '.join(warnings)}. --force compares them all the same")
    lacks = [lacks_of(lake, *each) for each in zip(suites, (first, second), frames, strict=True)]
    parts: list[pl.DataFrame] = []
    notes: list[str] = []
    for one, other in pairs:
        own = [
            frame.filter(pl.col("model") == side.models[0]) for frame, side in zip(frames, (one, other), strict=True)
        ]
        keys = by_input(lake, suites, (one, other))
        if corrected and keys is not None:
            raise NotComparableError(f"{one.name} and {other.name} share no sample, so that labels correct neither")
        a, b, scorers = _same_judges(own[0], own[1], force=force, of_tools=across or of_tools)
        whose = [
            _Lacks(side.name, side.models[0], frame, of_side, frame["judge"].unique().to_list(), keys, place)
            for place, (side, frame, of_side) in enumerate(zip((one, other), own, lacks, strict=True))
        ]
        if scorers is not None:
            notes += meanings(suites, metrics if across else (), scorers)
            whose = [replace(each, judges=[scorer]) for each, scorer in zip(whose, scorers, strict=True)]
        if keys is not None:
            notes += keys.notes
            a, b = keys.both(a, b)
        is_paired = keys is None or keys.is_paired
        rows = compare(a, b, metrics, cluster="cluster", pair="sample_hash") if is_paired else unpaired(a, b, metrics)
        rows = _bounded(rows, {metric.name: metric for metric in metrics}, whose)
        if corrected:
            found = in_both(corrections(lake, one.snapshot, a, b), corrections(lake, other.snapshot, b, a))
            rows = corrected_differences(rows, *found)
            notes += [note for each in found for note in correction_notes(each, rows["metric"])]
        notes += [note for each in whose for note in each.notes()]
        named = {"suite": " | ".join(dict.fromkeys(suite.name for suite in suites))}
        named |= {"a": one.name, "b": other.name, "model": one.models[0]}
        parts.append(rows.with_columns(pl.lit(value).alias(name) for name, value in named.items()))
    rows = pl.concat(parts)
    if rows.is_empty():
        raise NotComparableError(f"{first.name} and {second.name} have no answer to compare")
    headline = HEADLINE if across else suites[0].metrics.headline
    notes = [*dict.fromkeys(notes), *_marked(rows)]
    return Comparison(rows["suite"][0], headline, (first, second), _in_order(rows, headline), warnings, notes)


def _marked(rows: pl.DataFrame) -> list[str]:
    """Say which metrics claim no significance, and why."""
    marked = rows.drop_nulls("mark").group_by("mark", maintain_order=True).agg(pl.col("metric").unique().sort())
    claim = "so no significance is claimed; compare medians"
    return [f"{', '.join(names)}: {mark}, {claim}" for mark, names in marked.iter_rows()]


Lacks = Mapping[tuple[str, str | None], Lacking]


def lacks_of(lake: Lake, suite: Suite, side: Side, frame: pl.DataFrame) -> Lacks:
    """Find the missing items of a side's models, by model and judge; `frame` has its rows."""
    versions = json.loads(side.snapshot["pinned_versions"])
    as_scored = suite.scored_by(side.snapshot["scorer_version"])
    found = lacking(lake, as_scored, side.run["run_id"], versions, frame.lazy(), side.prompt_type)
    return {subject: each for subject, each in found.items() if subject[0] in side.models}


@dataclass(frozen=True)
class _Lacks:
    """One side of a pair: its rows, and its missing items."""

    name: str
    model: str
    frame: pl.DataFrame
    lacks: Lacks
    judges: Sequence[str | None]
    keys: ByInput | None
    place: int

    def of(self, judge: str | None) -> tuple[str | None, Lacking | None]:
        """Find the judge and what it lacks; a judge that the side does not have stands for its only one, by force."""
        own = judge if judge in self.judges else self.judges[0]
        return own, self.lacks.get((self.model, own))

    def share(self, judge: str | None) -> float:
        """Compute the share of the side's items that is missing."""
        _, lacks = self.of(judge)
        return 0.0 if lacks is None else lacks.count / lacks.items

    def answered(self, judge: str | None) -> Answered:
        """Tell the side's known and missing answers."""
        own, lacks = self.of(judge)
        known = Answered(self.frame.filter(pl.col("judge").eq_missing(own))) if lacks is None else lacks.answered
        return known if self.keys is None else self.keys.answered(self.place, known)

    def notes(self) -> list[str]:
        """Say how much is missing, by kind."""
        return [
            f"{self.name}{'' if judge is None else f' by {judge}'} lacks {each.count:,} of {each.items:,} items ("
            + ", ".join(f"{count} {kind}" for kind, count in each.kinds.most_common())
            + "): intervals hold whatever these are, and nothing that they could undo is significant"
            for (model, judge), each in self.lacks.items()
            if model == self.model and judge in self.judges
        ]


def _bounded(rows: pl.DataFrame, metrics: Mapping[str, Metric], sides: Sequence[_Lacks]) -> pl.DataFrame:
    """Add to compared rows the shares that are missing, and the differences at the worst and the best case."""
    parts = []
    for (judge, name, value), part in rows.with_row_index("row").group_by(
        "judge", "slice", "slice_value", maintain_order=True
    ):
        where = None if name == "all" else pl.col(str(name)).cast(pl.String) == value
        measured = [replace(metrics[each], slices=("all",)) for each in part["metric"]]
        first, second = (side.answered(judge) for side in sides)
        ends = bounds_of_differences(part["difference"].to_list(), measured, first, second, where=where)
        low, high = (pl.Series([end[place] for end in ends], dtype=pl.Float64) for place in (0, 1))
        missing_a, missing_b = (pl.lit(side.share(judge), pl.Float64) for side in sides)
        parts.append(part.with_columns(missing_a=missing_a, missing_b=missing_b, bound_low=low, bound_high=high))
    return pl.concat(parts).sort("row").drop("row") if parts else rows


def _metrics(suite: Suite, side: Side, names: Sequence[str] | None) -> tuple[Metric, ...]:
    """Choose the metrics: all over all samples, or the named ones in all of their slices."""
    options = json.loads(side.snapshot["options"])
    if names is None:
        return tuple(replace(each, slices=("all",)) for each in suite.all_metrics(options) if "all" in each.slices)
    return metrics_named(suite, options, names)


def metrics_named(suite: Suite, options: Options, names: Sequence[str]) -> tuple[Metric, ...]:
    """Find these metrics of a suite. Raises UsageError where it has no such metric that compares."""
    metrics = suite.all_metrics(options)
    if unknown := sorted(set(names) - {each.name for each in metrics}):
        near = did_you_mean(unknown[0], [each.name for each in metrics]) or ": `evalake metrics` lists its metrics"
        raise UsageError(f"{suite.name} has no metric {unknown[0]} that compares{near}")
    return tuple(each for each in metrics if each.name in names)


def rows_of(
    lake: Lake,
    suite: Suite,
    side: Side,
    scorer_version: str | None = None,
    *,
    newest: bool = False,
    labels: Mapping[str, int | None] = MappingProxyType({}),
) -> pl.DataFrame:
    """Read the rows that a side's snapshot measured, or those by another version of the scoring rules.

    `newest` adds those of a rescoring after the snapshot; `labels` has versions of tables that count in the place of
    those that it pins.
    """
    versions = json.loads(side.snapshot["pinned_versions"])
    if newest:
        scored = {suite.results.table, *(contract.table for contract in suite.scoring.extra_tables)}
        versions = {name: at for name, at in versions.items() if name not in scored}
    as_scored = suite.scored_by(scorer_version or side.snapshot["scorer_version"])
    frame = run_frame(lake, as_scored, side.run["run_id"], {**versions, **labels})
    if side.prompt_type is not None:
        frame = frame.filter(pl.col("prompt_type") == side.prompt_type)
    return frame.filter(pl.col("model").is_in(side.models))


def _refusals(suite: Suite, a: Side, b: Side, frames: Sequence[pl.DataFrame], *, of_tools: bool) -> list[str]:
    """List the reasons against a comparison, each with the meaning of a forced one."""
    reasons = []
    versions = [json.loads(side.run["dataset_versions"]) for side in (a, b)]
    changed = sorted(name for name in versions[0].keys() & versions[1].keys() if versions[0][name] != versions[1][name])
    if changed:
        choices = [json.loads(side.run["parameters"] or "{}") for side in (a, b)]
        ways = [f"--{way}" for way in ("limit", "pooled", "first") if choices[0].get(way) != choices[1].get(way)]
        what = f"samples of {' and '.join(changed)} differ, as does {' and '.join(ways)}"
        what = what if ways else f"versions of {' and '.join(changed)} differ"
        reasons.append(f"their {what} (only unchanged samples are paired)")
    if a.snapshot["scorer_version"] != b.snapshot["scorer_version"]:
        reasons.append("their replies were scored by different rules (the difference is of answers and rules)")
    options = [json.loads(side.snapshot["options"]) for side in (a, b)]
    if len({definition_hash(suite.all_metrics(each)) for each in options}) > 1:
        reasons.append("their metrics have different parameters (those of A are used for both)")
    if "criteria_hash" in frames[0].columns:
        criteria = [set(frame["criteria_hash"].drop_nulls()) for frame in frames]
        if criteria[0] != criteria[1]:
            reasons.append("they were judged by different criteria (the difference is of answers and criteria)")
    judges = [set(frame["judge"]) for frame in frames]
    if not judges[0] & judges[1] and all(judges) and not of_tools:
        named = " and ".join(", ".join(map(str, sorted(each, key=str))) for each in judges)
        reasons.append(f"no judge is common to them: {named} (the difference is of answers and judges)")
    return reasons


def _moved_judges(lake: Lake, pairs: Sequence[tuple[Side, Side]]) -> list[str]:
    sides = {RunPart(side.run["run_id"], side.model) for pair in pairs for side in pair}
    moved = moves_between(lake, *sorted(sides, key=str))
    return [f"{each} (the difference is of answers and of the judge's move)" for each in moved]


def _same_judges(
    a: pl.DataFrame, b: pl.DataFrame, *, force: bool, of_tools: bool
) -> tuple[pl.DataFrame, pl.DataFrame, Scorers | None]:
    """Give both sides one judge where they have none in common, and say which two; else leave the rows as they are.

    By force it is the only judge of each; where tools or suites differ, whose judges are scorers, that of most rows.
    """
    judges = [frame["judge"].unique().to_list() for frame in (a, b)]
    differ = not {*judges[0]} & {*judges[1]}
    if differ and (of_tools or (force and len(judges[0]) == len(judges[1]) == 1)):
        return by_one_scorer(a, b)
    return a, b, None


def _in_order(rows: pl.DataFrame, headline: Sequence[str]) -> pl.DataFrame:
    """Put headline metrics first, each pair of models together."""
    place = {name: number for number, name in enumerate(headline)}
    order = pl.col("metric").replace_strict(place, default=len(place), return_dtype=pl.Int64)
    return rows.with_row_index("number").sort("a", "b", order, "number", maintain_order=True)
