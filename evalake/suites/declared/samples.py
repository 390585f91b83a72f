"""The samples of a declared suite and the prompts about them: every column reaches prompt, scorers and slices."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalake.core.errors import SourceError, SuiteError
from evalake.core.files import MEGABYTE, FileRefusedError, Files
from evalake.core.hashing import short_hash
from evalake.sdk import Dataset, Sample
from evalake.sdk.dataset import NOT_TEXT, STARTER, DatasetBuilder, read_whole
from evalake.sdk.json_in_text import json_object
from evalake.sdk.sample import Record
from evalake.sdk.sources import as_json, as_payload, as_text, find_table, is_storable, read_mapping
from evalake.suites.declared.file import FIELDS, SuiteFile
from evalake.suites.declared.parts import Message, Prompt
from evalake.suites.declared.texts import rendered

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
        columns = read_mapping(mapping, list(dict.fromkeys(map(self.column, FIELDS))), self.file.columns)
        for record in builder.records(path, columns, list(self.file.columns.values())):
            self._take(record, {field: columns.field(record, self.column(field)) for field in FIELDS}, builder)
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
        reason = self._flaw(text, others, fields["target"], [packed, target, *texts.values()])
        given: dict[str, Any] = texts | {"sample_id": texts["sample_id"] or short_hash(packed)}
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


# What is asked: Jinja templates over the columns of a sample, after worked examples.


def inside(file: SuiteFile, name: str) -> Path:
    """Find a file that a suite's file names, in its folder. Raises SuiteError where it lies elsewhere."""
    path = (file.folder / name).resolve()
    if not path.is_relative_to(file.folder.resolve()):
        raise SuiteError(f"{file.path}: {name} lies outside of the folder of the suite: move it there")
    if not path.is_file():
        raise SuiteError(f"{file.path}: there is no file {name} in the folder of the suite")
    return path


def text_of(file: SuiteFile, prompt: Prompt) -> str:
    """Find the user's part of a prompt, inline or in its file: the last message of a chat."""
    if prompt.file is None:
        return prompt.user or prompt.messages[-1].content
    path = inside(file, prompt.file)
    try:
        return Files(path.parent, MEGABYTE).read(path).decode("utf-8")
    except (FileRefusedError, UnicodeDecodeError) as error:
        raise SuiteError(f"{file.path}: the prompt {prompt.file} cannot be read: {error}") from error


class Prompter:
    """Renders the prompts of a suite; files are read once."""

    def __init__(self, file: SuiteFile) -> None:
        self._file = file
        self._texts: dict[str, str] = {}
        self._examples: dict[str, list[dict[str, Any]]] = {}

    def messages(self, prompt_type: str, columns: Mapping[str, Any]) -> tuple[Mapping[str, str], ...]:
        """Write the messages about a sample. Raises SuiteError where a template cannot be filled."""
        prompt, text = self._prompt(prompt_type)
        messages = []
        if prompt.system is not None:
            messages.append({"role": "system", "content": rendered(prompt.system, columns)})
        for example in self._of(prompt_type, prompt, columns):
            messages.append({"role": "user", "content": rendered(text, example)})
            messages.append({"role": "assistant", "content": rendered(prompt.answer, example)})
        chat = prompt.messages or (Message(role="user", content=text),)
        messages += [{"role": each.role, "content": rendered(each.content, columns)} for each in chat]
        return tuple(messages)

    def flaw(self, columns: Mapping[str, Any]) -> str | None:
        """Say why no prompt can be written about a sample; None where all can."""
        try:
            for prompt_type in self._file.prompts:
                self.messages(prompt_type, columns)
        except SuiteError as error:
            return f"its prompt cannot be written: {error}"
        return None

    def asked(self, prompt_type: str, columns: Mapping[str, Any]) -> str:
        """Write the last message about a sample, without system text and examples: what is asked of it."""
        return rendered(self._prompt(prompt_type)[1], columns)

    def text(self, prompt_type: str) -> str:
        """Find the template of the last message."""
        return self._prompt(prompt_type)[1]

    def _prompt(self, prompt_type: str) -> tuple[Prompt, str]:
        prompt = self._file.prompts.get(prompt_type)
        if prompt is None:
            raise SuiteError(f"{self._file.path} has no prompt {prompt_type} any more")
        if prompt_type not in self._texts:
            self._texts[prompt_type] = text_of(self._file, prompt)
        return prompt, self._texts[prompt_type]

    def _of(self, prompt_type: str, prompt: Prompt, columns: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Choose the examples; one that is the sample itself would give its answer away."""
        if prompt.examples is None:
            return []
        if prompt_type not in self._examples:
            self._examples[prompt_type] = example_rows(self._file, inside(self._file, prompt.examples))
        others = [each for each in self._examples[prompt_type] if _asked(each) != _asked(columns)]
        return others[: prompt.shots]


def _asked(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if name != "sample_id"}
