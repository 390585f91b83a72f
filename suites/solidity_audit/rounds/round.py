"""The JSON files of a round, sorted by what they are, and what becomes of them."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from core.files import FileRefusedError, Files
from suites.base import Recorded, Skipped
from suites.base.sources import NOT_READ, as_payload, is_storable, storable
from suites.solidity_audit.prompts.subject import PROMPT_TYPES
from suites.solidity_audit.rounds.names import folder_name, is_review_folder, sample_names

JUDGEMENTS, TRUTHS, METRICS = "judgeoutputs", "groundtruth", "samplemetrics"  # as `folder_name` has them
LARGEST_FILE = 16 * 1024 * 1024  # bytes
NOT_JSON = "not a JSON object"
NO_JSON_FILE = "not a JSON file"

AuditKey = tuple[str, str, str]  # sample, model, prompt type
JudgementKey = tuple[str, str, str | None, str, int]  # sample, model, judge, prompt type, replicate


@dataclass(frozen=True, slots=True)
class RoundFile:
    """One JSON file: where it is within the round, and what it holds."""

    path: Path
    where: str
    value: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Judged:
    """A judgement that was read: the audit's item, and its findings' texts by number."""

    where: str
    recorded: Recorded
    findings: Mapping[int, str]


@dataclass
class Round:
    """The files of a round by what they are, and what becomes of them."""

    judgements: list[RoundFile] = field(default_factory=list)
    truths: dict[str, list[RoundFile]] = field(default_factory=dict)  # by every name of the sample
    reviews: list[RoundFile] = field(default_factory=list)
    audits: dict[AuditKey, list[RoundFile]] = field(default_factory=dict)
    judged: dict[JudgementKey, Judged] = field(default_factory=dict)
    reviewed: set[str] = field(default_factory=set)  # ids of labels
    labels: list[Mapping[str, Any]] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    skipped: list[Skipped] = field(default_factory=list)

    def leave_out(self, file: RoundFile, reason: str, *, refused: bool = False, about: str | None = None) -> None:
        """Record a file, or something in it, as left out; a refused one goes to quarantine with its content."""
        payload = as_payload(json.dumps(file.value, ensure_ascii=False)) if refused else None
        self.skipped.append(Skipped(file.where if about is None else f"{file.where}: {about}", reason, payload))


def sort_files(folder: Path, paths: list[Path]) -> Round:
    """Read the JSON files among the paths, and sort them by the folders that they are in."""
    round_, files = Round(), Files(folder, LARGEST_FILE)
    for path in paths:
        within = path.relative_to(folder)
        where, names = storable(str(within)), [folder_name(part) for part in (folder.name, *within.parts[:-1])]
        if METRICS in names:
            continue
        is_judgement, is_truth, reviewed = JUDGEMENTS in names, TRUTHS in names, any(map(is_review_folder, names))
        is_expected = is_judgement or is_truth or reviewed
        if path.suffix.casefold() != ".json":
            if is_expected:
                round_.skipped.append(Skipped(where, NO_JSON_FILE, None))
            continue
        file = _read(path, where, files)
        if isinstance(file, Skipped):
            if is_expected:
                round_.skipped.append(file)
        elif is_judgement:
            round_.judgements.append(file)
        elif is_truth:
            stated = file.value.get("sample_id") or file.value.get("id")
            for name in sample_names(path, stated, ()):
                round_.truths.setdefault(name, []).append(file)
        elif reviewed:
            round_.reviews.append(file)
        elif isinstance(file.value.get("prediction"), Mapping):
            for key in _audit_keys(file):
                round_.audits.setdefault(key, []).append(file)
    return round_


def _read(path: Path, where: str, files: Files) -> RoundFile | Skipped:
    text = ""
    try:
        content = files.read(path)
        text = content.decode("utf-8", "surrogateescape")
        text = content.decode(json.detect_encoding(content), "surrogateescape")
        value = json.loads(text)
    except FileRefusedError as refused:
        return Skipped(where, refused.reason, NOT_READ)
    except (ValueError, RecursionError):
        value = None
    return RoundFile(path, where, value) if isinstance(value, dict) else Skipped(where, NOT_JSON, as_payload(text))


def nearest(files: Sequence[RoundFile], file: RoundFile) -> RoundFile | None:
    """Find the file that shares most outer folders with `file`; of several, the last."""
    parents = Path(file.where).parts[:-1]

    def shared(other: RoundFile) -> int:
        pairs = zip(parents, Path(other.where).parts[:-1], strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    return max(reversed(files), key=shared, default=None)


def _audit_keys(file: RoundFile) -> Iterator[AuditKey]:
    """Yield the keys of the audits that a file may be: by every name of its sample, and by the folders it is in."""
    stated = file.value.get("transformed_id") or file.value.get("sample_id")
    prompt_type = text_of(file.value.get("prompt_type")) or prompt_folder(file.path) or PROMPT_TYPES[0]
    for name in sample_names(file.path, stated, PROMPT_TYPES):
        for parent in file.path.parents[:2]:
            yield name, parent.name, prompt_type


def prompt_of(path: Path, default: str = PROMPT_TYPES[0]) -> str:
    """Find the prompt type that a file's name ends with, or that a folder of it is named for."""
    of_name = next((kind for kind in PROMPT_TYPES if path.stem.endswith(f"_{kind}")), None)
    return of_name or prompt_folder(path) or default


def prompt_folder(path: Path) -> str | None:
    """Find the prompt type that a folder of the file is named for."""
    return next((parent.name for parent in path.parents[:2] if parent.name in PROMPT_TYPES), None)


def part_of(value: Mapping[str, Any], name: str, otherwise: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Take a field that is an object; anything else is an empty one, or `otherwise`."""
    part = value.get(name)
    return part if isinstance(part, Mapping) else otherwise or {}


def text_of(value: Any) -> str | None:
    """Take a text that is not blank and that a table can hold; None for anything else."""
    return value if isinstance(value, str) and value.strip() and is_storable(value) else None


def whole_of(value: Any) -> int | None:
    """Take a whole number that a table can hold, from 0 to 2**31 - 1; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def number_of(value: Any) -> float | None:
    """Take a finite number of 0 or more; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= sys.float_info.max:
        return None
    return float(value)
