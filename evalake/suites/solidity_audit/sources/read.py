"""Where contracts come from: the starter data, folders with ground truth, SmartBugs Curated, tables of one's own.

A source, as `--dataset` takes it, is one of

* `starter`: the pairs that ship with the project;
* a folder of folders that hold `ground_truth.json`, `vulnerable.sol` and, where there is one, its twin `patched.sol`
  (the starter data's layout; a twin's ground truth is: not vulnerable); a contract of several files is a folder,
  `vulnerable/` or `patched/`;
* a folder of samples in `contracts/`, with `ground_truth/` or `metadata/`, at any depth (see sample_folders.py);
* a folder that holds `vulnerabilities.json`: a SmartBugs Curated checkout;
* `no_comments:SOURCE` or `renamed:SOURCE`: the samples of a source, rewritten (see rewrite.py);
* a table (`.jsonl`, `.csv`, `.tsv`, `.parquet`, or `.json` that is one array) with the fields contract (the source
  text), is_vulnerable, and of vulnerable ones vulnerability_type, and if wanted severity, vulnerable_functions,
  vulnerable_lines, difficulty_tier, root_cause, attack_scenario, fix, base, transformation, incident, sample_id,
  cluster, note; or with a mapping of
  its columns (see evalake/sdk/sources.py). Lists may be JSON, or text with commas between.

A dataset is called `starter`, `smartbugs_curated`, or like its folder or file. What is left out is counted by reason.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalake.core.errors import SourceError
from evalake.core.files import MEGABYTE, FileRefusedError, Files, tables_beside
from evalake.sdk import Dataset, sources
from evalake.sdk.dataset import read_whole
from evalake.sdk.sample import NOT_READ, Record
from evalake.sdk.tabular import TwoClasses
from evalake.suites.solidity_audit.baselines.patterns import blank, functions
from evalake.suites.solidity_audit.sources import BAD_TRUTH, NO_CONTRACT, AuditBuilder, Material, Source, read_object
from evalake.suites.solidity_audit.sources.rewrite import REWRITES, rewritten
from evalake.suites.solidity_audit.sources.sample_folders import read_sample_folders, sample_folders

# SmartBugs Curated: contracts as they come with their labels, and as a model may see them.


LABELS = "vulnerabilities.json"
DATASET = "smartbugs_curated"
NO_SOURCE = "the contract's file is missing or not text"
LARGEST_COLLECTION_FILE = 64 * MEGABYTE
NO_LABEL = "entry without path, category or lines"

_TELLING = re.compile(
    r"reentr|overflow|underflow|insecure|vulnerab|exploit|phish|attack|drain|steal|front_?run|accesscontrol|unprotected"
    r"|unchecked|shortaddress|honeypot|[a-z]DOS|(?:^|_)dos",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*+")


def read_smartbugs(folder: Path) -> AuditBuilder:
    """Read a checkout. Raises SourceError where its labels cannot be read."""
    builder, files = AuditBuilder(DATASET), Files(folder, LARGEST_COLLECTION_FILE)
    entries = sources.read_json(files.read(folder / LABELS), folder / LABELS)
    if not isinstance(entries, list):
        raise SourceError(f"{folder / LABELS} is no list of labelled contracts")
    for number, entry in enumerate(entries):
        where, raw = f"{LABELS}[{number}]", json.dumps(entry)
        place, categories, lines = _label(entry)
        if place is None or len(categories) != 1 or not lines:
            builder.skip(where, NO_LABEL, raw)
            continue
        try:
            source = files.read(folder / place).decode("utf-8-sig")
        except (FileRefusedError, ValueError):  # outside of the checkout, not a file name, or not text
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
    return builder


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


def _label(entry: Any) -> tuple[str | None, set[str], list[int]]:
    """Read path, categories and lines of an entry; empty where they are not of the form."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("path"), str):
        return None, set(), []
    marks = entry.get("vulnerabilities")
    marks = [mark for mark in marks if isinstance(mark, Mapping)] if isinstance(marks, list) else []
    categories = {mark["category"] for mark in marks if isinstance(mark.get("category"), str)}
    lines = {n for mark in marks if isinstance(mark.get("lines"), list) for n in mark["lines"] if type(n) is int}
    return entry["path"], categories, sorted(lines)


# Pairs of contracts in folders: a vulnerable one, its patched twin, and what is wrong with the first.


TRUTH_FILE, VULNERABLE, PATCHED = "ground_truth.json", "vulnerable", "patched"
MISSING_TWIN = "no patched.sol"
LARGEST_FILE = 16 * MEGABYTE


def read_pairs(folder: Path, builder: AuditBuilder) -> AuditBuilder:
    """Read every pair in a folder.

    Raises:
        SourceError: No folder in it has a ground truth.
    """
    files = sorted(folder.glob(f"*/{TRUTH_FILE}"))
    if not files:
        raise SourceError(
            f"the folder {str(folder)!r} holds neither {LABELS} nor folders with a {TRUTH_FILE}, "
            "nor contracts/ with ground_truth/ or metadata/ beside it"
        )
    guarded = Files(folder, LARGEST_FILE)
    for file in files:
        try:
            _take_pair(file, guarded, builder)
        except FileRefusedError as refused:
            builder.skip(sources.as_payload(file.parent.name), refused.reason, NOT_READ)
    return builder


def read_contract(pair: Path, twin: str, guarded: Files | None = None) -> Source | None:
    """Read one twin of a pair, from its file or its folder of files; None where there is neither.

    Raises:
        FileRefusedError: One of its files may not be read; `guarded` are those that may, by default those of the pair.
    """
    guarded = guarded or Files(pair, LARGEST_FILE)
    if (pair / f"{twin}.sol").exists():
        return Source(_text(pair / f"{twin}.sol", guarded))
    files = sorted((pair / twin).glob("*.sol"))
    parts, before, count = [], {}, 0
    for file in files:
        text = _text(file, guarded)
        before[file.name] = count + 1
        parts.append(f"// File: {sources.as_payload(file.name)}\n{text}" + ("" if text.endswith("\n") else "\n"))
        count += parts[-1].count("\n")
    return Source("".join(parts), before) if files else None


def _text(file: Path, guarded: Files) -> str:
    return guarded.read(file).decode("utf-8-sig", "surrogateescape")


def _take_pair(file: Path, guarded: Files, builder: AuditBuilder) -> None:
    pair, name = file.parent, sources.as_payload(file.parent.name)
    raw, given = read_object(file, guarded)
    if given is None:
        builder.skip(f"{name}/{TRUTH_FILE}", BAD_TRUTH, raw)
        return
    note = given.get("description")
    truth = {key: value for key, value in given.items() if key not in ("pair_id", "description")}
    truth = {"is_vulnerable": True, **truth}
    safe = {"is_vulnerable": False, "difficulty_tier": truth.get("difficulty_tier")}
    for twin, of_twin in ((VULNERABLE, truth), (PATCHED, safe)):
        where = f"{name}/{twin}.sol"
        try:
            source = read_contract(pair, twin, guarded)
        except FileRefusedError as refused:
            builder.skip(where, refused.reason, NOT_READ)
            continue
        if source is None:
            builder.skip(where, MISSING_TWIN if of_twin is safe else NO_CONTRACT, None if of_twin is safe else raw)
            continue
        if "vulnerable_lines" in of_twin:
            of_twin = of_twin | {"vulnerable_lines": source.lines_of(of_twin["vulnerable_lines"])}
        sample_id = f"{builder.dataset}/{name}/{twin}"
        builder.add_material(where, Material(source.text, of_twin, sample_id, cluster=name, note=note, raw=raw))


STARTER = Path(__file__).resolve().parents[1] / "starter"
TRUTH_FIELDS = (
    *("is_vulnerable", "vulnerability_type", "severity", "vulnerable_functions", "vulnerable_lines"),
    *("difficulty_tier", "root_cause", "attack_scenario", "fix", "base", "transformation", "incident"),
)
LISTS, NUMBERS = ("vulnerable_functions", "vulnerable_lines"), ("difficulty_tier",)
LABEL = "is_vulnerable"
CLASSES = TwoClasses(LABEL, "vulnerable", "safe", **tables_beside(__file__, "words.toml")["labels"])
FIELDS = ("contract", *TRUTH_FIELDS, "sample_id", "cluster", "note")


def read_dataset(source: str) -> Dataset:
    """Read a source whole.

    Raises SourceError where it is missing, unreadable, malformed as a whole, or gives no contract.
    """
    how, _, of = source.partition(":")
    if how in REWRITES and of:
        return read_whole(source, lambda: rewritten(read_dataset(of), how), "contract that can be rewritten")
    return read_whole(source, lambda: _read(source).result(), "contract that can be used")


def _read(source: str) -> AuditBuilder:
    if source == "starter":
        return read_pairs(STARTER, AuditBuilder("starter"))
    others = f"a folder of contracts with {TRUTH_FILE}, a SmartBugs Curated checkout"
    path, mapping_text = sources.find_source(source, others)
    if mapping_text is not None:
        return _read_table(path, sources.read_mapping(mapping_text, FIELDS))
    if not path.is_dir():
        raise sources.unknown_kind(source)
    if (path / LABELS).is_file():
        return read_smartbugs(path)
    builder, folders = AuditBuilder(sources.as_payload(path.resolve().name)), sample_folders(path)
    return read_sample_folders(path, folders, builder) if folders else read_pairs(path, builder)


def _read_table(path: Path, mapping: sources.ColumnMapping) -> AuditBuilder:
    builder = AuditBuilder(sources.as_payload(path.stem))
    for record, columns, label in builder.labelled(path, mapping, ("contract", LABEL), CLASSES):
        is_vulnerable = None if label is None else label == CLASSES.positive
        builder.add_material(record.where, _material(record, columns, builder.dataset, is_vulnerable))
    return builder


def _material(record: Record, mapping: sources.ColumnMapping, dataset: str, is_vulnerable: bool | None) -> Material:
    values = {name: _value(name, mapping.field(record, name)) for name in TRUTH_FIELDS} | {LABEL: is_vulnerable}
    contract = mapping.field(record, "contract")
    base = values.get("base")
    digest = hashlib.sha256(str(contract).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return Material(
        contract,
        {name: value for name, value in values.items() if value is not None},
        sources.as_text(mapping.field(record, "sample_id")) or f"{dataset}/{digest}",
        sources.as_text(mapping.field(record, "cluster")) or (base and f"{dataset}/{base}"),
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
