"""Extract: read the sources of a run, choose samples, land them, and quarantine unreadable rows."""

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any
from urllib.parse import parse_qsl, quote

import polars as pl

from evalake.contracts.engines.arrow import polars_schema
from evalake.contracts.tables import RUN_ITEMS, RUNS, SAMPLES
from evalake.core.errors import EvalakeError, SourceError, SuiteError, UsageError
from evalake.core.redaction import redact, require_no_password
from evalake.sdk import Dataset, Sample, Skipped, Suite
from evalake.sdk.remote import new_file
from evalake.sdk.sample import spooled
from evalake.sdk.sources import expanded
from evalake.storage.forget import forgotten_samples
from evalake.storage.lake import Lake
from evalake.storage.sql.query import query, write_parquet
from evalake.suites.registry import all_contracts
from evalake.tasks.failures import with_failed_calls
from evalake.tasks.publish import Refused, publish, quarantine
from evalake.tasks.runtime.runs import as_scored, no_run, run_row, under_its_criteria

LAKE = "lake://"
MOST_NAMED = 5  # refused sources in one message
ROWS_AT_ONCE = 10_000  # samples that are audited and landed at once, which bounds memory


@dataclass(frozen=True)
class Extracted:
    """The rows left out of the datasets of a run, by reason, and the number in quarantine."""

    skipped: Counter[str]
    quarantined: int


def read_datasets(suite: Suite, sources: Sequence[str], lake: Lake) -> tuple[Dataset, ...]:
    """Read the datasets named by `sources`, also by patterns and from tables of the lake; without any, starter data.

    Raises SourceError where a source gives no sample, or two of them give datasets of one name, UsageError where there
    is neither a source nor starter data, or a source is a URL with a password.
    """
    for source in sources:
        require_no_password(
            "a dataset",
            source,
            "leave the password out and set PGPASSWORD, or the variable of the API's token, where it is read",
        )
    if not (sources or suite.data.starter):
        raise UsageError(f"{suite.name} has no starter data: name a source with --dataset")
    named = [
        each
        for source in sources or suite.data.starter
        for each in (
            [rows_of_lake(source, lake)]
            if source.startswith(LAKE)
            else expanded(source, folders=not suite.data.folders)
        )
    ]
    datasets, refused = [], []
    for source in named:
        try:
            datasets.append(_read(suite, source))
        except SourceError as error:
            refused.append(str(error))
    if refused:
        more = [f"{len(refused) - MOST_NAMED:,} more sources are refused"] * (len(refused) > MOST_NAMED)
        raise SourceError("; ".join([*refused[:MOST_NAMED], *more]))
    for dataset in datasets:
        if not dataset.samples:
            raise SourceError(f"the dataset {dataset.name} is empty: there is nothing to evaluate")
    if twice := [name for name, times in Counter(dataset.name for dataset in datasets).items() if times > 1]:
        raise SourceError(f"two sources are named {twice[0]}: rename one of the files")
    return tuple(datasets)


def _read(suite: Suite, source: str) -> Dataset:
    try:
        return suite.data.read(source)
    except EvalakeError:
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise SuiteError(f"the code of {suite.name} that reads {redact(source)!r} failed with {message}") from error


def rows_of_lake(source: str, lake: Lake) -> str:
    """Copy rows of a table or view into a table of their own: `lake://TABLE?where=CONDITION&limit=N`, then a mapping.

    The condition is part of a query that runs confined, as those of `evalake sql` do. Raises SourceError where the
    source is malformed, QueryError where the query is refused.
    """
    table, _, rest = source.removeprefix(LAKE).partition("?")
    given = parse_qsl(rest, keep_blank_values=True)
    asked = dict(given)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", table):
        raise SourceError(f"{source!r} names no table: write lake://TABLE?where=CONDITION")
    for name in ("where", "limit"):
        if sum(each == name for each, _ in given) > 1:
            raise SourceError(f"{source!r} says {name} more than once: write one {name}")
    if not re.fullmatch(r"[0-9]{1,9}", asked.get("limit", "1")):
        raise SourceError(f"{source!r}: limit is a number of rows, not {asked['limit']!r}")
    sql = f"select * from {table}"
    if condition := asked.get("where"):
        sql += f" where (\n{condition}\n)"
    if "limit" in asked:
        sql += f" limit {asked['limit']}"
    rows = query(lake, all_contracts(lake), sql)
    place = new_file(f"{table}.parquet")
    write_parquet([rows], place)
    mapping = "&".join(f"{quote(name)}={quote(value)}" for name, value in given if name not in ("where", "limit"))
    return f"{place}?{mapping}" if mapping else str(place)


def without_forgotten(lake: Lake, datasets: Sequence[Dataset]) -> tuple[Dataset, ...]:
    """Remove from datasets the samples that were forgotten, which count as left out.

    Raises SourceError where a dataset has no other sample.
    """
    forgotten = forgotten_samples(lake)
    return tuple(_without(dataset, forgotten) for dataset in datasets) if forgotten else tuple(datasets)


def _without(dataset: Dataset, forgotten: Collection[str]) -> Dataset:
    kept = spooled(sample for sample in dataset.samples if sample.sample_hash not in forgotten)
    gone = len(dataset.samples) - len(kept)
    if gone and not kept:
        raise SourceError(f"every sample of the dataset {dataset.name} was forgotten: there is nothing left of it")
    return replace(dataset, samples=kept, skipped=(*dataset.skipped, *[Skipped(dataset.name, "forgotten")] * gone))


def extract(lake: Lake, run_id: str, datasets: Sequence[Dataset]) -> Extracted:
    """Land the samples of every dataset version, once, and quarantine malformed rows."""
    quarantined = 0
    for dataset in datasets:
        quarantined += _land_samples(lake, run_id, dataset)
        quarantined += quarantine(lake, run_id, f"extract:{run_id}:{dataset.version}", refused_rows(dataset))
    skipped = Counter(out.reason for dataset in datasets for out in dataset.skipped)
    return Extracted(skipped, quarantined)


def refused_rows(dataset: Dataset) -> list[Refused]:
    """List what was refused of a dataset, for quarantine."""
    return [
        Refused(SAMPLES.table, out.payload, (out.reason,), f"{out.reason} in {out.where}", out.where)
        for out in dataset.skipped
        if out.payload is not None
    ]


def _land_samples(lake: Lake, run_id: str, dataset: Dataset) -> int:
    """Land the samples of a dataset, unless all of its version are there already; returns how many were refused."""
    version = pl.col("dataset_version") == dataset.version
    if lake.frame(SAMPLES).filter(version).select(pl.len()).collect().item() == len(dataset.samples):
        return 0
    refused, first, samples = 0, 0, iter(dataset.samples)
    while part := list(islice(samples, ROWS_AT_ONCE)):
        refused += publish(lake, run_id, SAMPLES, sample_rows(dataset, part, first)).quarantined
        first += len(part)
    return refused


def sample_of(row: Mapping[str, Any]) -> Sample:
    """Build the sample that a row of SAMPLES keeps."""
    return Sample(**{name: row[name] for name in Sample.__dataclass_fields__})


def sample_rows(dataset: Dataset, samples: Sequence[Sample], first: int = 0) -> pl.DataFrame:
    """Build the rows of SAMPLES of some samples of a dataset version; `first` is the position of the first."""
    fields = (*Sample.__dataclass_fields__, "sample_hash")
    columns = {name: [getattr(sample, name) for sample in samples] for name in fields}
    frame = pl.DataFrame(
        {
            **columns,
            "dataset": [dataset.name] * len(samples),
            "dataset_version": [dataset.version] * len(samples),
            "position": range(first, first + len(samples)),
        },
        schema_overrides=polars_schema(SAMPLES),
    )
    return frame.select([column.name for column in SAMPLES.columns])


# Choose: which samples a run takes: all, the first, a stratified draw, named ones, or those that failed.


DRAW_SEED = "evalake-draw-1"


def draw(dataset: Dataset, size: int) -> Dataset:
    """Draw samples stratified by label and category, the same every time; a larger draw holds every smaller one."""
    spread = _in_turns(sorted(dataset.samples, key=_chance), lambda sample: (sample.label, sample.category), _chance)
    drawn = _in_turns(spread, _label, _label)[:size]
    return _keep(dataset, {sample.sample_id for sample in drawn})


def draw_pooled(datasets: Sequence[Dataset], size: int) -> tuple[Dataset, ...]:
    """Draw samples of all datasets together, clusters whole, the same every time; a larger draw holds smaller ones.

    Each dataset, label and category has about its share of every draw, and each of its clusters the same chance: their
    order is shuffled with a seed, for any order of the file, and so is the order in which they are asked. The last
    cluster may make it a few samples more.
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
    kept: list[list[Sample]] = [[] for _ in datasets]
    for *_, key in sorted(places):
        if sum(map(len, kept)) >= size:
            break
        for number, sample in clusters[key]:
            kept[number].append(sample)
    drawn = (replace(dataset, samples=tuple(samples)) for dataset, samples in zip(datasets, kept, strict=True))
    return tuple(dataset for dataset in drawn if dataset.samples)


def choose(datasets: Sequence[Dataset], sample_ids: Collection[str]) -> tuple[Dataset, ...]:
    """Keep the samples named, and the datasets that hold some. Raises UsageError for a name that none has."""
    if unknown := sorted(set(sample_ids).difference(each.sample_id for known in datasets for each in known.samples)):
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
    version = as_scored(lake, run).scoring.version
    results = (
        lake.frame(suite.results)
        .filter(under_its_criteria(lake, suite, run_id), scorer_version=version)
        .select(key)
        .collect()
    )
    lacking = items.join(results, on=key, how="anti", nulls_equal=True)
    names = {*items.drop_nulls("given_up")["sample_id"], *lacking["sample_id"], *unlisted["sample_id"]}
    if not names:
        raise SourceError(f"every item of the run {run_id} has an answer: nothing of it failed")
    return names


def parameters_of(lake: Lake, suite: Suite, run_id: str) -> Mapping[str, Any]:
    """Read the parameters of a run, as a request takes them: without models where the suite asks none.

    Raises UsageError where the lake has no such run of the suite.
    """
    known = lake.frame(RUNS).filter(pl.col("run_id") == run_id, pl.col("suite") == suite.name).collect()
    if known.is_empty():
        raise no_run(lake, run_id)
    parameters: Mapping[str, Any] = json.loads(known["parameters"].item())
    return parameters if suite.conversation.asks_subject else {**parameters, "models": ()}


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
    return replace(dataset, samples=spooled(sample for sample in dataset.samples if sample.sample_id in wanted))
