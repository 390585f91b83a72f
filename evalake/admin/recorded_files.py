"""Recorded results in files and folders: good lines, and bad ones with the reason, each once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalake.core.errors import SourceError
from evalake.core.files import LARGEST_IN_ALL, FileRefusedError, Files
from evalake.core.hashing import content_hash
from evalake.sdk import Recorded, RecordedFolder, Skipped, Suite
from evalake.sdk.sample import NOT_READ
from evalake.sdk.sources import as_payload, read_json_lines
from evalake.storage import ledger
from evalake.tasks.publish import Refused

UNREADABLE = "could not be read"
"""Why a recorded line or file is refused, in words that are counted."""

MOST_NAMED = 5  # files that are named for one reason, where nothing could be read


@dataclass
class Read:
    """The contents of the files: good lines, refused ones with the reason, and the number of repeated ones."""

    recorded: list[Recorded] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    repeated: int = 0
    forgotten: int = 0
    absent: Mapping[tuple[str, str], int] = field(default_factory=dict)  # answers that logs lack: model, dataset
    labels: list[Mapping[str, Any]] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)  # of folders: how many of their files were read
    skipped: dict[str, list[str]] = field(default_factory=dict)  # by reason: where
    remarks: list[str] = field(default_factory=list)  # on folders
    # Earlier lines by sample and item: a later one may repeat them, but not contradict
    known: dict[tuple[Any, ...], tuple[str, str]] = field(default_factory=dict)

    def refuse(self, table: str, where: str, reason: object, payload: str, rule: str = "recorded_line") -> None:
        """Add a line or file that cannot be imported, for quarantine."""
        self.refused.append(Refused(table, payload, (rule,), f"{where}: {reason}", where))

    def add(self, line: Recorded, where: str) -> None:
        """Add a result unless it is there already. Raises SourceError where it contradicts an earlier one."""
        item, sample = line.item, line.item.sample
        if item.replicate > ledger.LARGEST_REPLICATE:
            raise SourceError(f"replicate: the ledger counts to {ledger.LARGEST_REPLICATE}")
        about = (sample.dataset, sample.sample_id)
        self._agree(about, sample.sample_hash, where, f"another sample {sample.sample_id} of {sample.dataset}")
        asked = (*about, item.model, item.judge, item.prompt_type, item.replicate)
        if self._agree(asked, content_hash(identity(line)), where, "another result for the same item"):
            self.repeated += 1
        else:
            self.recorded.append(line)

    def _agree(self, about: tuple[Any, ...], content: str, where: str, other: str) -> bool:
        is_known = about in self.known
        earlier, place = self.known.setdefault(about, (content, where))
        if earlier != content:
            raise SourceError(f"{place} has {other}")
        return is_known


def read_files(suite: Suite, files: Sequence[Path]) -> Read:
    """Read files and folders. Raises SourceError where they hold no good line."""
    read = Read()
    for file in files:
        folder = suite.data.read_folder(file) if suite.data.read_folder is not None and file.is_dir() else None
        if folder is not None:
            _add_folder(suite, folder, read)
        else:
            guarded = Files(file, LARGEST_IN_ALL)
            lines = (path for path in file.rglob("*.jsonl") if not path.is_dir())
            for table in sorted(lines) if file.is_dir() else [file]:
                try:
                    guarded.check(table)
                except FileRefusedError as refused:
                    if table == file:
                        raise
                    read.refuse(suite.results.table, table.name, refused.reason, NOT_READ)
                    continue
                _add_lines(suite, table, read)
    if not read.recorded:
        why = "; ".join(_reasons(read))
        raise SourceError(f"{', '.join(map(str, files))} holds no recorded result of {suite.name}{why and f': {why}'}")
    return read


def _reasons(read: Read) -> list[str]:
    """List the reasons why nothing was read: of folders the files by reason, else the reason of the first line."""
    if not read.skipped:
        return [refused.reason for refused in read.refused[:1]]
    return [
        f"{reason} ({', '.join(places[:MOST_NAMED])}{', …' if len(places) > MOST_NAMED else ''})"
        for reason, places in read.skipped.items()
    ]


def _add_lines(suite: Suite, file: Path, read: Read) -> None:
    for line in read_json_lines(file):
        if isinstance(line, Skipped):
            read.refuse(suite.results.table, line.where, line.reason, line.payload or "")
            continue
        try:
            if (named := line.values.get("suite", suite.name)) != suite.name:
                raise SourceError(f"the line is of the suite {str(named)[:60]}, not {suite.name}")
            read.add(suite.recorded(line.values), line.where)
        except SourceError as error:
            read.refuse(suite.results.table, line.where, error, as_payload(line.raw))


def _add_folder(suite: Suite, folder: RecordedFolder, read: Read) -> None:
    for where, recorded in folder.lines:
        try:
            read.add(recorded, where)
        except SourceError as error:
            read.refuse(suite.results.table, where, error, recorded.replies[-1].text or "", "recorded_file")
    read.labels += folder.labels
    read.files |= folder.files
    read.remarks += folder.remarks
    for out in folder.skipped:
        read.skipped.setdefault(out.reason, []).append(out.where)
        if out.payload is not None:
            read.refuse(suite.results.table, out.where, out.reason, out.payload, "recorded_file")


def of_folders(read: Read) -> dict[str, Any]:
    """Describe the files of folders: how many were read, and which were left out why."""
    if not read.files and not read.skipped:
        return {}
    return {"folders": read.files, "left_out": read.skipped} | ({"remarks": read.remarks} if read.remarks else {})


# What tells one recorded reply from another; columns that the ledger got later change no import's identity
_IDENTIFYING = (
    *("text", "finish_reason", "model_reported", "input_tokens", "cached_input_tokens", "output_tokens"),
    *("reasoning_tokens", "cost_usd", "latency_ms", "attempts", "error_kind"),
)


def identity(line: Recorded) -> list[Any]:
    """List what tells a recorded result from another."""
    item = line.item
    replies = [[getattr(reply, name) for name in _IDENTIFYING] for reply in line.replies]
    return [item.sample.sample_hash, item.model, item.judge, item.prompt_type, item.replicate, replies]
