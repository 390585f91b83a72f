"""Pairs of contracts in folders: a vulnerable one, its patched twin, and what is wrong with the first.

A pair's folder holds `ground_truth.json` and, for each twin, one file (`vulnerable.sol`) or a folder of files
(`vulnerable/`). The files of a folder are read as one text, in the order of their names, each under a line
`// File: NAME`; `vulnerable_lines` is then an object of lines by file, and becomes lines of that text.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.errors import SourceError
from core.files import MEGABYTE, FileRefusedError, Files
from suites.base.json_in_text import json_object
from suites.base.sources import NOT_READ, as_payload
from suites.solidity_audit.sources.builder import BAD_TRUTH, NO_CONTRACT, AuditDatasetBuilder, Material
from suites.solidity_audit.sources.smartbugs import LABELS

TRUTH_FILE, VULNERABLE, PATCHED = "ground_truth.json", "vulnerable", "patched"
MISSING_TWIN = "no patched.sol"
LARGEST_FILE = 16 * MEGABYTE


@dataclass(frozen=True, slots=True)
class Source:
    """The text of one contract, and by file the number of lines that precede the file's own in the text."""

    text: str
    lines_before: Mapping[str, int] = field(default_factory=dict)

    def lines_of(self, stated: Any) -> Any:
        """Convert lines stated by file to lines of the text; leave what is not of the form as it is, to be refused."""
        if not isinstance(stated, dict):
            return stated
        try:
            return sorted(self.lines_before[file] + line for file, lines in stated.items() for line in lines)
        except (KeyError, TypeError):
            return stated


def read_pairs(folder: Path, builder: AuditDatasetBuilder) -> AuditDatasetBuilder:
    """Read every pair in a folder.

    Raises:
        SourceError: No folder in it has a ground truth.
    """
    files = sorted(folder.glob(f"*/{TRUTH_FILE}"))
    if not files:
        raise SourceError(f"the folder {str(folder)!r} holds neither {LABELS} nor folders with a {TRUTH_FILE}")
    guarded = Files(folder, LARGEST_FILE)
    for file in files:
        try:
            _take_pair(file, guarded, builder)
        except FileRefusedError as refused:
            builder.skip(as_payload(file.parent.name), refused.reason, NOT_READ)
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
        parts.append(f"// File: {as_payload(file.name)}\n{text}" + ("" if text.endswith("\n") else "\n"))
        count += parts[-1].count("\n")
    return Source("".join(parts), before) if files else None


def _text(file: Path, guarded: Files) -> str:
    return guarded.read(file).decode("utf-8-sig", "surrogateescape")


def _take_pair(file: Path, guarded: Files, builder: AuditDatasetBuilder) -> None:
    pair, name = file.parent, as_payload(file.parent.name)
    raw = guarded.read(file).decode("utf-8", "backslashreplace")
    given = json_object(raw)
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
