"""The form of a file of text rows: its encoding and its delimiter, found out from the file itself.

A byte order mark decides. Without one, a text with a zero byte in every other place is UTF-16, one whose bytes are all
valid UTF-8 is UTF-8, and one without a single valid character beyond ASCII is Windows-1252, which holds Latin-1.
"""

import codecs
import csv
import re
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TextIO

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
_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n?\Z")  # by which spreadsheets name the delimiter


@dataclass(frozen=True, slots=True)
class TextForm:
    """How a file's bytes become rows."""

    encoding: str
    delimiter: str | None = None  # of a table with delimiters
    skipped_lines: int = 0  # before the header

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
        file = path.open(encoding=self.encoding, errors=errors, newline="")
        for _ in range(self.skipped_lines):
            file.readline()
        return file


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
            has_valid = has_valid or _VALID_UTF8.search(before + part) is not None
            before = part[-3:]
            if is_utf8:
                try:
                    decoder.decode(part)
                except UnicodeDecodeError:
                    is_utf8 = False
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
        first = file.readline()
        if named := _SEPARATOR_LINE.match(first):
            return TextForm(encoding, named[1], 1)
        header = [first, *islice(file, 20)]  # a quoted name may go over lines
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
    return len(set(needed) & set(names)), len(names)
