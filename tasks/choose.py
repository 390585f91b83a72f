"""Choose: which samples a run takes: all, the first, a stratified draw, those named, or those that failed."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from evalake.contracts.tables import RUN_ITEMS, RUNS, SAMPLES
from evalake.core.errors import SourceError, UsageError
from evalake.sdk import Dataset, Sample, Suite
from evalake.storage.lake import Lake
from evalake.tasks.failures import with_failed_calls
from evalake.tasks.runtime.runs import no_run, run_row

DRAW_SEED = "evalake-draw-1"


def draw(dataset: Dataset, size: int) -> Dataset:
    """Draw samples stratified by label and category, the same every time; a larger draw holds every smaller one."""
    spread = _in_turns(sorted(dataset.samples, key=_chance), lambda sample: (sample.label, sample.category), _chance)
    drawn = _in_turns(spread, _label, _label)[:size]
    return _keep(dataset, {sample.sample_id for sample in drawn})


def draw_pooled(datasets: Sequence[Dataset], size: int) -> tuple[Dataset, ...]:
    """Draw samples of all datasets together, clusters whole, the same every time; a larger draw holds smaller ones.

    Each dataset, label and category has about its share of every draw, and each of its clusters the same chance: their
    order is shuffled with a seed, whatever the order of the file. The last cluster may make it a few samples more.
    """
    clusters: dict[tuple[str, str], list[tuple[int, Sample]]] = defaultdict(list)
    for number, dataset in enumerate(datasets):
        for sample in dataset.samples:
            clusters[dataset.name, sample.cluster or sample.sample_id].append((number, sample))
    strata: dict[Any, list[tuple[str, tuple[str, str]]]] = defaultdict(list)
    for key, members in clusters.items():
        first = members[0][1]
        strata[key[0], first.label, first.category].append((_hashed(json.dumps(key)), key))
    places = []
    for stratum, shuffled in strata.items():
        start = int(_hashed(json.dumps(stratum))[:8], 16) / 2**32
        places += [((n + start) / len(shuffled), chance, key) for n, (chance, key) in enumerate(sorted(shuffled))]
    kept: list[set[str]] = [set() for _ in datasets]
    for *_, key in sorted(places):
        if sum(map(len, kept)) >= size:
            break
        for number, sample in clusters[key]:
            kept[number].add(sample.sample_id)
    drawn = (_keep(dataset, names) for dataset, names in zip(datasets, kept, strict=True))
    return tuple(dataset for dataset in drawn if dataset.samples)


def choose(datasets: Sequence[Dataset], sample_ids: Collection[str]) -> tuple[Dataset, ...]:
    """Keep the samples named, and the datasets that hold some. Raises UsageError for a name that none has."""
    known = {sample.sample_id for dataset in datasets for sample in dataset.samples}
    if unknown := sorted(set(sample_ids) - known):
        raise UsageError(f"no dataset has the sample {unknown[0]!r}: name others with --sample, or other datasets")
    kept = (_keep(dataset, sample_ids) for dataset in datasets)
    return tuple(dataset for dataset in kept if dataset.samples)


def next_replicate(lake: Lake, suite: str, models: Sequence[str]) -> int:
    """Find the first number under which no run of the suite has asked these models (without any: any model) yet."""
    items = lake.frame(RUN_ITEMS).filter(pl.col("suite") == suite)
    if models:
        items = items.filter(pl.col("model").is_in(list(models)))
    highest = items.select(pl.col("replicate").max()).collect().item()
    return 0 if highest is None else int(highest) + 1


def failed_samples(lake: Lake, suite: Suite, run_id: str) -> set[str]:
    """Find the names of a run's samples without an answer to each of their items, and of those never asked about.

    Raises SourceError where all have one.
    """
    listed = lake.frame(RUN_ITEMS).filter(pl.col("run_id") == run_id)
    run = run_row(lake, run_id)
    of_run = pl.col("dataset_version").is_in(list(json.loads(run["dataset_versions"]).values()))
    samples = lake.frame(SAMPLES).filter(of_run).select("sample_id", "sample_hash").unique()
    asked = pl.col("judge").is_in(run["judges"]) if run["judges"] else pl.col("judge").is_null()
    times = listed.filter(asked).group_by("sample_hash").agg(pl.len().alias("times"))
    fewer = pl.col("times").fill_null(0) < run["items"] // run["samples"]
    unlisted = samples.join(times, on="sample_hash", how="left").filter(fewer).collect()
    items = with_failed_calls(lake, run_id, listed).collect()
    key = [
        name
        for name in ("prompt_hash", "endpoint", "sample_hash", "replicate", "judge")
        if name in suite.results.column
    ]
    results = lake.frame(suite.results).filter(pl.col("scorer_version") == suite.scoring.version).select(key).collect()
    lacking = items.join(results, on=key, how="anti", nulls_equal=True)
    names = {*items.drop_nulls("given_up")["sample_id"], *lacking["sample_id"], *unlisted["sample_id"]}
    if not names:
        raise SourceError(f"every item of the run {run_id} has an answer: nothing of it failed")
    return names


def parameters_of(lake: Lake, suite: Suite, run_id: str) -> Mapping[str, Any]:
    """Read the parameters of a run. Raises UsageError where the lake has no such run of the suite."""
    known = lake.frame(RUNS).filter(pl.col("run_id") == run_id, pl.col("suite") == suite.name).collect()
    if known.is_empty():
        raise no_run(lake, run_id)
    parameters: Mapping[str, Any] = json.loads(known["parameters"].item())
    return parameters


def _in_turns(
    samples: Iterable[Sample], stratum: Callable[[Sample], Any], among_equals: Callable[[Sample], str]
) -> list[Sample]:
    """Order the samples so that every beginning of the list has about the same share of each stratum.

    Each has a place within its stratum, as a share: strata come in turns, as often as they are frequent.
    """
    strata: dict[Any, list[Sample]] = defaultdict(list)
    for sample in samples:
        strata[stratum(sample)].append(sample)
    places = [
        ((number + 0.5) / len(members), among_equals(sample), sample)
        for members in strata.values()
        for number, sample in enumerate(members)
    ]
    return [sample for *_, sample in sorted(places, key=lambda place: place[:2])]


def _label(sample: Sample) -> str:
    return str(sample.label)


def _chance(sample: Sample) -> str:
    return _hashed(sample.sample_id)


def _hashed(text: str) -> str:
    return hashlib.sha256(f"{DRAW_SEED} {text}".encode("utf-8", "replace")).hexdigest()


def _keep(dataset: Dataset, sample_ids: Collection[str]) -> Dataset:
    wanted = set(sample_ids)
    return replace(dataset, samples=tuple(sample for sample in dataset.samples if sample.sample_id in wanted))
