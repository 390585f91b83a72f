"""Datasets that are tables: how a suite reads its samples from JSON Lines, CSV or Parquet without code of its own."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import polars as pl

from evalake.core.errors import SourceError, UsageError
from evalake.core.hashing import content_hash, short_hash
from evalake.sdk import sources
from evalake.sdk.sample import Dataset, Record, Sample, Seen, Skipped, Spool, spooled
from evalake.sdk.sources import ColumnMapping, as_payload, read_table, with_label_column
from evalake.sdk.tabular import TwoClasses, form_of

# A dataset in the making: what its source gives becomes samples, or is left out for a stated reason.


DUPLICATE = "duplicate"
NOT_TEXT = "not storable text (invalid Unicode or NUL)"
REPEATED_ID = "sample_id already taken"


@dataclass
class DatasetBuilder:
    """Collects one dataset in the order in which its source is read; a suite adds what it takes for a sample."""

    dataset: str
    samples: Spool[Sample] = field(default_factory=Spool)
    skipped: list[Skipped] = field(default_factory=list)
    ids: Seen = field(default_factory=Seen)
    notes: list[str] = field(default_factory=list)  # how the source was understood

    def skip(self, where: str, reason: str, refused: str | None = None, label: str | None = None) -> None:
        """Record what is skipped; `refused` is the malformed material, None where it is skipped by design."""
        self.skipped.append(Skipped(where, reason, None if refused is None else as_payload(refused), label))

    def records(self, path: Path, mapping: ColumnMapping, required: Collection[str]) -> Iterator[Record]:
        """Yield the records of a table, as `read_table` reads it; skip what could not be read as one."""
        needed = mapping.needed(required)
        if form := form_of(path, needed):
            self.notes.append(f"{path.name}: read as {form}")
        for record in read_table(path, needed, mapping.columns.values()):
            if isinstance(record, Skipped):
                self.skip(record.where, record.reason, record.payload)
            else:
                yield record

    def labelled(
        self, path: Path, mapping: ColumnMapping, required: Collection[str], classes: TwoClasses
    ) -> Iterator[tuple[Record, ColumnMapping, str | None]]:
        """Yield the records of a table with labels of two classes, the mapping by which they are read, and the class.

        Raises SourceError before the first where a label cannot be understood.
        """
        mapping = with_label_column(mapping, classes, path, required)
        field = classes.field
        read = read_table(path, mapping.needed(required), mapping.columns.values())
        labels = (text for each in read if isinstance(each, Record) and (text := mapping.label_text(each, field)))
        of, words = classes.understand(path.name, mapping.columns[field], labels, mapping.values.get(field))
        if words:
            self.notes.append(words)
        for each in self.records(path, mapping, required):
            yield each, mapping, of.get(mapping.label_text(each, field))

    def add(self, sample: Sample) -> bool:
        """Add a sample, unless its id is taken; returns whether it is new."""
        if is_new := self.ids.add(sample.sample_id):
            assert sample.sample_hash  # which the sample keeps in the file, too
            self.samples.append(sample)
        return is_new

    def add_new(self, sample: Sample, record: Record) -> None:
        """Add the sample of a record, unless an equal one is there, or another one with its id."""
        if self.add(sample):
            self.ids.add(_whole(sample))
        elif _whole(sample) in self.ids:
            self.skip(record.where, DUPLICATE)
        else:
            self.skip(record.where, REPEATED_ID, record.raw)

    def result(self) -> Dataset:
        """Build the dataset from what was collected so far."""
        return Dataset(self.dataset, spooled(self.samples), tuple(self.skipped), tuple(self.notes))


def _whole(sample: Sample) -> str:
    """Name a sample with all that it holds, beside the names of samples."""
    return f"\0{sample.sample_hash}"


def read_whole(source: str, read: Callable[[], Dataset], wanted: str, *, may_be_empty: bool = False) -> Dataset:
    """Read the dataset of a source by calling `read`; `wanted` names, in words, what it must hold.

    Raises SourceError where it cannot be read, or holds none of what is wanted, unless it may be empty.
    """
    try:
        dataset = read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise SourceError(f"cannot read the dataset source {source!r}: {reason}") from error
    if not dataset.samples and not may_be_empty:
        why = ", ".join(f"{count} x {reason}" for reason, count in summary(dataset).skipped.items())
        raise SourceError(f"the dataset source {source!r} holds no {wanted} ({why or 'it is empty'})")
    return dataset


# Drawing: a sample of results to be labelled, with known probabilities, and how many results each one stands for.


def draw(units: pl.DataFrame, size: int, seed: int) -> pl.DataFrame:
    """Draw about `size` units, each with its `inclusion_probability`, which is in proportion to its weight, up to 1.

    A systematic sample in random order (Madow 1949): it has exactly these probabilities. Weighting by them removes the
    preference for informative units from estimates. The same seed draws the same units, under the same `draw`.
    """
    if size < 1:
        raise UsageError(f"a sample of {size} results cannot be drawn: ask for 1 or more")
    if units.is_empty():
        return units.with_columns(inclusion_probability=pl.lit(None, pl.Float64), draw=pl.lit(None, pl.String))
    chance = inclusion(units["weight"].to_numpy(), size)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(chance))
    ends = np.cumsum(chance[order])
    ticks = np.arange(rng.random(), ends[-1], 1.0)
    chosen = np.unique(order[np.minimum(np.searchsorted(ends, ticks, side="right"), len(order) - 1)])
    drawn = units.with_columns(inclusion_probability=pl.Series(chance))[chosen]
    return drawn.with_columns(draw=pl.lit(content_hash(drawn.rows())))


def inclusion(weight: np.ndarray[Any, np.dtype[np.float64]], size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Compute probabilities proportional to the weights, none above 1, with the sum `size` (all 1 for fewer units)."""
    if size >= len(weight):
        return np.ones(len(weight))
    chance = np.zeros(len(weight))
    certain = np.zeros(len(weight), dtype=bool)
    while True:
        rest = size - certain.sum()
        chance = np.where(certain, 1.0, rest * weight / weight[~certain].sum())
        over = (chance > 1) & ~certain
        if not over.any():
            return np.minimum(chance, 1.0)
        certain |= over


def represented(labels: pl.LazyFrame, unit: Sequence[str]) -> pl.LazyFrame:
    """Compute how many units each labelled one stands for, as `human_weight`, from all draws together.

    A draw is made among the units that nobody has labelled before. With the units labelled by then, which count 1 each,
    it estimates the whole (Des Raj 1956): a unit counts one over its probability in its own draw, and 1 in each later
    one. The draws are weighted by their sizes. A unit that was picked, or labelled by chance 1, counts 1.

    Args:
        labels: Rows of `human_labels` about the units of one run.
        unit: The columns that identify what was drawn.
    """
    first = labels.sort("labelled_at", "label_id").unique(unit, keep="first", maintain_order=True)
    first = first.select(*unit, "inclusion_probability", "labelled_at", pl.col("draw").fill_null(""))
    drawn = first.filter(pl.col("inclusion_probability").is_not_null())
    draws = drawn.group_by("draw").agg(size=pl.len(), begun=pl.col("labelled_at").min()).sort("begun", "draw")
    share = pl.col("size") / pl.col("size").sum()
    later = (1 - share.cum_sum()).clip(lower_bound=0.0)
    known = first.join(draws.select("draw", share=share, later=later), on="draw", how="left", maintain_order="left")
    weight = pl.col("share") / pl.col("inclusion_probability") + pl.col("later")
    return known.select(
        *unit, human_weight=pl.when(pl.col("inclusion_probability").is_null()).then(1.0).otherwise(weight)
    )


STARTER = "starter"
FIELDS = ("sample_id", "input", "target", "label", "category", "severity", "difficulty", "cluster", "note")


@dataclass(frozen=True)
class SampleTable:
    """Reads a suite's datasets: call it with a source, as `--dataset` takes it.

    A source is `starter`, or a table (see evalake/sdk/sources.py, for mappings of columns, too). Records that lack
    something, or hold what no table can store, are left out and quarantined. A record without a sample_id is named by
    a digest of its input.

    Attributes:
        suite: The suite's name.
        columns: The column of a sample's field where it has another name, like {"input": "question"}.
        required: Fields that every sample has.
        starter: The file behind the source `starter`.
    """

    suite: str
    columns: Mapping[str, str] = field(default_factory=dict)
    required: Sequence[str] = ("input",)
    starter: Path | None = None

    def __call__(self, source: str) -> Dataset:
        """Read a source whole. Raises SourceError where it is missing, unreadable, or gives no sample."""
        return read_whole(source, lambda: self._read(source), "sample that can be used")

    def _read(self, source: str) -> Dataset:
        is_starter = source == STARTER and self.starter is not None
        path, mapping = (self.starter, "") if is_starter and self.starter else sources.find_table(source)
        names = {name: self.columns.get(name, name) for name in FIELDS}
        builder = DatasetBuilder(STARTER if is_starter else sources.as_payload(path.stem))
        columns = sources.read_mapping(mapping, tuple(names.values()))
        for record in builder.records(path, columns, [names[name] for name in self.required]):
            fields = {name: columns.field(record, column) for name, column in names.items()}
            self._take(record, fields, names, builder)
        return builder.result()

    def _take(
        self, record: Record, fields: Mapping[str, Any], names: Mapping[str, str], builder: DatasetBuilder
    ) -> None:
        texts = {name: sources.as_text(value) or None for name, value in fields.items()}
        if (reason := self._flaw(texts, names)) is not None:
            builder.skip(record.where, reason, record.raw)
            return
        target = fields["target"]
        given: dict[str, Any] = texts | {
            "sample_id": texts["sample_id"] or short_hash(texts["input"] or ""),
            "target": None if target is None else json.dumps(target, ensure_ascii=False, default=str),
        }
        builder.add_new(Sample(self.suite, builder.dataset, **given), record)

    def _flaw(self, texts: Mapping[str, str | None], names: Mapping[str, str]) -> str | None:
        """Say why a record cannot be a sample; None where it can."""
        missing = [names[name] for name in self.required if not (texts[name] or "").strip()]
        if missing:
            return f"no {missing[0]}"
        return None if sources.is_storable("".join(text or "" for text in texts.values())) else NOT_TEXT


UNLABELLED = "unlabelled"
"""How samples without category and label are counted."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a dataset holds by category (by label where there is none), and what was left out by reason; sorted."""

    samples: Mapping[str, int]
    skipped: Mapping[str, int]


def summary(dataset: Dataset) -> Summary:
    """Count a dataset's samples per category, and what was left out per reason."""
    samples = Counter(sample.category or sample.label or UNLABELLED for sample in dataset.samples)
    skipped = Counter(left.reason for left in dataset.skipped)
    return Summary(dict(sorted(samples.items())), dict(sorted(skipped.items())))


# Samples that stand twice: equal texts, and near-duplicates by shingles of five letters (MinHash, Jaccard).


SHINGLE = 5  # letters
LEAST = 5  # shingles of a text: shorter ones are equal or they are not
NEAR = 0.8  # share of common shingles from which two texts are near-duplicates
LONGEST = 4000  # letters of a text that are looked at
MOST = 50_000  # texts among which near-duplicates are looked for
_BANDS, _ROWS = 20, 5  # 0.8 alike: found with probability 0.9996
_MOST_IN_BUCKET = 50
_PRIME = (1 << 31) - 1


def plain(text: str) -> str:
    """Fold case and white space."""
    return " ".join(text.casefold().split())


def equal(texts: Sequence[str]) -> list[list[int]]:
    """Group the places of texts that are equal but for case and white space; only groups of several."""
    groups: dict[str, list[int]] = defaultdict(list)
    for place, text in enumerate(texts):
        groups[plain(text)].append(place)
    return [group for group in groups.values() if len(group) > 1]


def near(texts: Sequence[str]) -> Iterator[tuple[int, int, float]]:
    """Yield pairs of texts that are nearly the same, with the share of shingles that they have in common."""
    shingles = [_shingles(text) for text in texts]
    buckets: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    rng = np.random.default_rng(1)
    factors = rng.integers(1, _PRIME, size=(_BANDS * _ROWS, 1), dtype=np.int64)
    offsets = rng.integers(0, _PRIME, size=(_BANDS * _ROWS, 1), dtype=np.int64)
    for place, own in enumerate(shingles):
        if len(own) < LEAST:
            continue
        hashed = np.fromiter(own, np.int64, len(own)) % _PRIME
        least = ((factors * hashed + offsets) % _PRIME).min(axis=1).astype(np.int32)
        for band in range(_BANDS):
            buckets[band, least[band * _ROWS : (band + 1) * _ROWS].tobytes()].append(place)
    seen = set()
    for bucket in buckets.values():
        for one, other in combinations(bucket[:_MOST_IN_BUCKET], 2):
            if (one, other) not in seen:
                seen.add((one, other))
                common = len(shingles[one] & shingles[other])
                share = common / (len(shingles[one]) + len(shingles[other]) - common)
                if share >= NEAR and plain(texts[one]) != plain(texts[other]):
                    yield one, other, share


def _shingles(text: str) -> frozenset[int]:
    letters = re.sub(r"[^\w\s]", "", plain(text[:LONGEST])).encode()
    return frozenset(crc32(letters[at : at + SHINGLE]) for at in range(max(1, len(letters) - SHINGLE + 1)))
