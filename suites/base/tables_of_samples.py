"""Datasets that are tables: how a suite reads its samples from JSON Lines, CSV or Parquet without code of its own."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.errors import SourceError
from suites.base import sources
from suites.base.dataset_builder import NOT_TEXT, REPEATED_ID, DatasetBuilder, read_whole
from suites.base.sample import Dataset, Sample

STARTER = "starter"
FIELDS = ("sample_id", "input", "target", "label", "category", "severity", "difficulty", "cluster", "note")


@dataclass(frozen=True)
class SampleTable:
    """Reads a suite's datasets: call it with a source, as `--dataset` takes it.

    A source is `starter`, or a table (see suites/base/sources.py, for mappings of columns, too). Records that lack
    something, or hold what no table can store, are left out and quarantined. A record without a sample_id is named by
    a digest of its input.

    Attributes:
        suite: The suite's name.
        columns: The column of a sample's field where it has another name, such as {"input": "question"}.
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
        path, mapping = (self.starter, "") if is_starter and self.starter else sources.split_source(source)
        if not path.is_file() or path.suffix.lower() not in sources.TABLE_SUFFIXES:
            also = "" if self.starter is None else f"`{STARTER}`, or "
            raise SourceError(
                f"{source!r} is no dataset source: give {also}a table ({', '.join(sources.TABLE_SUFFIXES)})"
            )
        names = {name: self.columns.get(name, name) for name in FIELDS}
        columns = sources.read_mapping(mapping, tuple(names.values()))
        builder = DatasetBuilder(STARTER if is_starter else sources.as_payload(path.stem))
        for record in builder.records(path, columns.needed([names[name] for name in self.required])):
            self._take(record, columns, names, builder)
        return builder.result()

    def _take(
        self, record: sources.Record, columns: sources.ColumnMapping, names: Mapping[str, str], builder: DatasetBuilder
    ) -> None:
        texts = {name: sources.as_text(columns.field(record, column)) or None for name, column in names.items()}
        digest = hashlib.sha256((texts["input"] or "").encode("utf-8", "replace")).hexdigest()
        sample_id = texts["sample_id"] or digest[:16]
        reason = self._flaw(texts, names) or (REPEATED_ID if sample_id in builder.ids else None)
        if reason is not None:
            builder.skip(record.where, reason, record.raw)
            return
        target = columns.field(record, names["target"])
        given: dict[str, Any] = texts | {
            "sample_id": sample_id,
            "target": None if target is None else json.dumps(target, ensure_ascii=False, default=str),
        }
        builder.add(Sample(self.suite, builder.dataset, **given))

    def _flaw(self, texts: Mapping[str, str | None], names: Mapping[str, str]) -> str | None:
        """Say why a record cannot be a sample; None where it can."""
        missing = [names[name] for name in self.required if not (texts[name] or "").strip()]
        if missing:
            return f"no {missing[0]}"
        return None if sources.is_storable("".join(text or "" for text in texts.values())) else NOT_TEXT
