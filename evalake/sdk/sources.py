"""Shared by every suite's dataset sources: tables of records, the declared mapping of their columns, what is left out.

A table is a `.jsonl` (or `.ndjson`), `.csv`, `.tsv`, `.parquet` file, or a `.json` file that is one array, alone or as
`data`, `rows` and the like of an object. `?` and a mapping follow where its columns have other names or values than the
suite's fields; case and spaces around a name do not count. Encoding and delimiter of a text are found out (tabular.py).
It may be packed by gzip, or lie elsewhere (remote.py):

    reports.csv?command=cmd&label=is_bad&label.malicious=1&label.harmless=0

* `FIELD=COLUMN`: the field is in this column. Without it, the column is named like the field.
* `FIELD.VALUE=TEXT`: where the column says TEXT, the field is VALUE. `TEXT` `*` is everything not named otherwise, and
  needs no column: `label.harmless=*` says that every row is harmless. `FIELD.=TEXT` makes the field empty.
* Other values stay as they are. Numbers and booleans compare as they are written in JSON (`1`, `0.5`, `true`).
* Percent-encode what would be mistaken: `%26` for `&`, `%2B` for `+`.
"""

import csv
import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from sys import maxsize
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

from evalake.core.errors import SourceError, did_you_mean
from evalake.core.files import LARGEST_IN_ALL, MEGABYTE, Files
from evalake.core.hashing import NotCanonicalError, canonical_text
from evalake.sdk import tabular
from evalake.sdk.json_in_text import DoubledKeyError, decode_once
from evalake.sdk.remote import fetched, unpacked
from evalake.sdk.sample import LINE_TOO_LONG, LONGEST_LINE, Record, Skipped
from evalake.sdk.tabular import read_parquet

csv.field_size_limit(16 * MEGABYTE)  # Python's own limit, 131,072 characters, is shorter than many a contract

TABLE_SUFFIXES = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
TABLES = f"{', '.join(TABLE_SUFFIXES)}, or .json that is an array"
LARGEST_ARRAY = 256 * MEGABYTE  # of a JSON array, which is read as a whole
LONGEST_PAYLOAD = 10_000  # characters of refused material that are kept for quarantine

NOT_UTF8 = "not UTF-8 text"
NOT_JSON = "not a JSON object"
DOUBLED_KEY = "a JSON object that names a field twice"
UNREADABLE_ROW = "unreadable CSV row"

WRAPPERS = ("data", "rows", "records", "samples", "items", "examples")  # names of the array in an object
_WRAPPED = re.compile(rf'\s*\{{(?:.*?[\[{{,])??\s*"(?:{"|".join(WRAPPERS)})"\s*:\s*\[', re.DOTALL)
_NOTHING = object()


@dataclass(frozen=True)
class ColumnMapping:
    """The column that holds each field, and the field's value that each of the column's values means."""

    columns: Mapping[str, str]
    values: Mapping[str, Mapping[str, str | None]]

    def needed(self, required: Collection[str]) -> tuple[str, ...]:
        """List the columns a table must have: those named, and those of the `required` fields that no `*` fills."""
        filled = {field for field, values in self.values.items() if "*" in values}
        return tuple(
            column for field, column in self.columns.items() if column != field or field in {*required} - filled
        )

    def label_text(self, record: Record, name: str) -> str:
        """Return the text of a label; `*` where the mapping fills it for all rows, without a column."""
        column = self.columns[name]
        if column not in record.values and "*" in self.values.get(name, {}):
            return "*"
        return (as_text(record.values.get(column)) or "").strip()

    def field(self, record: Record, name: str) -> Any:
        """Look up the value of a field in a record through the mapping; None where there is none."""
        value = record.values.get(self.columns[name])
        meanings = self.values.get(name)
        if meanings is None:
            return value
        meaning = meanings.get(as_text(value) or "", meanings.get("*", _NOTHING))
        return value if meaning is _NOTHING else meaning


def with_label_column(
    mapping: ColumnMapping, classes: tabular.TwoClasses, path: Path, needed: Collection[str]
) -> ColumnMapping:
    """Map the label to the column whose name says what is true, where neither a column nor a mapping names it.

    Raises SourceError where several columns are such.
    """
    field = classes.field
    if mapping.columns[field] != field or field in mapping.values:
        return mapping
    present = columns_of(path, needed)
    named = [name.strip() for name in present if classes.truth_of(name)]
    if not named or any(tabular.folded(name) == tabular.folded(field) for name in present):
        return mapping
    if len(named) > 1:
        raise SourceError(
            f"{path} has no column {field!r}, and several that say what is true ({', '.join(map(repr, named))}): name "
            f"one of them, as in ?{field}={named[0]}"
        )
    return replace(mapping, columns={**mapping.columns, field: named[0]})


def split_source(source: str) -> tuple[Path, str]:
    """Split a source into path and mapping text. A path that exists as it stands has no mapping, even with a `?`."""
    path, mark, mapping = source.partition("?")
    return (Path(source), "") if not mark or Path(source).exists() else (Path(path), mapping)


def find_source(source: str, others: str) -> tuple[Path, str | None]:
    """Find the path of a source, with its mapping text where it is a table; `others` names what else it may be.

    Raises SourceError where there is nothing, or a mapping for what is no table.
    """
    path, mapping = fetched(source) or split_source(source)
    if not path.exists():
        choose = ""
        with suppress(OSError):
            choose = did_you_mean(path.name, (each.name for each in path.parent.iterdir()))
        choose = choose or f": give `starter`, {others}, or a table ({TABLES})"
        raise SourceError(f"there is no dataset source {source!r}, and no file {path.absolute()}{choose}")
    path = unpacked(path) if path.is_file() else path
    suffix = path.suffix.lower()
    if path.is_file() and (suffix in TABLE_SUFFIXES or (suffix == ".json" and is_array(path))):
        return path, mapping
    if mapping:
        raise SourceError(f"the dataset source {source!r} takes no column mapping: only tables do")
    return path, None


def expanded(source: str, folder: Path = Path(), *, folders: bool = True) -> list[str]:
    """List the tables that a pattern (`parts/*.jsonl`) or a folder stands for, by path from `folder`; else the source.

    Where `folders` is no, a folder is given as it is. Raises SourceError where there is none, or one is a link out.
    """
    path, mark, mapping = source.partition("?")
    is_folder = folders and bool(path) and (folder / path).is_dir()
    if "://" in source or (folder / source).is_file() or not (is_folder or "*" in path):
        return [source]
    root = Path(path).anchor or folder
    pattern = f"{path.rstrip('/')}/*" if is_folder else path
    found = sorted(filter(_is_table, Path(root).glob(pattern.removeprefix(Path(path).anchor))), key=str)
    if not found:
        raise SourceError(f"{source!r} holds no table ({TABLES})")
    guarded = Files(Path(folder, *takewhile(lambda part: not {*"*["} & {*part}, Path(pattern).parts)), in_all=maxsize)
    for each in found:
        guarded.check(each, maxsize)  # which the user did not name
    return [f"{each if Path(path).anchor else each.relative_to(folder)}{mark}{mapping}" for each in found]


def _is_table(path: Path) -> bool:
    suffixes = [each.lower() for each in path.suffixes]
    last = suffixes[-2:-1] if suffixes[-1:] == [".gz"] else suffixes[-1:]
    return path.is_file() and last[:1] != [] and last[0] in (*TABLE_SUFFIXES, ".json")


def find_table(source: str) -> tuple[Path, str]:
    """Find the table of a source, and its mapping text. Raises SourceError where it is none."""
    path, mapping = find_source(source, "a URL of one")
    if mapping is None:
        raise unknown_kind(source)
    return path, mapping


def unknown_kind(source: str) -> SourceError:
    """Build the error for a source that is nothing that could be read."""
    return SourceError(f"the dataset source {source!r} is of no known kind: tables are {TABLES}")


def read_mapping(text: str, fields: Collection[str], also: Mapping[str, str] = MappingProxyType({})) -> ColumnMapping:
    """Read the mapping after the `?` of a source; `also` gives fields further names.

    Raises SourceError for a malformed one or unknown fields.
    """
    columns = {name: name for name in fields}
    values: dict[str, dict[str, str | None]] = {}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text), errors="strict")
    except ValueError as error:
        raise SourceError(f"the column mapping {text!r} is not of the form FIELD=COLUMN&FIELD.VALUE=TEXT") from error
    declared: set[str] = set()
    for key, value in pairs:
        name, dot, meaning = key.partition(".")
        name = name if name in columns else also.get(name, name)
        if name not in columns:
            known = ", ".join(dict.fromkeys((*fields, *also)))
            raise SourceError(f"the column mapping names the unknown field {name!r}; fields are {known}")
        if dot and values.setdefault(name, {}).setdefault(value, meaning or None) != (meaning or None):
            raise SourceError(f"the column mapping gives {name}'s value {value!r} two meanings")
        if not dot and (name in declared or not value):
            raise SourceError(f"the column mapping must give the field {name!r} exactly one column")
        if not dot:
            declared.add(name)
            columns[name] = value
    return ColumnMapping(columns, values)


def read_table(path: Path, needed: Collection[str], known: Collection[str] = ()) -> Iterator[Record | Skipped]:
    """Read the records of a table, and what could not be read as one.

    Columns that differ from the `needed` and the `known` ones by case or spaces around them are named like these. Text
    that is not UTF-8 comes with lone surrogates in place of its bytes. Blank lines are no records. Raises SourceError
    where the file is no table of its kind or lacks one of the `needed` columns (a JSON line may lack any).
    """
    suffix = path.suffix.lower()
    Files(path, LARGEST_IN_ALL).check(path)
    names = tabular.ColumnNames((*needed, *known))
    if suffix in (".csv", ".tsv"):
        return _read_csv(path, needed, names)
    if suffix == ".parquet":
        return read_parquet(path, needed, names.of)
    return _with_columns(path, _read_array(path) if suffix == ".json" else read_json_lines(path), needed, names)


def columns_of(path: Path, needed: Collection[str]) -> list[str]:
    """List the columns of a table, of JSON those of its first record."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        from pyarrow import ArrowException
        from pyarrow.parquet import read_schema

        try:
            return list(read_schema(path).names)
        except ArrowException:
            return []  # read_table says why
    if suffix in (".csv", ".tsv"):
        form = tabular.form_of_table(path, needed)
        with form.open(path) as file:
            return next(csv.reader(file, delimiter=form.delimiter or ","), [])
    records = _read_array(path) if suffix == ".json" else read_json_lines(path)
    return next((list(each.values) for each in records if isinstance(each, Record)), [])


def is_array(path: Path) -> bool:
    """Tell whether a `.json` file begins as an array, or as an object that holds one under a usual name."""
    with tabular.TextForm(tabular.encoding_of(path)).open(path) as file:
        head = file.read(tabular.LOOK_AT).lstrip("\ufeff \t\r\n")
    return head.startswith("[") or ('"commands"' not in head and _WRAPPED.match(head) is not None)


def _with_columns(
    path: Path, records: Iterator[Record | Skipped], needed: Collection[str], names: tabular.ColumnNames
) -> Iterator[Record | Skipped]:
    """Hand on records of JSON. Raises SourceError where no record has one of the needed columns."""
    seen: dict[str, None] = {}
    any_record = False
    for each in records:
        if isinstance(each, Record):
            any_record = True
            values = names.renamed(each.values)
            if len(values) < len(each.values):  # the names differ by case or spaces
                yield Skipped(each.where, DOUBLED_KEY, as_payload(each.raw))
                continue
            seen.update(dict.fromkeys(values))
            yield each if values is each.values else replace(each, values=values)
        else:
            yield each
    if any_record and not seen.keys() >= {*needed}:
        tabular.check_columns(path, list(seen), needed)


def _read_array(path: Path) -> Iterator[Record | Skipped]:
    if path.stat().st_size > LARGEST_ARRAY:
        raise SourceError(f"{path} is too large for one JSON array: write it as JSON Lines, an object a line")
    with tabular.TextForm(tabular.encoding_of(path)).open(path) as file:
        text = file.read().removeprefix("\ufeff")
    try:
        entries = decode_once(text)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path} is not valid JSON: {str(error).splitlines()[0]}") from error
    if isinstance(entries, dict):
        held = [entries[name] for name in WRAPPERS if isinstance(entries.get(name), list)]
        entries = held[0] if len(held) == 1 else None
    if not isinstance(entries, list):
        raise SourceError(f"{path} is no JSON array of objects; for JSON Lines, name it .jsonl")
    for number, values in enumerate(entries):
        where, raw = f"{path.name}[{number}]", json.dumps(values, default=str)
        is_record = isinstance(values, dict)
        yield Record(where, values, raw) if is_record else Skipped(where, NOT_JSON, as_payload(raw))


def read_json_lines(path: Path) -> Iterator[Record | Skipped]:
    """Read the objects of a file, one a line, and what could not be read as one. Blank lines are no records."""
    form = tabular.TextForm(tabular.encoding_of(path))
    if form.encoding.startswith("utf-8"):
        yield from _read_lines(path)
        return
    with form.open(path) as file:
        for number, line in enumerate(file, start=1):
            if text := line.removeprefix("\ufeff").strip():
                yield _line(f"{path.name}:{number}", text)


def _read_lines(path: Path) -> Iterator[Record | Skipped]:
    """Read lines of UTF-8, and hold none beyond the longest length."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            where = f"{path.name}:{number}"
            if len(line) > LONGEST_LINE:
                while line and not line.endswith(b"\n"):
                    line = file.readline(LONGEST_LINE)
                yield Skipped(where, LINE_TOO_LONG, f"more than {LONGEST_LINE} bytes")
                continue
            text = line.decode("utf-8", "surrogateescape").removeprefix("\ufeff" if number == 1 else "").strip()
            if text:
                yield _line(where, text)


def _line(where: str, text: str) -> Record | Skipped:
    try:
        values = decode_once(text)
    except (ValueError, RecursionError) as error:
        return Skipped(where, reason_of(error), as_payload(text))
    return Record(where, values, text) if isinstance(values, dict) else Skipped(where, NOT_JSON, as_payload(text))


def reason_of(error: Exception) -> str:
    """Say why a text was not decoded as a JSON object, as a reason that can be counted."""
    return DOUBLED_KEY if isinstance(error, DoubledKeyError) else NOT_JSON


def _read_csv(path: Path, needed: Collection[str], names: tabular.ColumnNames) -> Iterator[Record | Skipped]:
    form = tabular.form_of_table(path, needed)
    with form.open(path) as file:
        latest: list[str] = []  # lines of the row, for the reader does not show what it refuses

        def remembered(line: str) -> str:
            latest.append(line)
            return line

        reader = csv.reader(map(remembered, file), delimiter=form.delimiter or ",", strict=True)
        try:
            header = names.of(next(reader, []))
        except csv.Error as error:
            raise SourceError(f"the header of {path} cannot be read: {error}") from error
        tabular.check_columns(path, header, needed)
        while True:
            latest.clear()
            try:
                cells = next(reader, None)
            except csv.Error:  # a quote that nothing closes takes all lines to the end
                first = reader.line_num - len(latest) + 1
                for number, line in enumerate(latest, start=first):
                    yield Skipped(f"{path.name}:{number}", UNREADABLE_ROW, as_payload(line))
                continue
            where = f"{path.name}:{reader.line_num}"
            if cells is None:
                return
            if cells and len(cells) != len(header):
                yield Skipped(where, UNREADABLE_ROW, as_payload("".join(latest)))
            elif cells:
                values = {name: cell or None for name, cell in zip(header, cells, strict=True)}
                yield Record(where, values, json.dumps(values))


def as_text(value: Any) -> str | None:
    """Write a cell's value as in JSON, but text without quotes; None for a missing one, which pandas writes as NaN."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and math.isnan(value):
        return None
    return json.dumps(value, default=str) if not isinstance(value, float) or math.isfinite(value) else str(value)


def utf8(content: bytes, where: object) -> str:
    """Decode a file's content. Raises SourceError where it is no UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{where} is not UTF-8 text: byte {error.start} cannot be read") from error


def read_json(content: bytes | str, where: object) -> Any:
    """Decode JSON in UTF-8. Raises SourceError where it is none."""
    text = content if isinstance(content, str) else utf8(content, where)
    try:
        return decode_once(text)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{where} is not valid JSON: {error}") from error


def is_storable(text: str) -> bool:
    """Tell whether every engine can hold the text: it is Unicode without lone surrogates, and has no NUL."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return "\x00" not in text


def storable(text: str) -> str:
    """Replace every lone surrogate by `?`: escapes in JSON can spell these, and no table can hold them."""
    return text.encode("utf-8", "replace").decode("utf-8")


def without_nul(text: str) -> str:
    """Replace NUL by `?`, too, for a text that is shown, and that no hash is taken of."""
    return storable(text).replace("\x00", "?")


def as_json(value: Any) -> str:
    """Write a decoded value as canonical JSON that a table can hold: each lone surrogate becomes `?`.

    Raises SourceError where it holds NaN or an infinite number, or is nested too deeply.
    """
    try:
        return storable(canonical_text(value))
    except NotCanonicalError as error:
        raise SourceError("holds a number that is not finite, or is nested too deeply") from error


def as_payload(text: str) -> str:
    """Prepare refused material for quarantine: what cannot be stored is escaped, and a long end is cut off."""
    kept = text[:LONGEST_PAYLOAD].encode("utf-8", "backslashreplace").decode("utf-8").replace("\x00", "\\x00")
    return kept if len(text) <= LONGEST_PAYLOAD else f"{kept}… ({len(text)} characters)"
