"""Explain: split the difference of two snapshots exactly into what made it, from the versions that they pin.

One side is turned into the other step by step, and each step's change of the value is its part, so that parts sum up to
the difference. In order: A's definitions and scoring rules become B's (code), people's labels become B's (labels),
samples that B does not have leave (samples); of the samples that both have, those that were judged otherwise, asked
again, and answered otherwise are exchanged (judge, repeats, replies); samples that A does not have enter (samples).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import polars as pl

from evalake.contracts.tables import CALLS
from evalake.core.errors import UsageError
from evalake.decisions.compare import rows_of
from evalake.decisions.sides import NotComparableError, Side, find_sides, pairs_of
from evalake.metrics.compare import compare
from evalake.metrics.compute import Metric, measure
from evalake.sdk import Suite
from evalake.storage.lake import Lake
from evalake.storage.ledger import KEY
from evalake.storage.snapshots import read_metrics
from evalake.suites.registry import suite as find_suite
from evalake.tasks.measure import over_all


class Part(StrEnum):
    """What a difference can come from."""

    SAMPLES = "samples"
    REPLIES = "replies"
    JUDGE = "judge"
    CODE = "code"
    REPEATS = "repeats"
    LABELS = "labels"


MEANINGS: Mapping[Part, str] = {
    Part.SAMPLES: "only one side has them",
    Part.REPLIES: "other requests or replies",
    Part.JUDGE: "same replies, judged otherwise",
    Part.CODE: "other scoring, metrics, parameters",
    Part.REPEATS: "same requests, asked again",
    Part.LABELS: "what people said",
}

NOISE = "no more than noise shows"
OTHERWISE = "the model answers otherwise than before"

EXCHANGED = (Part.JUDGE, Part.REPEATS, Part.REPLIES)

PASSING = (
    *("landed_by_run", "origin", "dataset_version", "scorer_version", "cluster"),
    *("endpoint", "judge_endpoint", "reply_revision"),
)
"""Columns of a result row, beside times, that do not depend on the answer."""

FIELDS = (
    "suite", "metric", "a", "b", "judge", "value_a", "value_b", "difference", "part", "contribution", "ci_low",
    "ci_high", "samples", "meaning",
)  # fmt: skip


@dataclass(frozen=True)
class Explanation:
    """The parts (`FIELDS`), a row each, and the samples behind each of them."""

    parts: pl.DataFrame
    rows: pl.DataFrame


def explain(
    lake: Lake, a: str, b: str, *, run_id: str | None = None, tag: str | None = None, metric: str | None = None
) -> Explanation:
    """Split A - B of a metric, for each model and judge that both have.

    Args:
        lake: The lake that holds both.
        a: A run, a snapshot, RUN:MODEL, or a model of the run.
        b: The other side, named alike.
        run_id: The run that models are of; without it the newest that was measured.
        tag: Without `run_id`, only of runs with this tag.
        metric: The metric; without it the one that ranks.

    Raises:
        UsageError: A name stands for nothing.
        NotComparableError: The two have nothing in common, or rules that can be told apart only after a rescoring.
    """
    first, second = find_sides(lake, (a, b), run_id, tag)
    if first.run["suite"] != second.run["suite"]:
        raise NotComparableError(
            f"{a} is of {first.run['suite']}, {b} of {second.run['suite']}: no difference to explain"
        )
    suite = find_suite(first.run["suite"], lake)
    name = metric or suite.metrics.headline[0]
    frames = _Frames(lake, suite, first, second)
    explained = [
        _explained(frames, name, one, other, kept, _versions(lake, frames, one, other))
        for one, other in pairs_of(first, second)
        for kept in _kept(lake, name, one, other)
    ]
    if not explained:
        raise NotComparableError(f"{a} and {b} have no value of {name} by the same judge")
    return Explanation(pl.concat([each.parts for each in explained]), pl.concat([each.rows for each in explained]))


@dataclass(frozen=True)
class _Kept:
    """The two values that snapshots keep, and the judge on either side."""

    judges: tuple[str | None, str | None]
    values: tuple[float, float]


class _Frames:
    """Both sides' rows: as they were measured, and with one scoring rule and one state of people's labels.

    `labelled` are A's rows, scored as `rescored`, with the labels that B's snapshot saw.
    """

    def __init__(self, lake: Lake, suite: Suite, a: Side, b: Side) -> None:
        self.suite, self.own = suite, (rows_of(lake, suite, a), rows_of(lake, suite, b))
        version = _common_version(lake, suite, (a, b), self.own)
        self.rescored = [
            frame if side.snapshot["scorer_version"] == version else rows_of(lake, suite, side, version, newest=True)
            for side, frame in zip((a, b), self.own, strict=True)
        ]
        people = [contract.table for contract in suite.metrics.inputs if contract not in suite.scoring.extra_tables]
        labels = {name: at for name, at in json.loads(b.snapshot["pinned_versions"]).items() if name in people}
        newest = a.snapshot["scorer_version"] != version
        self.labelled = rows_of(lake, suite, a, version, newest=newest, labels=labels) if labels else self.rescored[0]
        self.metrics = [suite.all_metrics(json.loads(side.snapshot["options"])) for side in (a, b)]


def _common_version(lake: Lake, suite: Suite, sides: tuple[Side, Side], own: tuple[pl.DataFrame, pl.DataFrame]) -> str:
    """Find the version of the scoring rules by which the rows of both sides are known."""
    versions = [str(side.snapshot["scorer_version"]) for side in sides]
    if versions[0] == versions[1]:
        return versions[0]
    for other in (0, 1):
        known = rows_of(lake, suite, sides[other], versions[1 - other], newest=True)
        if known.height == own[other].height:
            return versions[1 - other]
    older = next(side for side in sides if side.snapshot["scorer_version"] != suite.scoring.version)
    raise NotComparableError(
        f"they were scored by rules {versions[0]} and {versions[1]}, and no row is known by both: "
        f"`evalake rescore {older.run['run_id']}` scores it by today's, and the code's part can be told"
    )


def _kept(lake: Lake, metric: str, a: Side, b: Side) -> Iterator[_Kept]:
    """Yield the values of a pair of models, by judge; where each side has one judge of its own, of these two."""
    values = [_values(lake, metric, side) for side in (a, b)]
    common = [judge for judge in values[0] if judge in values[1]]
    judges = [(judge, judge) for judge in common]
    if not common and len(values[0]) == len(values[1]) == 1:
        judges = [(next(iter(values[0])), next(iter(values[1])))]
    for one, other in judges:
        yield _Kept((one, other), (values[0][one], values[1][other]))


def _values(lake: Lake, metric: str, side: Side) -> dict[str | None, float]:
    if side.prompt_type is not None:
        raise UsageError(f"{side.name} is a part of a run: name its run or its model")
    rows = read_metrics(lake, side.snapshot["snapshot_id"])
    if metric not in set(rows["metric"]):
        raise UsageError(f"{side.name} has no metric {metric}: `evalake metrics` lists those of a snapshot")
    ours = rows.filter(pl.col("metric") == metric, pl.col("slice") == "all", pl.col("model") == side.models[0])
    return dict(ours.drop_nulls("value").select("judge", "value").iter_rows())


def _versions(lake: Lake, frames: _Frames, a: Side, b: Side) -> tuple[str, ...]:
    """Name the versions that the provider says answered either side, where one model's differ."""
    if not frames.suite.conversation.asks_subject or a.models != b.models:
        return ()
    replies = lake.frame(CALLS).select("model_reported", *KEY).drop_nulls("model_reported")
    reported = []
    for frame, side in zip(frames.own, (a, b), strict=True):
        asked = frame.filter(pl.col("model") == side.models[0]).select(KEY).unique()
        found = replies.join(asked.lazy(), on=KEY, how="semi").select("model_reported").unique().collect()
        reported.append(tuple(found["model_reported"].sort()))
    return () if reported[0] == reported[1] or not all(reported) else tuple(", ".join(each) for each in reported)


def _meaning(part: Part, ends: tuple[float | None, float | None], count: int, versions: tuple[str, ...]) -> str:
    """Describe a part; for repeated requests, also tell whether the model's answers changed."""
    meaning = MEANINGS[part]
    if part not in (Part.REPEATS, Part.REPLIES) or not count:
        return meaning
    if versions:
        return f"{meaning}: {OTHERWISE} (reported as {versions[1]}, then {versions[0]})"
    if part is Part.REPLIES:
        return meaning
    low, high = ends
    apart = low is not None and high is not None and (low > 0 or high < 0)
    return f"{meaning}: {OTHERWISE if apart else NOISE}"


def _explained(frames: _Frames, name: str, a: Side, b: Side, kept: _Kept, versions: tuple[str, ...]) -> Explanation:
    """Split the difference between a model of A and that of B, as one judge saw them."""
    metrics = [_only(frames.suite, name, each) for each in frames.metrics]
    sides = (a, b)

    def narrowed(frame: pl.DataFrame, side: int) -> pl.DataFrame:
        ours = (pl.col("model") == sides[side].models[0]) & pl.col("judge").eq_missing(kept.judges[side])
        return frame.filter(ours).with_columns(judge=pl.lit(None, pl.String))

    first, last = narrowed(frames.labelled, 0), narrowed(frames.rescored[1], 1)
    shared_a = first.join(last, on="sample_hash", how="semi")
    shared_b = last.join(first, on="sample_hash", how="semi")
    classes = _classes(frames.suite, shared_a, shared_b)
    exchanges = [(Part.SAMPLES, shared_a), *_exchanged(shared_a, shared_b, classes)]
    steps = [
        (Part.CODE, narrowed(frames.rescored[0], 0)),
        (Part.LABELS, first),
        *(exchanges if all(_value(frame, metrics[1]) is not None for _, frame in exchanges) else ()),
        (Part.SAMPLES, last),
    ]
    contributions, intervals = _walk(steps, metrics[1], kept)
    before = pl.concat([first.select("sample_hash"), last.select("sample_hash")]).unique()
    only = before.join(shared_a, on="sample_hash", how="anti").with_columns(part=pl.lit(str(Part.SAMPLES)))
    behind = pl.concat([only, classes.filter(pl.col("part") != "")])
    counts = dict(behind.group_by("part").len().iter_rows())
    judge = " | ".join(dict.fromkeys(map(str, kept.judges))) if any(kept.judges) else None
    identity = {"suite": frames.suite.name, "metric": name, "a": a.name, "b": b.name, "judge": judge}
    values = {"value_a": kept.values[0], "value_b": kept.values[1], "difference": kept.values[0] - kept.values[1]}
    parts = []
    for part in Part if frames.suite.metrics.inputs else [each for each in Part if each is not Part.LABELS]:
        (low, high), count = intervals.get(part, (None, None)), counts.get(str(part), 0)
        told = {"part": str(part), "contribution": contributions[part], "ci_low": low, "ci_high": high}
        meaning = _meaning(part, (low, high), count, versions)
        parts.append(identity | values | told | {"samples": count, "meaning": meaning})
    schema = {name: pl.Float64() for name in FIELDS if name.startswith(("value", "ci_"))} | {"judge": pl.String()}
    listed = _listed(behind, (first, last), identity)
    return Explanation(pl.DataFrame(parts, schema_overrides=schema).select(FIELDS), listed)


_Step = tuple[Part, pl.DataFrame]  # a part, and the rows of A after what it stands for was replaced by B's


def _walk(
    steps: Sequence[_Step], metric: Metric, kept: _Kept
) -> tuple[dict[Part, float], dict[Part, tuple[float | None, float | None]]]:
    """Compute each part's contribution, and the intervals of exchanges.

    The walk begins and ends at the values that the snapshots keep: what remains after the last step counts as code. A
    step that leaves the value undefined is left out, so that the next one takes both.
    """
    contributions = dict.fromkeys(Part, 0.0)
    intervals: dict[Part, tuple[float | None, float | None]] = {}
    value, before = kept.values[0], pl.DataFrame()
    for part, frame in steps:
        after = _value(frame, metric)
        if after is None:
            continue
        contributions[part] += value - after
        if part in EXCHANGED:
            rows = compare(before, frame, [metric], cluster="cluster", pair="sample_hash")
            intervals[part] = rows.select("ci_low", "ci_high").row(0)
        value, before = after, frame
    contributions[Part.CODE] += value - kept.values[1]
    return contributions, intervals


def _value(frame: pl.DataFrame, metric: Metric) -> float | None:
    if frame.is_empty():
        return None
    model = pl.lit("").alias("model")
    return measure(frame.with_columns(model), [metric], cluster="cluster")["value"].to_list()[0]  # type: ignore[no-any-return]


def _classes(suite: Suite, a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    """Find the part in which each sample that both have differs (sample_hash, part); part is "" where none does."""
    asked, times = pl.concat_str("prompt_hash", "endpoint", separator=" "), pl.col("replicate").cast(pl.String)
    if not suite.conversation.asks_subject:  # the material was there: the first request is the judge's
        asked = pl.col("sample_hash")
    has_judge = "judge_hash" in a.columns
    calls = {"judge_hash": "prompt_hash", "judge_endpoint": "endpoint"}
    judged = [pl.coalesce(name, first) if has_judge else pl.col(first) for name, first in calls.items()]
    saying = [
        name
        for name, kind in a.schema.items()
        if name in suite.results.column and name not in PASSING and kind.base_type() is not pl.Datetime
    ]
    keys = {
        "asked": asked,
        "repeated": pl.concat_str(asked, times, separator=" "),
        "judged": pl.concat_str(*judged, times, separator=" "),
        "said": pl.struct(saying).hash().cast(pl.String),
    }
    sets = [
        frame.group_by("sample_hash").agg(key.unique().sort().str.join(",").alias(name) for name, key in keys.items())
        for frame in (a, b)
    ]
    paired = sets[0].join(sets[1], on="sample_hash", suffix=" b")
    parts = {"asked": Part.REPLIES, "repeated": Part.REPEATS, "judged": Part.JUDGE, "said": Part.REPLIES}
    differing = [pl.when(pl.col(name) != pl.col(f"{name} b")).then(pl.lit(str(part))) for name, part in parts.items()]
    return paired.select("sample_hash", part=pl.coalesce(*differing, pl.lit("")))


def _exchanged(a: pl.DataFrame, b: pl.DataFrame, classes: pl.DataFrame) -> Iterator[_Step]:
    """Yield A's rows of the samples that both have, with those of one part after the other exchanged for B's."""
    others = [*b.columns, *(name for name in a.columns if name not in b.columns)]
    done: list[str] = []
    for part in EXCHANGED:
        done += [str(part), ""] if part is EXCHANGED[-1] else [str(part)]
        turned = classes.filter(pl.col("part").is_in(done))
        rows = a.join(turned, on="sample_hash", how="anti"), b.join(turned, on="sample_hash", how="semi")
        yield part, pl.concat(rows, how="diagonal").select(others)


def _listed(
    behind: pl.DataFrame, frames: tuple[pl.DataFrame, pl.DataFrame], identity: Mapping[str, Any]
) -> pl.DataFrame:
    """List the result rows behind each part, with the columns that identify them."""
    names = ("dataset", "sample_id", "sample_hash", "replicate", "prompt_hash", "judge_hash", "scorer_version")
    sides = [
        frame.with_columns(side=pl.lit(side)).select(
            "side", *(name if name in frame.columns else pl.lit(None, pl.String).alias(name) for name in names)
        )
        for side, frame in zip("ab", frames, strict=True)
    ]
    rows = pl.concat(sides).join(behind, on="sample_hash")
    own = [pl.lit(value, pl.String).alias(name) for name, value in identity.items()]
    return rows.select(*own, "part", *sides[0].columns).sort("part", "dataset", "sample_id", "side", "replicate")


def _only(suite: Suite, name: str, metrics: Sequence[Metric]) -> Metric:
    """Find the metric over all samples. Raises UsageError where it is not computed from single rows."""
    if (metric := over_all(metrics, name)) is not None:
        return metric
    raise UsageError(f"{name} cannot be split: it is not computed from the rows of {suite.name} one by one")
