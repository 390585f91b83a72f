"""Where contracts come from: the starter data, folders with ground truth, SmartBugs Curated, tables of one's own.

A source, as `--dataset` takes it, is one of

* `starter`: the pairs that ship with the project;
* a folder of folders that hold `ground_truth.json`, `vulnerable.sol` and, where there is one, its twin `patched.sol`
  (the starter data's layout; a twin's ground truth is: not vulnerable);
* a folder that holds `vulnerabilities.json`: a SmartBugs Curated checkout (see smartbugs.py);
* a `.jsonl`, `.csv` or `.parquet` file with the fields contract (the source text), is_vulnerable, and of vulnerable
  ones vulnerability_type, and if wanted severity, vulnerable_functions, vulnerable_lines, difficulty_tier, root_cause,
  attack_scenario, fix, sample_id, cluster, note; or with a mapping of its columns (see suites/sources.py). Lists may
  be JSON, or text with commas between.

A dataset is called `starter`, `smartbugs_curated`, or like its folder or file. What is left out is counted by reason.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from contracts.errors import SourceError
from suites.base import Dataset, LeftOut
from suites.harvest import read_whole
from suites.solidity_audit.harvest import BAD_TRUTH, NO_CONTRACT, Harvest, Material
from suites.solidity_audit.smartbugs import DATASET as SMARTBUGS
from suites.solidity_audit.smartbugs import LABELS, read_smartbugs
from suites.solidity_audit.truth import SUITE
from suites.sources import (
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

TRUTH_FILE, VULNERABLE_FILE, PATCHED_FILE = "ground_truth.json", "vulnerable.sol", "patched.sol"
TRUTH_FIELDS = (
    *("is_vulnerable", "vulnerability_type", "severity", "vulnerable_functions", "vulnerable_lines"),
    *("difficulty_tier", "root_cause", "attack_scenario", "fix"),
)
LISTS, NUMBERS = ("vulnerable_functions", "vulnerable_lines"), ("difficulty_tier",)
FIELDS = ("contract", *TRUTH_FIELDS, "sample_id", "cluster", "note")
MISSING_TWIN = "no patched.sol"


def read_dataset(source: str) -> Dataset:
    """Read a source whole.

    Raises SourceError where it is missing, unreadable, malformed as a whole, or gives no contract.
    """
    return read_whole(source, lambda: _read(source).result(), "contract that can be used")


def _read(source: str) -> Harvest:
    if source == "starter":
        return _read_pairs(STARTER / SUITE, Harvest("starter"))
    path, mapping_text = split_source(source)
    if not path.exists():
        raise SourceError(
            f"there is no dataset source {source!r}: give `starter`, a folder of contracts with {TRUTH_FILE}, "
            f"a SmartBugs Curated checkout, or a table ({', '.join(TABLE_SUFFIXES)})"
        )
    if path.is_file() and path.suffix.lower() in TABLE_SUFFIXES:
        return _read_table(path, read_mapping(mapping_text, FIELDS))
    if mapping_text:
        raise SourceError(f"the dataset source {source!r} takes no column mapping: only tables do")
    if path.is_dir() and (path / LABELS).is_file():
        harvest = Harvest(SMARTBUGS)
        read_smartbugs(path, harvest)
        return harvest
    if path.is_dir():
        return _read_pairs(path, Harvest(as_payload(path.resolve().name)))
    raise SourceError(f"the dataset source {source!r} is of no known kind: tables are {', '.join(TABLE_SUFFIXES)}")


def _read_pairs(folder: Path, harvest: Harvest) -> Harvest:
    files = sorted(folder.glob(f"*/{TRUTH_FILE}"))
    if not files:
        raise SourceError(f"the folder {str(folder)!r} holds neither {LABELS} nor folders with a {TRUTH_FILE}")
    for file in files:
        _take_pair(file, harvest)
    return harvest


def _take_pair(file: Path, harvest: Harvest) -> None:
    pair, name = file.parent, as_payload(file.parent.name)
    raw = file.read_bytes().decode("utf-8", "backslashreplace")
    try:
        given = json.loads(raw)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        harvest.leave(f"{name}/{TRUTH_FILE}", BAD_TRUTH, raw)
        return
    note = given.get("description")
    truth = {key: value for key, value in given.items() if key not in ("pair_id", "description")}
    truth = {"is_vulnerable": True, **truth}
    twin = {"is_vulnerable": False, "difficulty_tier": truth.get("difficulty_tier")}
    for twin_file, of_twin in ((VULNERABLE_FILE, truth), (PATCHED_FILE, twin)):
        where = f"{name}/{twin_file}"
        if not (pair / twin_file).is_file():
            harvest.leave(where, MISSING_TWIN if of_twin is twin else NO_CONTRACT, None if of_twin is twin else raw)
            continue
        sample_id = f"{harvest.dataset}/{name}/{twin_file.removesuffix('.sol')}"
        text = (pair / twin_file).read_bytes().decode("utf-8-sig", "surrogateescape")
        harvest.take(where, Material(text, of_twin, sample_id, cluster=name, note=note, raw=raw))


def _read_table(path: Path, mapping: ColumnMapping) -> Harvest:
    harvest = Harvest(as_payload(path.stem))
    for record in read_table(path, mapping.needed(("contract", "is_vulnerable"))):
        if isinstance(record, LeftOut):
            harvest.leave(record.where, record.reason, record.payload)
        else:
            harvest.take(record.where, _material(record, mapping, harvest.dataset))
    return harvest


def _material(record: Record, mapping: ColumnMapping, dataset: str) -> Material:
    values = {name: _value(name, mapping.field(record, name)) for name in TRUTH_FIELDS}
    contract = mapping.field(record, "contract")
    digest = hashlib.sha256(str(contract).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return Material(
        contract,
        {name: value for name, value in values.items() if value is not None},
        as_text(mapping.field(record, "sample_id")) or f"{dataset}/{digest}",
        as_text(mapping.field(record, "cluster")),
        as_text(mapping.field(record, "note")),
        record.raw,
    )


def _value(name: str, value: Any) -> Any:
    """A cell as ground truth has it: booleans, numbers and lists may be text, as they are in CSV."""
    if not isinstance(value, str):
        return int(value) if name in NUMBERS and isinstance(value, float) and value.is_integer() else value
    text = value.strip()
    if name == "is_vulnerable":
        words = {"true": True, "1": True, "vulnerable": True, "false": False, "0": False, "safe": False}
        return words.get(text.lower(), value)
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
