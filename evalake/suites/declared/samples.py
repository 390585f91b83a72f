"""The samples of a declared suite: every column of the dataset reaches the prompt, the scorers and the slices."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalake.core.errors import SourceError
from evalake.sdk import Dataset, Sample
from evalake.sdk.dataset import NOT_TEXT, STARTER, DatasetBuilder, read_whole
from evalake.sdk.json_in_text import json_object
from evalake.sdk.sample import Record
from evalake.sdk.sources import as_json, as_payload, as_text, find_table, is_storable, read_mapping
from evalake.suites.declared.file import FIELDS, SuiteFile

_PACKED = {"input", "columns"}


@dataclass(frozen=True)
class Samples:
    """Reads the datasets of a suite's file; call it with a source, as `--dataset` takes it."""

    file: SuiteFile
    flaw: Callable[[Mapping[str, Any]], str | None] = lambda columns: None  # why a sample with these is none

    def __call__(self, source: str) -> Dataset:
        """Read a source whole. Raises SourceError where it is missing, unreadable, or gives no sample."""
        return read_whole(self.place(source), lambda: self._read(source), "sample that can be used")

    def place(self, source: str) -> str:
        """Find a source that the file names in the file's own folder; another is as it stands."""
        source = self.file.sources[0] if source == STARTER else source
        return str(self.file.folder / source) if source in self.file.sources and "://" not in source else source

    def column(self, field: str) -> str:
        """Name the column of a field."""
        return self.file.columns.get(field, field)

    def _read(self, source: str) -> Dataset:
        if self.file.samples and self.place(source) == str(self.file.path):
            return self._read_own()
        path, mapping = find_table(self.place(source))
        builder = DatasetBuilder(as_payload(path.stem))
        named = [self.column(field) for field in FIELDS]
        columns = read_mapping(mapping, list(dict.fromkeys(named)), self.file.columns)
        needed = [column for field, column in self.file.columns.items() if field in FIELDS]
        for record in builder.records(path, columns, needed):
            fields = {field: columns.field(record, self.column(field)) for field in FIELDS}
            self._take(record, fields, builder)
        return builder.result()

    def _read_own(self) -> Dataset:
        """Read the samples that the file itself holds."""
        builder = DatasetBuilder(as_payload(self.file.called))
        for number, row in enumerate(self.file.samples):
            where = f"{self.file.path.name}: samples[{number}]"
            record = Record(where, row, json.dumps(row, default=str))
            self._take(record, {field: row.get(self.column(field)) for field in FIELDS}, builder)
        return builder.result()

    def _take(self, record: Record, fields: Mapping[str, Any], builder: DatasetBuilder) -> None:
        own = {self.column(field) for field in FIELDS}
        others = {name: value for name, value in record.values.items() if name not in own}
        text = as_text(fields["input"]) or ""
        try:
            packed = packed_input(text, others)
            target = None if fields["target"] is None else as_json(fields["target"])
        except SourceError:
            builder.skip(record.where, NOT_TEXT, record.raw)
            return
        texts = {name: as_text(fields[name]) or None for name in FIELDS if name not in ("input", "target")}
        sample_id = texts["sample_id"] or hashlib.sha256(packed.encode("utf-8", "replace")).hexdigest()[:16]
        reason = self._flaw(text, others, fields["target"], [packed, target, *texts.values()])
        given: dict[str, Any] = texts | {"sample_id": sample_id}
        sample = Sample(self.file.called, builder.dataset, input=packed, target=target, **given)
        reason = reason or self.flaw(row_of(sample, self.file))
        if reason is not None:
            builder.skip(record.where, reason, record.raw)
            return
        builder.add_new(sample, record)

    def _flaw(self, text: str, others: Mapping[str, Any], target: Any, kept: list[str | None]) -> str | None:
        if "input" in self.file.columns and not text.strip():
            return f"no {self.column('input')}"
        if not text.strip() and all(value is None for value in others.values()):
            return "nothing in it"
        if "target" in self.file.columns and (target is None or target == ""):
            return f"no {self.column('target')}"
        return None if is_storable("".join(each or "" for each in kept)) else NOT_TEXT


def packed_input(text: str, others: Mapping[str, Any]) -> str:
    """Write a sample's input: its text, or JSON of text and further columns where there are some."""
    if not others and (json_object(text) or {}).keys() != _PACKED:
        return text
    return as_json({"input": text, "columns": json.loads(json.dumps(others, default=str))})


def unpacked(packed: str) -> tuple[str, Mapping[str, Any]]:
    """Read a sample's input: its text and its further columns."""
    read = json_object(packed) or {}
    if read.keys() == _PACKED and isinstance(read["input"], str) and isinstance(read["columns"], dict):
        return read["input"], read["columns"]
    return packed, {}


def row_of(sample: Sample, file: SuiteFile) -> dict[str, Any]:
    """List every column of a sample, fields by their own name and by that of their column."""
    text, others = unpacked(sample.input)
    fields: dict[str, Any] = {field: getattr(sample, field) for field in FIELDS}
    fields |= {"input": text, "target": target_of(sample)}
    return {**others, **fields, **{column: fields[field] for field, column in file.columns.items()}}


def target_of(sample: Sample) -> Any:
    """Decode the sample's target; None where it has none."""
    return None if sample.target is None else json.loads(sample.target)


def shown_input(sample: Sample) -> str:
    """Write a sample's input for people: its text, then a line for each further column."""
    text, others = unpacked(sample.input)
    return "\n".join([*([text] if text else []), *(f"{name}: {as_text(value)}" for name, value in others.items())])


def brief_input(packed: str) -> str:
    """Write a sample's input in a few words, for lists: its text, or else its further columns, longest first."""
    text, others = unpacked(packed)
    return text or " · ".join(sorted((as_text(value) or "" for value in others.values()), key=len, reverse=True))


def example_rows(file: SuiteFile, path: Path) -> list[dict[str, Any]]:
    """Read worked examples, a table with the columns of the dataset. Raises SourceError where it cannot be read."""
    examples = Samples(file)(str(path))
    if examples.skipped:
        raise SourceError(f"{examples.skipped[0].where}: {examples.skipped[0].reason}")
    return [row_of(sample, file) for sample in examples.samples]
