"""Where commands come from: the starter data, a GTFOBins checkout, aegish command sets, tables of one's own.

A source, as `--dataset` takes it, is one of

* `starter`: the commands that ship with the project;
* a folder that holds `_gtfobins`: a GTFOBins checkout (see gtfobins.py and placeholders.py);
* a `.json` file: a command set of the aegish benchmark, malicious (command, binary, category) or harmless (command,
  ground_truth);
* a `.jsonl`, `.csv` or `.parquet` file with the fields command, label (malicious or harmless), category (of malicious
  ones), and if wanted difficulty, sample_id and reason; or with a mapping of its columns (see suites/sources.py), as in
  `commands.csv?command=cmd&label=is_bad&label.malicious=1&label.harmless=0&category=kind`.

A dataset is called `starter`, `gtfobins`, or like its file. Whatever is left out is counted by its reason.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contracts.errors import SourceError
from suites.base import Dataset, LeftOut
from suites.command_guard.gtfobins import CATEGORIES, FOLDER, OTHER_FUNCTION, read_gtfobins
from suites.command_guard.harvest import LABELS, SUITE, UNKNOWN_LABEL, Harvest, Material
from suites.harvest import read_whole
from suites.sources import (
    NOT_JSON,
    STARTER,
    TABLE_SUFFIXES,
    ColumnMapping,
    Record,
    as_payload,
    as_text,
    read_mapping,
    read_table,
    split_source,
)

FIELDS = ("command", "label", "category", "difficulty", "sample_id", "reason")
LARGEST_JSON = 256 * 1024 * 1024  # bytes: a JSON file is read as a whole


def read_dataset(source: str) -> Dataset:
    """Read a source whole.

    Raises SourceError where it is missing, unreadable, malformed as a whole, or gives no command.
    """
    return read_whole(source, lambda: _read(source).result(), "command that can be used")


def _read(source: str) -> Harvest:
    if source == "starter":
        return _read_starter()
    path, mapping_text = split_source(source)
    kind = path.suffix.lower()
    if not path.exists():
        raise SourceError(
            f"there is no dataset source {source!r}: give `starter`, a GTFOBins checkout, an aegish .json file, "
            f"or a table ({', '.join(TABLE_SUFFIXES)})"
        )
    if path.is_file() and kind in TABLE_SUFFIXES:
        harvest = Harvest(as_payload(path.stem))
        _take_table(path, read_mapping(mapping_text, FIELDS), harvest)
        return harvest
    if mapping_text:
        raise SourceError(f"the dataset source {source!r} takes no column mapping: only tables do")
    if path.is_dir():
        return _read_checkout(path)
    if path.is_file() and kind == ".json":
        return _read_aegish(path)
    raise SourceError(f"the dataset source {source!r} is of no known kind: tables are {', '.join(TABLE_SUFFIXES)}")


def _read_starter() -> Harvest:
    harvest = Harvest("starter")
    for file in ("malicious.jsonl", "harmless.jsonl"):
        _take_table(STARTER / SUITE / file, read_mapping("", FIELDS), harvest)
    return harvest


def _read_checkout(path: Path) -> Harvest:
    if not (path / FOLDER).is_dir():
        raise SourceError(f"the folder {str(path)!r} holds no {FOLDER} folder: give the root of a GTFOBins checkout")
    harvest = Harvest("gtfobins")
    read_gtfobins(path, harvest)
    return harvest


def _take_table(path: Path, mapping: ColumnMapping, harvest: Harvest) -> None:
    for record in read_table(path, mapping.needed(("command", "label"))):
        if isinstance(record, LeftOut):
            harvest.leave(record.where, record.reason, record.payload)
        else:
            harvest.take(record.where, _material(record, mapping))


def _material(record: Record, mapping: ColumnMapping) -> Material:
    return Material(
        command=mapping.field(record, "command"),
        label=mapping.field(record, "label"),
        category=as_text(mapping.field(record, "category")),
        difficulty=as_text(mapping.field(record, "difficulty")),
        note=as_text(mapping.field(record, "reason")),
        sample_id=as_text(mapping.field(record, "sample_id")),
        raw=record.raw,
    )


def _read_aegish(path: Path) -> Harvest:
    harvest = Harvest(as_payload(path.stem))
    for number, entry in enumerate(_aegish_entries(path)):
        where, raw = f"{path.name}: commands[{number}]", json.dumps(entry)
        if not isinstance(entry, dict):
            harvest.leave(where, NOT_JSON, raw)
        elif isinstance(entry.get("category"), str) and entry["category"] not in CATEGORIES:
            harvest.leave(where, OTHER_FUNCTION)
        elif _aegish_label(entry) is None:
            harvest.leave(where, UNKNOWN_LABEL, raw)
        else:
            category, binary = entry.get("category"), entry.get("binary")
            name = f"{binary}_{category}" if isinstance(binary, str) and category else ""
            material = Material(
                entry.get("command"), _aegish_label(entry), category, note=entry.get("prompt"), name=name, raw=raw
            )
            harvest.take(where, material)
    return harvest


def _aegish_entries(path: Path) -> Iterator[Any]:
    if path.stat().st_size > LARGEST_JSON:
        raise SourceError(f"{path} is larger than {LARGEST_JSON} bytes: convert it to .jsonl or .parquet")
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8 text: byte {error.start} cannot be read") from error
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path} is not valid JSON: {error}") from error
    entries = document.get("commands") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise SourceError(f"{path} is no aegish command set: it has no list `commands`; for JSON Lines, use .jsonl")
    return iter(entries)


def _aegish_label(entry: dict[str, Any]) -> str | None:
    """Harmless sets say what a guard should answer; the malicious one says what each command does."""
    malicious, harmless = LABELS
    if "ground_truth" in entry:
        return {"ALLOW": harmless, "WARN": harmless, "BLOCK": malicious}.get(str(entry["ground_truth"]))
    return malicious if "category" in entry else None
