"""Where contracts come from: the starter data, folders with ground truth, SmartBugs Curated, tables of one's own.

A source, as `--dataset` takes it, is one of

* `starter`: the pairs that ship with the project;
* a folder of folders that hold `ground_truth.json`, `vulnerable.sol` and, where there is one, its twin `patched.sol`
  (the starter data's layout; a twin's ground truth is: not vulnerable); a contract of several files is a folder,
  `vulnerable/` or `patched/`, see pairs.py;
* a folder that holds `vulnerabilities.json`: a SmartBugs Curated checkout (see smartbugs.py);
* a table (`.jsonl`, `.csv`, `.tsv`, `.parquet`, or `.json` that is one array) with the fields contract (the source
  text), is_vulnerable, and of vulnerable ones vulnerability_type, and if wanted severity, vulnerable_functions,
  vulnerable_lines, difficulty_tier, root_cause, attack_scenario, fix, sample_id, cluster, note; or with a mapping of
  its columns (see suites/base/sources.py). Lists may be JSON, or text with commas between.

A dataset is called `starter`, `smartbugs_curated`, or like its folder or file. What is left out is counted by reason.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from suites.base import Dataset, sources
from suites.base.dataset_builder import read_whole
from suites.base.two_classes import TwoClasses
from suites.solidity_audit.sources.builder import AuditDatasetBuilder, Material
from suites.solidity_audit.sources.pairs import TRUTH_FILE, read_pairs
from suites.solidity_audit.sources.smartbugs import DATASET as SMARTBUGS
from suites.solidity_audit.sources.smartbugs import LABELS, read_smartbugs

STARTER = Path(__file__).resolve().parents[1] / "starter"
TRUTH_FIELDS = (
    *("is_vulnerable", "vulnerability_type", "severity", "vulnerable_functions", "vulnerable_lines"),
    *("difficulty_tier", "root_cause", "attack_scenario", "fix"),
)
LISTS, NUMBERS = ("vulnerable_functions", "vulnerable_lines"), ("difficulty_tier",)
LABEL = "is_vulnerable"
CLASSES = TwoClasses(
    LABEL,
    "vulnerable",
    "safe",
    words={"buggy": "vulnerable", "unsafe": "vulnerable", "secure": "safe", "patched": "safe"},
    truths={
        **dict.fromkeys(("vulnerable", "buggy", "unsafe"), "vulnerable"),
        **dict.fromkeys(("safe", "secure", "patched"), "safe"),
    },
)
FIELDS = ("contract", *TRUTH_FIELDS, "sample_id", "cluster", "note")


def read_dataset(source: str) -> Dataset:
    """Read a source whole.

    Raises SourceError where it is missing, unreadable, malformed as a whole, or gives no contract.
    """
    return read_whole(source, lambda: _read(source).result(), "contract that can be used")


def _read(source: str) -> AuditDatasetBuilder:
    if source == "starter":
        return read_pairs(STARTER, AuditDatasetBuilder("starter"))
    others = f"a folder of contracts with {TRUTH_FILE}, a SmartBugs Curated checkout"
    path, mapping_text = sources.find_source(source, others)
    if mapping_text is not None:
        return _read_table(path, sources.read_mapping(mapping_text, FIELDS))
    if path.is_dir() and (path / LABELS).is_file():
        builder = AuditDatasetBuilder(SMARTBUGS)
        read_smartbugs(path, builder)
        return builder
    if path.is_dir():
        return read_pairs(path, AuditDatasetBuilder(sources.as_payload(path.resolve().name)))
    raise sources.unknown_kind(source)


def _read_table(path: Path, mapping: sources.ColumnMapping) -> AuditDatasetBuilder:
    builder = AuditDatasetBuilder(sources.as_payload(path.stem))
    records = list(builder.records(path, mapping.needed(("contract", LABEL))))
    labels = {record.where: text for record in records if (text := mapping.label_text(record, LABEL))}
    understood = CLASSES.understand(path.name, mapping.columns[LABEL], labels.values(), mapping.values.get(LABEL))
    if understood.words:
        builder.notes.append(understood.words)
    for record in records:
        label = understood.classes.get(labels.get(record.where, ""))
        is_vulnerable = None if label is None else label == CLASSES.positive
        builder.add_material(record.where, _material(record, mapping, builder.dataset, is_vulnerable))
    return builder


def _material(
    record: sources.Record, mapping: sources.ColumnMapping, dataset: str, is_vulnerable: bool | None
) -> Material:
    values = {name: _value(name, mapping.field(record, name)) for name in TRUTH_FIELDS} | {LABEL: is_vulnerable}
    contract = mapping.field(record, "contract")
    digest = hashlib.sha256(str(contract).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return Material(
        contract,
        {name: value for name, value in values.items() if value is not None},
        sources.as_text(mapping.field(record, "sample_id")) or f"{dataset}/{digest}",
        sources.as_text(mapping.field(record, "cluster")),
        sources.as_text(mapping.field(record, "note")),
        record.raw,
    )


def _value(name: str, value: Any) -> Any:
    """Convert a cell to its type in ground truth: numbers and lists may be text, as they are in CSV."""
    if not isinstance(value, str):
        return int(value) if name in NUMBERS and isinstance(value, float) and value.is_integer() else value
    text = value.strip()
    if name in LISTS:
        return _listed(text, name)
    if name in NUMBERS:
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else (value or None)
    return value or None


def _listed(text: str, name: str) -> Any:
    if text.startswith("["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    parts = [part.strip() for part in text.split(",") if part.strip()]
    whole = name == "vulnerable_lines" and all(p.isascii() and p.isdigit() and len(p) < 10 for p in parts)
    return [int(part) for part in parts] if whole else parts
