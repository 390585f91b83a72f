"""SmartBugs Curated: contracts as they come with their labels, and as a model may see them.

Its sources give the answer away: in comments that mark the vulnerable lines, in others that explain them, and in names
such as `IntegerOverflowAdd`. So all comments are blanked and telling names are replaced, without moving a line.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from core.errors import SourceError
from core.files import MEGABYTE, FileRefusedError, Files
from suites.solidity_audit.baselines.solidity_code import blank, functions
from suites.solidity_audit.sources.builder import AuditDatasetBuilder, Material

LABELS = "vulnerabilities.json"
DATASET = "smartbugs_curated"
NO_SOURCE = "the contract's file is missing or not text"
LARGEST_FILE = 64 * MEGABYTE
NO_LABEL = "entry without path, category or lines"

_TELLING = re.compile(
    r"reentr|overflow|underflow|insecure|vulnerab|exploit|phish|attack|drain|steal|front_?run|accesscontrol|unprotected"
    r"|unchecked|shortaddress|honeypot|[a-z]DOS|(?:^|_)dos",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*+")


def read_smartbugs(folder: Path, builder: AuditDatasetBuilder) -> None:
    """Read a checkout. Raises SourceError where its labels cannot be read."""
    files = Files(folder, LARGEST_FILE)
    for number, entry in enumerate(_entries(folder / LABELS, files)):
        where, raw = f"{LABELS}[{number}]", json.dumps(entry)
        place, categories, lines = _label(entry)
        if place is None or len(categories) != 1 or not lines:
            builder.skip(where, NO_LABEL, raw)
            continue
        source = _read(folder, place, files)
        if source is None:
            builder.skip(where, NO_SOURCE, raw)
            continue
        shown = neutral(source)
        truth = {
            "is_vulnerable": True,
            "vulnerability_type": categories.pop(),
            "vulnerable_lines": lines,
            "vulnerable_functions": enclosing(shown, lines),
        }
        sample_id = f"{DATASET}/{place.removeprefix('dataset/').removesuffix('.sol')}"
        builder.add_material(where, Material(shown, truth, sample_id, note=entry.get("source"), raw=raw))


def neutral(source: str) -> str:
    """Blank the comments of the source, and replace names that give an answer away; every line stays where it is."""
    text = source.replace("\r\n", "\n").replace("\r", "\n")
    names: dict[str, str] = {}

    def replaced(match: re.Match[str]) -> str:
        name = match[0]
        if name not in names and _TELLING.search(name):
            names[name] = f"{'Part' if name[0].isupper() else 'part'}{len(names) + 1}"
        return names.get(name, name)

    return _IDENTIFIER.sub(replaced, "\n".join(line.rstrip() for line in blank(text).split("\n")))


def enclosing(code: str, lines: list[int]) -> list[str]:
    """List the names of the functions that contain the lines, in order."""
    listed = functions(blank(code, strings=True))
    return [*dict.fromkeys(f.name for f in listed if any(f.first_line <= line <= f.last_line for line in lines))]


def _entries(file: Path, files: Files) -> Iterator[Any]:
    try:
        entries = json.loads(files.read(file).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise SourceError(f"{file} is not UTF-8 text") from error
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{file} is not valid JSON: {error}") from error
    if not isinstance(entries, list):
        raise SourceError(f"{file} is no list of labelled contracts")
    return iter(entries)


def _label(entry: Any) -> tuple[str | None, set[str], list[int]]:
    """Read path, categories and lines of an entry; empty where they are not of the form."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("path"), str):
        return None, set(), []
    marks = entry.get("vulnerabilities")
    marks = [mark for mark in marks if isinstance(mark, Mapping)] if isinstance(marks, list) else []
    categories = {mark["category"] for mark in marks if isinstance(mark.get("category"), str)}
    lines = {n for mark in marks if isinstance(mark.get("lines"), list) for n in mark["lines"] if type(n) is int}
    return entry["path"], categories, sorted(lines)


def _read(folder: Path, place: str, files: Files) -> str | None:
    try:
        return files.read(folder / place).decode("utf-8-sig")
    except (FileRefusedError, ValueError):  # outside of the checkout, not a file name, or not text
        return None
