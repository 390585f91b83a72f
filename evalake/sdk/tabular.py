"""Labels of two classes and the form of tables: which value is which class, encoding, delimiter and columns.

Values that name a class are read without regard to case. `1`, `yes` and `true` say nothing by themselves: only a
column whose name says what is true gives them a meaning, or a mapping. A value that cannot be understood is refused.
"""

import codecs
import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from evalake.core.errors import SourceError
from evalake.core.files import MEGABYTE
from evalake.sdk.sample import LINE_TOO_LONG, LONGEST_LINE, NOT_READ, Record, Skipped

# The form of a file of text rows: its encoding and its delimiter, found out from the file itself.


DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
LOOK_AT = 1 << 16  # bytes by which UTF-16 without a mark is told
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NAMES = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8", "cp1252": "Latin-1 (Windows-1252)"}
_VALID_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


@dataclass(frozen=True, slots=True)
class TextForm:
    """How a file's bytes become rows."""

    encoding: str
    delimiter: str | None = None  # of a table with delimiters

    @property
    def words(self) -> str | None:
        """What was found, where it differs from UTF-8 with commas; None where it does not."""
        encoding = _NAMES.get(self.encoding, self.encoding.upper())
        parts = [] if encoding == "UTF-8" else [encoding]
        if self.delimiter not in (None, ","):
            parts.insert(0, f"columns separated by {DELIMITERS.get(str(self.delimiter), repr(self.delimiter))}")
        return ", ".join(parts) or None

    def open(self, path: Path) -> TextIO:
        """Open the file; bytes that are no text come as lone surrogates."""
        errors = "surrogateescape" if self.encoding.startswith("utf-8") else "replace"
        return path.open(encoding=self.encoding, errors=errors, newline="")


def encoding_of(path: Path) -> str:
    """Find out the encoding of a file, which is read once in parts."""
    with path.open("rb") as file:
        head = file.read(LOOK_AT)
        for mark, encoding in _MARKS:
            if head.startswith(mark):
                return encoding
        if (wide := _wide(head)) is not None:
            return wide
        decoder, is_utf8, has_valid = codecs.getincrementaldecoder("utf-8")(), True, False
        part, before = head, b""
        while part:
            if not (before.isascii() and part.isascii()):
                has_valid = has_valid or _VALID_UTF8.search(before + part) is not None
                try:
                    decoder.decode(part)
                except UnicodeDecodeError:
                    is_utf8 = False
            before = part[-3:]
            if has_valid and not is_utf8:
                return "utf-8"  # damaged: its bad rows are refused one by one
            part = file.read(1 << 20)
        if is_utf8:
            try:
                decoder.decode(b"", final=True)
            except UnicodeDecodeError:  # its last character is cut off, or is none
                is_utf8 = False
    return "utf-8" if is_utf8 else "cp1252"


def form_of_table(path: Path, needed: Collection[str]) -> TextForm:
    """Find out the form of a table: the delimiter is the one by which its header has most of the needed columns."""
    encoding = encoding_of(path)
    form = TextForm(encoding, ",")
    with form.open(path) as file:
        header = [*islice(file, 21)]  # a quoted name may go over lines
    usual = "\t" if path.suffix.lower() == ".tsv" else ","
    order = sorted(DELIMITERS, key=lambda delimiter: delimiter != usual)
    return TextForm(encoding, max(order, key=lambda delimiter: _fit(header, delimiter, needed)))


def _wide(head: bytes) -> str | None:
    """Tell UTF-16 without a mark: more than a third of all bytes are zeros, on one side of each pair."""
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if even + odd <= len(head) // 3:
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _fit(header: list[str], delimiter: str, needed: Collection[str]) -> tuple[int, int]:
    try:
        names = next(csv.reader(header, delimiter=delimiter), [])
    except csv.Error:
        return 0, 0
    return len({folded(name) for name in needed} & {folded(name) for name in names}), len(names)


def folded(name: str) -> str:
    """Write a column's name for comparing: without case and spaces around it."""
    return name.strip().casefold()


_TRUE, _FALSE = frozenset({"1", "true", "yes", "y", "t"}), frozenset({"0", "false", "no", "n", "f"})
_WORDS_OF_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_DENIALS = frozenset({"no", "not", "non", "un"})
_MOST_SHOWN = 6


@dataclass(frozen=True)
class TwoClasses:
    """The two classes of a label field.

    Attributes:
        field: The field's name.
        positive, negative: The classes, as samples have them.
        words: Other values that name a class.
        truths: Words in a column's name by which a true value is the class.
    """

    field: str
    positive: str
    negative: str
    words: Mapping[str, str]
    truths: Mapping[str, str]

    def understand(
        self, where: str, column: str, values: Iterable[str], meanings: Mapping[str, str | None] | None
    ) -> tuple[Mapping[str, str], str | None]:
        """Find out what each value of a label column means; returns it, and a sentence where that is not plain.

        Args:
            where: The file, for errors.
            column: The column's name.
            values: The value of each row, as text.
            meanings: The class of values by the user's mapping; `*` is any other; None without a mapping.

        Raises:
            SourceError: A value names no class, or the mapping fits no row.
        """
        counts = Counter(values)
        given = {_plain(text): self._class(where, meaning) for text, meaning in (meanings or {}).items()}
        found = ", ".join(f"{value!r} ({count})" for value, count in counts.most_common(_MOST_SHOWN))
        named = given.keys() - {"*"}
        if named and counts and not any(_plain(value) in named for value in counts) and "*" not in given:
            raise SourceError(f"{where}: the mapping of {self.field!r} fits no row; the column {column!r} has {found}")
        by_name = self.truth_of(column)
        if any(by_name.get(value, meaning) != meaning for value, meaning in given.items()):
            by_name = {}  # the mapping says that the column's name misleads
        classes: dict[str, str] = {}
        unread: list[str] = []
        for value, count in counts.most_common():
            plain = _plain(value)
            read = given.get(plain) or given.get("*") or self._named(plain) or by_name.get(plain)
            if read is None:
                unread.append(f"{value!r} ({count})")
            else:
                classes[value] = read
        if unread:
            raise SourceError(
                f"{where}: the column {column!r} has values that are neither {self.positive} nor {self.negative}: "
                f"{', '.join(unread[:_MOST_SHOWN])}. Say what they mean, as in "
                f"?{self.field}={column}&{self.field}.{self.positive}=1&{self.field}.{self.negative}=0"
            )
        of_itself = self.truth_of(self.field) if column == self.field else {}
        is_plain = all(read in (value, of_itself.get(_plain(value))) for value, read in classes.items())
        said = ", ".join(f"{value!r} is {classes[value]} ({count})" for value, count in counts.most_common(_MOST_SHOWN))
        return classes, None if is_plain else f"{self.field} from the column {column!r}: {said}"

    def _named(self, plain: str) -> str | None:
        return {self.positive: self.positive, self.negative: self.negative, **self.words}.get(plain)

    def _class(self, where: str, meaning: str | None) -> str:
        plain = _plain(meaning or "")
        named = self._named(plain) or self.truth_of(self.field).get(plain)
        if named is None:
            raise SourceError(
                f"{where}: the mapping gives {self.field} the value {plain!r}; it is {self.positive} or {self.negative}"
            )
        return named

    def truth_of(self, column: str) -> Mapping[str, str]:
        """Look up what true and false mean by a column's name; nothing where the name does not say it."""
        said = {word.lower() for word in _WORDS_OF_NAME.findall(column)}
        classes = {self.truths[word] for word in said & self.truths.keys()}
        if len(classes) != 1 or said & _DENIALS:
            return {}
        (when_true,) = classes
        when_false = self.negative if when_true == self.positive else self.positive
        return {**dict.fromkeys(_TRUE, when_true), **dict.fromkeys(_FALSE, when_false)}


def _plain(value: str) -> str:
    """Write a value for comparing: without case and space around it, whole numbers without a fraction."""
    return value.strip().casefold().removesuffix(".0")


# The columns of a table.


class ColumnNames:
    """The names of a table's columns as its reader wants them."""

    def __init__(self, wanted: Collection[str]) -> None:
        self._wanted = frozenset(wanted)
        self._folded = {folded(name): name for name in wanted}
        self._latest: tuple[list[str], list[str]] = [], []  # most records have the columns of the one before

    def of(self, present: Collection[str]) -> list[str]:
        """Name these columns; one that is wanted as it stands wins over another that differs by case."""
        exact = self._wanted.intersection(present)
        return [name if (known := self._folded.get(folded(name), name)) in exact else known for name in present]

    def renamed(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Rename the columns of a record."""
        if (present := list(values)) != self._latest[0]:
            self._latest = present, self.of(present)
        names = self._latest[1]
        return values if names == present else dict(zip(names, values.values(), strict=True))


def check_columns(path: Path, present: Collection[str], needed: Collection[str]) -> None:
    """Raise SourceError where a table lacks a column, or has two of one name."""
    if not present:
        raise SourceError(f"{path} is empty: it names no column")
    known = ", ".join(map(repr, present))
    repeated = [name for name, count in Counter(present).items() if count > 1]
    if repeated:
        raise SourceError(f"{path} has two columns named {repeated[0]!r}; rename one of them")
    missing = [name for name in needed if name not in present]
    if missing:
        raise SourceError(
            f"{path} has no column {missing[0]!r} (its columns are {known}); "
            "map it after the file name, as in ?FIELD=COLUMN or ?FIELD.VALUE=*"
        )


def form_of(path: Path, needed: Collection[str]) -> str | None:
    """Say in which form a table was found; None where it is the usual one."""
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        return form_of_table(path, needed).words
    if suffix == ".parquet":
        return None
    words = TextForm(encoding_of(path)).words
    return ", ".join(filter(None, ("a JSON array", words))) if suffix == ".json" else words


# Records of a Parquet file, whose cells may be stored once and stand in millions of rows.

LARGEST_CHUNK = 256 * MEGABYTE  # of a Parquet column, which is unpacked as a whole
WIDEST_NUMBER = 16  # bytes of one cell that is no text


def read_parquet(
    path: Path, needed: Collection[str], named: Callable[[Collection[str]], list[str]]
) -> Iterator[Record | Skipped]:
    """Read the records of a Parquet file, its columns as `named`. Raises SourceError where it cannot be read."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    number = 0
    try:
        with ParquetFile(path) as file:
            names = dict(zip(file.schema_arrow.names, named(file.schema_arrow.names), strict=True))
            check_columns(path, list(names.values()), needed)
            columns = _bounded_columns(path, file, [name for name, known in names.items() if known in needed])
            for batch in file.iter_batches(batch_size=_rows_at_once(path, file), columns=columns):
                for row in range(batch.num_rows):  # one at a time, for as Python's texts they are larger
                    where, cells = f"{path.name}: row {number + 1}", batch.slice(row, 1)
                    if cells.nbytes > LONGEST_LINE:
                        yield Skipped(where, LINE_TOO_LONG, NOT_READ)
                    else:
                        (values,) = cells.to_pylist()
                        record = {names[name]: value for name, value in values.items()}
                        yield Record(where, record, json.dumps(values, default=str))
                    number += 1
    except (ArrowException, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SourceError(f"{path} cannot be read as Parquet after row {number}: {reason}") from error


def _rows_at_once(path: Path, file: Any) -> int:
    """Compute how many rows of a Parquet file are unpacked at once: few where cells are long.

    Raises:
        SourceError: A column is too large to be unpacked, however small the file is.
    """
    most = 1000
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        largest = max((group.column(index).total_uncompressed_size for index in range(group.num_columns)), default=0)
        if largest > LARGEST_CHUNK:
            raise SourceError(
                f"{path} has a column with more than {LARGEST_CHUNK // MEGABYTE} MB in one row group: write it with "
                "smaller row groups"
            )
        # A cell that is stored once may stand in every row
        most = min(most, max(1, LARGEST_CHUNK // max(largest, 1)))
    return most


def _bounded_columns(path: Path, file: Any, needed: Collection[str]) -> list[str]:
    """Choose the columns to read: those with lists only where the lists must be small.

    One row may hold a list of millions of cells that are stored once, and lists are only ever shown to people.

    Raises:
        SourceError: A column with lists that may be large is needed.
    """
    lists = set()
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        for index in range(group.num_columns):
            chunk, column = group.column(index), file.schema.column(index)
            longest = chunk.total_uncompressed_size if "BYTE_ARRAY" in chunk.physical_type else WIDEST_NUMBER
            if column.max_repetition_level and chunk.num_values * longest > LARGEST_CHUNK:
                lists.add(column.path.split(".")[0])
    if unread := lists.intersection(needed):
        raise SourceError(f"{path} has lists in the column {min(unread)!r}: a sample takes text or a number")
    return [name for name in file.schema_arrow.names if name not in lists]
