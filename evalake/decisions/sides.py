"""The sides of a comparison: models of a run, runs, snapshots and prompt types, found by their names."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from evalake.contracts.tables import RUN_ITEMS, RUNS, SNAPSHOTS
from evalake.core.errors import EvalakeError, UsageError, did_you_mean
from evalake.storage.lake import Lake
from evalake.storage.snapshots import find_snapshot
from evalake.tasks.runtime.runs import of_suite, require_measured, tagged, with_labels, with_state

SHORTEST_ID = 8  # characters that the beginning of a snapshot's id must have


class NotComparableError(EvalakeError):
    """What is to be compared does not mean the same on both sides."""


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
        raise NotComparableError(f"{a.name} and {b.name} have no model in common: name one of each as RUN:MODEL")
    return [(_narrowed(a, model), _narrowed(b, model)) for model in common]


def _narrowed(side: Side, model: str) -> Side:
    return side if side.model is not None else replace(side, name=f"{side.name}:{model}", model=model)
