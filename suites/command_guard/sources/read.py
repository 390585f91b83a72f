"""Where commands come from: the starter data, a GTFOBins checkout, aegish command sets, tables of one's own.

A source, as `--dataset` takes it, is one of

* `starter`: the commands that ship with the project;
* a folder that holds `_gtfobins`: a GTFOBins checkout (see gtfobins.py and placeholders.py);
* a `.json` file: a command set of the aegish benchmark, malicious (command, binary, category) or harmless (command,
  ground_truth);
* a table (`.jsonl`, `.csv`, `.tsv`, `.parquet`, or `.json` that is one array) with the fields command and label, and
  if wanted category, difficulty, sample_id, cluster (of related commands) and reason; or with a mapping of its columns
  (see suites/base/sources.py), as in `commands.csv?command=cmd&label=bad&label.malicious=1&label.harmless=0`. Labels
  are malicious or harmless, bad or good, unsafe or safe, in any case; other values take a mapping, or a column whose
  name says what is true (two_classes.py).

A dataset is called `starter`, `gtfobins`, or like its file. Whatever is left out is counted by its reason.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core.errors import SourceError
from core.files import read_file
from suites.base import Dataset, sources
from suites.base.dataset_builder import read_whole
from suites.base.two_classes import TwoClasses
from suites.command_guard.sources.builder import LABELS, UNKNOWN_LABEL, CommandDatasetBuilder, Material
from suites.command_guard.sources.gtfobins import CATEGORIES, FOLDER, OTHER_FUNCTION, read_gtfobins

STARTER = Path(__file__).resolve().parents[1] / "starter"
FIELDS = ("command", "label", "category", "difficulty", "sample_id", "cluster", "reason")
CLASSES = TwoClasses(
    "label",
    *LABELS,
    words={"bad": "malicious", "unsafe": "malicious", "good": "harmless", "safe": "harmless"},
    truths={
        **dict.fromkeys(("malicious", "bad", "unsafe", "harmful", "dangerous"), "malicious"),
        **dict.fromkeys(("harmless", "good", "safe", "benign"), "harmless"),
    },
)
LARGEST_JSON = 256 * 1024 * 1024  # bytes: a JSON file is read as a whole


def read_dataset(source: str) -> Dataset:
    """Read a source whole.

    Raises SourceError where it is missing, unreadable, malformed as a whole, or gives no command.
    """
    return read_whole(source, lambda: _read(source).result(), "command that can be used")


def _read(source: str) -> CommandDatasetBuilder:
    if source == "starter":
        return _read_starter()
    path, mapping_text = sources.find_source(source, "a GTFOBins checkout, an aegish .json file")
    if mapping_text is not None:
        builder = CommandDatasetBuilder(sources.as_payload(path.stem))
        _take_table(path, sources.read_mapping(mapping_text, FIELDS), builder)
        return builder
    if path.is_dir():
        return _read_checkout(path)
    if path.is_file() and path.suffix.lower() == ".json":
        return _read_aegish(path)
    raise sources.unknown_kind(source)


def _read_starter() -> CommandDatasetBuilder:
    builder = CommandDatasetBuilder("starter")
    for file in ("malicious.jsonl", "harmless.jsonl"):
        _take_table(STARTER / file, sources.read_mapping("", FIELDS), builder)
    return builder


def _read_checkout(path: Path) -> CommandDatasetBuilder:
    if not (path / FOLDER).is_dir():
        raise SourceError(f"the folder {str(path)!r} holds no {FOLDER} folder: give the root of a GTFOBins checkout")
    builder = CommandDatasetBuilder("gtfobins")
    read_gtfobins(path, builder)
    return builder


def _take_table(path: Path, mapping: sources.ColumnMapping, builder: CommandDatasetBuilder) -> None:
    records = list(builder.records(path, mapping.needed(("command", "label"))))
    labels = {record.where: text for record in records if (text := mapping.label_text(record, "label"))}
    understood = CLASSES.understand(path.name, mapping.columns["label"], labels.values(), mapping.values.get("label"))
    if understood.words:
        builder.notes.append(understood.words)
    for record in records:
        label = understood.classes.get(labels.get(record.where, ""))
        builder.add_material(record.where, _material(record, mapping, label))


def _material(record: sources.Record, mapping: sources.ColumnMapping, label: str | None) -> Material:
    return Material(
        command=mapping.field(record, "command"),
        label=label,
        category=sources.as_text(mapping.field(record, "category")),
        difficulty=sources.as_text(mapping.field(record, "difficulty")),
        note=sources.as_text(mapping.field(record, "reason")),
        sample_id=sources.as_text(mapping.field(record, "sample_id")),
        cluster=sources.as_text(mapping.field(record, "cluster")),
        raw=record.raw,
    )


def _read_aegish(path: Path) -> CommandDatasetBuilder:
    builder = CommandDatasetBuilder(sources.as_payload(path.stem))
    for number, entry in enumerate(_aegish_entries(path)):
        where, raw = f"{path.name}: commands[{number}]", json.dumps(entry)
        if not isinstance(entry, dict):
            builder.skip(where, sources.NOT_JSON, raw)
        elif isinstance(entry.get("category"), str) and entry["category"] not in CATEGORIES:
            builder.skip(where, OTHER_FUNCTION)
        elif (label := _aegish_label(entry)) is None:
            builder.skip(where, UNKNOWN_LABEL, raw)
        else:
            category, binary = entry.get("category"), entry.get("binary")
            name = f"{binary}_{category}" if isinstance(binary, str) and category else ""
            command, note, cluster = entry.get("command"), entry.get("prompt"), binary if name else None
            material = Material(command, label, category, note=note, cluster=cluster, name=name, raw=raw)
            builder.add_material(where, material)
    return builder


def _aegish_entries(path: Path) -> Iterator[Any]:
    try:
        document = json.loads(read_file(path, LARGEST_JSON).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8 text: byte {error.start} cannot be read") from error
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path} is not valid JSON: {error}") from error
    entries = document.get("commands") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise SourceError(
            f"{path} is no aegish command set (no list `commands`) and no array of objects; for JSON Lines, use .jsonl"
        )
    return iter(entries)


def _aegish_label(entry: dict[str, Any]) -> str | None:
    """Find the label: harmless sets say what a guard should answer, the malicious one what each command does."""
    malicious, harmless = LABELS
    if "ground_truth" in entry:
        return {"ALLOW": harmless, "WARN": harmless, "BLOCK": malicious}.get(str(entry["ground_truth"]))
    return malicious if "category" in entry else None
