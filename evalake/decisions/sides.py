"""The sides of a comparison: found by their names, paired by the sample they share, by their input, or not at all."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from evalake.contracts.tables import CALLS, RUN_ITEMS, RUNS, SAMPLES, SNAPSHOTS
from evalake.core.errors import EvalakeError, UsageError, did_you_mean
from evalake.metrics.compare import COMPARED
from evalake.metrics.compute import Metric, measure
from evalake.metrics.estimators import Mean, Rate
from evalake.metrics.intervals import difference
from evalake.metrics.limits import Answered
from evalake.sdk import Suite
from evalake.sdk.json_in_text import json_object
from evalake.storage.lake import Lake
from evalake.storage.snapshots import find_snapshot
from evalake.tasks.runtime.runs import of_suite, require_measured, tagged, with_labels, with_state

SHORTEST_ID = 8  # characters that the beginning of a snapshot's id must have


class NotComparableError(EvalakeError):
    """What is to be compared does not mean the same on both sides."""


class NothingInCommonError(NotComparableError, UsageError):
    """Neither side names its model, and no model is on both."""


@dataclass(frozen=True)
class Side:
    """One side: a run as a snapshot measured it, or of it one model, or of that one prompt type."""

    name: str
    snapshot: dict[str, Any]
    run: dict[str, Any]
    model: str | None = None
    prompt_type: str | None = None

    @property
    def models(self) -> list[str]:
        """The models on this side."""
        return sorted(self.run["models"]) if self.model is None else [self.model]


def find_sides(lake: Lake, names: Sequence[str], run_id: str | None, tag: str | None = None) -> list[Side]:
    """Find the sides named; models are of one run: the given one, or the newest (with a tag) that has them all.

    Raises UsageError where a name stands for nothing.
    """
    if run_id is None:
        measured = measured_runs(lake, tag)
        known = {model for run in measured.values() for model in run["models"]}
        models = known.intersection(names).difference(measured)
        run_id = next((each for each, run in measured.items() if models.issubset(run["models"])), None)
    return [find_side(lake, name, run_id, tag) for name in names]


def find_side(lake: Lake, name: str, run_id: str | None, tag: str | None = None) -> Side:
    """Find the side named; a model is of the run, or of the newest (with a tag). Raises UsageError where none is."""
    require_measured(lake, run_id or name.partition(":")[0])
    measured = measured_runs(lake)
    if run_id is not None and run_id not in measured:
        raise UsageError(f"the lake {lake.uri} has no measured run {run_id}: `evalake runs` lists what there is")
    chosen = run_id or next(iter(measured if tag is None else measured_runs(lake, tag)))
    if name in measured[chosen]["models"]:
        return Side(name, find_snapshot(lake, run_id=chosen), measured[chosen], name)
    if name in measured:
        return Side(name, find_snapshot(lake, run_id=name), measured[name])
    snapshot = _snapshot(lake, name)
    if snapshot is not None:
        if (of := snapshot["run_id"]) not in measured:
            raise UsageError(f"the lake {lake.uri} no longer has the run {of} of the snapshot {name}")
        return Side(name, snapshot, measured[of])
    for known, run in measured.items():
        if name.startswith(f"{known}:"):
            return _of_run(lake, name, run, name.removeprefix(f"{known}:"))
    models = measured[chosen]["models"]
    raise UsageError(
        f"{name} is no model of the run {chosen} (it has {', '.join(models)}), no run, no snapshot, and no RUN:MODEL"
        f"{did_you_mean(name, [*models, *measured]) or ': `evalake runs` lists the runs'}"
    )


def measured_runs(lake: Lake, tag: str | None = None, suite: str | None = None) -> dict[str, dict[str, Any]]:
    """Find the runs (of a suite, with a tag) that have a snapshot, newest first."""
    runs = tagged(with_labels(of_suite(with_state(lake, lake.frame(RUNS)), suite)), tag).join(
        lake.frame(SNAPSHOTS).select("run_id").unique(), on="run_id", how="semi"
    )
    newest_first = runs.sort("started_at", descending=True).collect()
    if newest_first.is_empty():
        what = f"tagged {tag}: `evalake runs` lists tags" if tag else "to compare: `evalake run` or `import` makes one"
        raise UsageError(f"the lake {lake.uri} has no measured run {what}")
    return {row["run_id"]: row for row in newest_first.iter_rows(named=True)}


def _snapshot(lake: Lake, name: str) -> dict[str, Any] | None:
    if len(name) < SHORTEST_ID or set(name) - set("0123456789abcdef"):
        return None
    try:
        return find_snapshot(lake, snapshot_id=name)
    except UsageError:
        return None


def _of_run(lake: Lake, name: str, run: dict[str, Any], rest: str) -> Side:
    """Find a model of a run, or one with a prompt type; model names hold colons, so they are split by known names."""
    snapshot = find_snapshot(lake, run_id=run["run_id"])
    if rest in run["models"]:
        return Side(name, snapshot, run, rest)
    items = lake.frame(RUN_ITEMS).filter(pl.col("run_id") == run["run_id"])
    prompts = items.select("prompt_type").unique().collect()["prompt_type"].sort().to_list()
    model, _, prompt_type = rest.rpartition(":")
    if model in run["models"] and prompt_type in prompts:
        return Side(name, snapshot, run, model, prompt_type)
    raise UsageError(
        f"the run {run['run_id']} has no {rest}: its models are {', '.join(run['models'])}, "
        f"its prompt types {', '.join(prompts)}"
    )


def pairs_of(a: Side, b: Side) -> list[tuple[Side, Side]]:
    """Pair the models that are compared: the two named, or each that both sides have."""
    if len(a.models) == len(b.models) == 1:
        return [(replace(a, model=a.models[0]), replace(b, model=b.models[0]))]
    common = [model for model in a.models if model in b.models]
    if not common:
        raise NothingInCommonError(f"{a.name} and {b.name} have no model in common: name one of each as RUN:MODEL")
    return [(_narrowed(a, model), _narrowed(b, model)) for model in common]


def _narrowed(side: Side, model: str) -> Side:
    return side if side.model is not None else replace(side, name=f"{side.name}:{model}", model=model)


# Sides that share no sample, like runs of different tools, are paired by what was asked, else not at all.

KEY = ["sample_hash", "prompt_type"]
ASKED = ("input", "prompt")
"""A sample's own text, and the last that the user's side says in the request."""

UNPAIRED = "all"
RIGHT, WORTH = "right answer", "worth of the answer"
HEADLINE = ("accuracy", "score")
_OWN_NAMES = {"accuracy": ("accuracy",), "score": ("score", "mean_score")}
_UNIQUE = 0.9  # share of a column's texts that differ, from which they stand for their samples


@dataclass(frozen=True)
class ByInput:
    """Keys that replace the sample's hash on either side, and the note about them."""

    keys: tuple[pl.DataFrame, pl.DataFrame]  # KEY and `key`, null where nobody knows what was asked
    shared: str  # a key of both sides
    is_paired: bool
    notes: tuple[str, ...]

    def of(self, side: int, rows: pl.DataFrame, clusters: Mapping[str, str] = MappingProxyType({})) -> pl.DataFrame:
        """Put the keys in the place of the hashes; rows of one key are of one unit, as `clusters` names it."""
        keyed = rows.join(self.keys[side], on=KEY, how="left", maintain_order="left")
        unit = pl.col("key").replace_strict(clusters, default=pl.col("cluster"), return_dtype=pl.String)
        return keyed.with_columns(sample_hash=pl.coalesce("key", "sample_hash"), cluster=unit).drop("key")

    def both(self, a: pl.DataFrame, b: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Put the keys into the rows of both sides; the unit of a key is the first that A's rows have of it."""
        known = a.join(self.keys[0].drop_nulls("key"), on=KEY) if self.is_paired else None
        units = {} if known is None else dict(known.group_by("key").agg(pl.col("cluster").min()).iter_rows())
        return self.of(0, a, units), self.of(1, b, units)

    def samples(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """List of either side which items have which key; none where nothing is paired."""
        if self.is_paired:
            return self.keys[0].drop_nulls("key"), self.keys[1].drop_nulls("key")
        return self.keys[0].clear(), self.keys[1].clear()

    def answered(self, side: int, answered: Answered) -> Answered:
        """Re-key what is known of a side's answers; one that is not there counts among the pairs if its key is open."""
        key_of = dict(self.keys[side].drop_nulls("key").select("sample_hash", "key").iter_rows())
        opened = None if answered.opened is None else self.of(side, answered.opened)
        gone = [key_of.get(each, self.shared) for each in answered.gone]
        return Answered(self.of(side, answered.rows), gone, opened)


def by_input(lake: Lake, suites: Sequence[Suite], sides: Sequence[Side]) -> ByInput | None:
    """Pair two sides of one model each by their requests; None where shared samples pair them."""
    items = [_items(lake, side) for side in sides]
    if items[0].join(items[1], on="sample_hash", how="semi").height:
        return None
    forms = [_forms(lake, suite, rows) for suite, rows in zip(suites, items, strict=True)]
    a, b = max(product(*forms), key=lambda pair: _shared(forms, pair))
    shared, counts = _texts(forms[0][a]) & _texts(forms[1][b]), [len(_texts(forms[0][a])), len(_texts(forms[1][b]))]
    first, second = (side.name for side in sides)
    if not shared or 2 * len(shared) < min(counts):
        keys = [rows.select(*KEY, key=pl.lit(UNPAIRED)) for rows in items]
        common = f"only {len(shared)} inputs" if shared else "no input"
        note = f"{first} and {second} share no sample, and {common}: compared unpaired, so without p"
        return ByInput((keys[0], keys[1]), UNPAIRED, is_paired=False, notes=(note,))
    texts = forms[0][a], forms[1][b]
    keys = [rows.select(*KEY, key=pl.Series(each, dtype=pl.String)) for rows, each in zip(items, texts, strict=True)]
    paired = (
        f"{len(shared)} of {count} of {name} ({form})"
        for count, name, form in zip(counts, (first, second), (a, b), strict=True)
    )
    notes = [f"{first} and {second} share no sample: paired by their input, {' and '.join(paired)}"]
    for side, of_side in zip(sides, keys, strict=True):
        times = of_side.filter(pl.col("key").is_in(list(shared))).group_by("key").agg(pl.col("sample_hash").n_unique())
        if several := times.filter(pl.col("sample_hash") > 1).height:
            notes.append(f"{several} inputs stand in several samples of {side.name}, which count as repeats")
    return ByInput((keys[0], keys[1]), min(shared), is_paired=True, notes=tuple(notes))


def _items(lake: Lake, side: Side) -> pl.DataFrame:
    """Read the items of a side, each with its sample and its request."""
    items = lake.frame(RUN_ITEMS).filter(pl.col("run_id") == side.run["run_id"], pl.col("model").is_in(side.models))
    if side.prompt_type is not None:
        items = items.filter(pl.col("prompt_type") == side.prompt_type)
    own = items.sort("replicate").unique(KEY, keep="first", maintain_order=True).select(*KEY, "prompt_hash").collect()
    samples = lake.frame(SAMPLES).filter(pl.col("suite") == side.run["suite"])
    samples = samples.select("sample_hash", "input", "target").unique("sample_hash")
    calls = lake.frame(CALLS).filter(pl.col("prompt_hash").is_in(own["prompt_hash"].unique().to_list()))
    known = own.lazy().join(samples, on="sample_hash", how="left")
    return known.join(
        calls.select("prompt_hash", "request").unique("prompt_hash"), on="prompt_hash", how="left"
    ).collect()


Forms = dict[str, list[str | None]]


def _forms(lake: Lake, suite: Suite, items: pl.DataFrame) -> Forms:
    """List in which forms a side has what was asked, each with its text by item: columns only where they were asked."""
    from evalake.suites.declared.imported import metadata_of
    from evalake.suites.declared.samples import unpacked

    forms: Forms = {name: [None] * items.height for name in ASKED}
    for place, row in enumerate(items.iter_rows(named=True)):
        text, columns = unpacked(row["input"] or "")
        own = {"input": _plain(text), "prompt": _plain(_asked(row["request"]))}
        columns = metadata_of(row["target"]) if suite.data.read_answers is not None else columns
        for name, value in columns.items():
            told = _plain(value)
            if told and any(map(str.isalpha, told)) and any(told in each for each in own.values() if each):
                own[f"column {name}"] = told
        for name, told in own.items():
            forms.setdefault(name, [None] * items.height)[place] = told
    samples = items["sample_hash"].n_unique()
    return {name: texts for name, texts in forms.items() if name in ASKED or len(_texts(texts)) >= _UNIQUE * samples}


def _plain(value: Any) -> str | None:
    """Write a text with single spaces, and compatible characters as one; None where it is no text or empty."""
    return " ".join(unicodedata.normalize("NFKC", value).split()) or None if isinstance(value, str) else None


def _asked(request: str | None) -> str | None:
    """Find the last text of the user in a request."""
    messages = (json_object(request or "") or {}).get("messages")
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
            parts = content if isinstance(content, list) else [{"text": content}]
            return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text"))
    return None


def _texts(texts: Sequence[str | None]) -> set[str]:
    return {text for text in texts if text is not None}


def _shared(forms: Sequence[Forms], names: tuple[str, ...]) -> int:
    """Count the inputs that both have in these forms."""
    a, b = (_texts(form[name]) for form, name in zip(forms, names, strict=True))
    return len(a & b)


def unpaired(a: pl.DataFrame, b: pl.DataFrame, metrics: Sequence[Metric]) -> pl.DataFrame:
    """Compare two sides by the intervals of either (MOVER), in the columns of `compare`; nothing is tested."""
    key = ["judge", "metric", "slice", "slice_value"]
    first, second = (measure(frame, metrics, groups=("judge",), cluster="cluster") for frame in (a, b))
    both = first.join(second, on=key, suffix="_b", nulls_equal=True, maintain_order="left")
    ends = [
        tuple(both[f"{name}{side}"].to_numpy().astype(np.float64) for name in ("value", "ci_low", "ci_high"))
        for side in ("", "_b")
    ]
    low, high = difference(ends[0], ends[1], np.zeros(both.height))  # type: ignore[arg-type]
    return both.select(
        *key,
        value_a="value",
        value_b="value_b",
        difference=pl.col("value") - pl.col("value_b"),
        ci_low=pl.Series(low, dtype=pl.Float64).fill_nan(None),
        ci_high=pl.Series(high, dtype=pl.Float64).fill_nan(None),
        units=pl.min_horizontal("units", "units_b"),
    ).select(pl.lit(None, kind).alias(name) if name in _UNTESTED else pl.col(name) for name, kind in COMPARED.items())


_UNTESTED = ("p", "flips_to_a", "flips_to_b", "mark")


# Two suites, and scorers: what means the same on both sides.


def with_meaning(suite: Suite, rows: pl.DataFrame) -> pl.DataFrame:
    """Add to result rows their suite's verdict (right or not) and score."""
    told = suite.presentation.viewing.told
    return rows.with_columns(told["correct"].alias(RIGHT), told["score"].alias(WORTH))


def common_metrics(
    suites: Sequence[Suite], frames: Sequence[pl.DataFrame], names: Sequence[str] | None
) -> tuple[Metric, ...]:
    """List the metrics that two suites have in common: right answers, and scores from 0 to 1.

    Raises NotComparableError where they share none, UsageError for an unknown name.
    """
    has_category = all("category" in frame.columns for frame in frames)
    slices = ("all", "category") if names is not None and has_category else ("all",)
    found = []
    if all(frame[RIGHT].is_not_null().any() for frame in frames):
        found.append(Metric("accuracy", Rate(pl.col(RIGHT)), slices=slices))
    if all(frame[WORTH].is_not_null().any() and frame[WORTH].drop_nulls().is_between(0, 1).all() for frame in frames):
        found.append(Metric("score", Mean(pl.col(WORTH), low=0, high=1), slices=slices))
    if not found:
        named = " and ".join(suite.name for suite in suites)
        raise NotComparableError(f"{named} have no metric in common: neither right answers nor scores from 0 to 1")
    if unknown := sorted(set(names or ()) - {each.name for each in found}):
        known = [each.name for each in found]
        near = did_you_mean(unknown[0], known) or f": choose {' or '.join(known)}"
        raise UsageError(f"the two suites have no metric {unknown[0]} in common{near}")
    return tuple(each for each in found if names is None or each.name in names)


def meanings(suites: Sequence[Suite], metrics: Sequence[Metric], judges: Sequence[str | None]) -> Iterator[str]:
    """Say which metric of each side is compared."""
    for metric in metrics:
        told = []
        for suite, judge in zip(suites, judges, strict=True):
            own = {each.name for each in suite.all_metrics(suite.options)}
            name = next((each for each in _OWN_NAMES[metric.name] if each in own), "right answers")
            told.append(f"{name} of {suite.name}{'' if judge is None else f' by {judge}'}")
        yield f"{metric.name} compares {told[0]} with {told[1]}"
    if metrics:
        yield "the scorers are not the same: a difference is of answers and of scoring"


Scorers = tuple[str | None, str | None]


def by_one_scorer(a: pl.DataFrame, b: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, Scorers]:
    """Keep of either side the scorer that scored most rows, under one name for both; returns which these are."""
    judges = _scorer(a), _scorer(b)
    name = " | ".join(dict.fromkeys(each for each in judges if each is not None)) or None
    one, other = (
        frame.filter(pl.col("judge").eq_missing(judge)).with_columns(judge=pl.lit(name, pl.String))
        for frame, judge in zip((a, b), judges, strict=True)
    )
    return one, other, judges


def _scorer(rows: pl.DataFrame) -> str | None:
    counts = rows.group_by("judge").len().sort("len", "judge", descending=[True, False])
    return counts["judge"][0] if counts.height else None
