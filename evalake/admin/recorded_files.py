"""Recorded results in files and folders: good lines, bad ones with what is wrong with them, each once."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalake.core.errors import SourceError
from evalake.core.files import LARGEST_IN_ALL, FileRefusedError, Files
from evalake.core.hashing import content_hash
from evalake.sdk import Recorded, RecordedFolder, Suite
from evalake.storage import ledger
from evalake.tasks.publish import Refused

UNREADABLE = "could not be read"
"""Why a recorded line or file is refused, in words that are counted."""

MOST_NAMED = 5  # files that are named for one reason, where nothing could be read
LONGEST_LINE = 16 * 2**20  # characters; a longer line is refused, not read into memory again and again


@dataclass
class Read:
    """What the files hold: good lines, bad ones with what is wrong with them, and how many said nothing new."""

    recorded: list[Recorded] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    repeated: int = 0
    forgotten: int = 0
    labels: list[Mapping[str, Any]] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)  # of folders: how many of their files were read
    skipped: dict[str, list[str]] = field(default_factory=dict)  # by reason: where
    remarks: list[str] = field(default_factory=list)  # on folders


@dataclass
class Contents:
    """What earlier lines said of a sample or an item, and where: a line may repeat it, but not say otherwise."""

    known: dict[tuple[Any, ...], tuple[str, str]] = field(default_factory=dict)

    def before(self, line: Recorded, where: str) -> bool:
        """Tell whether the line was there already. Raises SourceError where it contradicts an earlier one."""
        item, sample = line.item, line.item.sample
        about = (sample.dataset, sample.sample_id)
        self._agree(about, sample.sample_hash, where, f"another sample {sample.sample_id} of {sample.dataset}")
        asked = (*about, item.model, item.judge, item.prompt_type, item.replicate)
        return self._agree(asked, content_hash(identity(line)), where, "another result for the same item")

    def _agree(self, about: tuple[Any, ...], content: str, where: str, other: str) -> bool:
        is_known = about in self.known
        earlier, place = self.known.setdefault(about, (content, where))
        if earlier != content:
            raise SourceError(f"{place} has {other}")
        return is_known


def read_files(suite: Suite, files: Sequence[Path]) -> Read:
    """Read files and folders. Raises SourceError where they hold no good line."""
    read, contents = Read(), Contents()
    for file in files:
        folder = suite.data.read_folder(file) if suite.data.read_folder is not None and file.is_dir() else None
        if folder is not None:
            _add_folder(suite, folder, read, contents)
        else:
            guarded = Files(file, LARGEST_IN_ALL)
            for table in _tables(file):
                try:
                    guarded.check(table)
                except FileRefusedError as refused:
                    if table == file:
                        raise
                    reason = f"{table.name}: {refused.reason}"
                    read.refused.append(Refused(suite.results.table, "(not read)", ("recorded_line",), reason, reason))
                    continue
                _add_lines(suite, table, read, contents)
    if not read.recorded:
        why = "; ".join(_reasons(read))
        raise SourceError(f"{', '.join(map(str, files))} holds no recorded result of {suite.name}{why and f': {why}'}")
    return read


def _reasons(read: Read) -> list[str]:
    """Say why nothing could be read: of folders the files by reason, else what was wrong with the first line."""
    if not read.skipped:
        return [refused.reason for refused in read.refused[:1]]
    return [
        f"{reason} ({', '.join(places[:MOST_NAMED])}{', …' if len(places) > MOST_NAMED else ''})"
        for reason, places in read.skipped.items()
    ]


def _tables(file: Path) -> list[Path]:
    """List the file itself, or the JSON Lines files in a folder."""
    return sorted(path for path in file.rglob("*.jsonl") if not path.is_dir()) if file.is_dir() else [file]


def _add_lines(suite: Suite, file: Path, read: Read, contents: Contents) -> None:
    for number, line in _lines(file):
        where = f"{file.name}:{number}"
        try:
            add(_parse(suite, line), where, read, contents)
        except SourceError as error:
            payload, reason = _storable(line[:LONGEST_LINE]), f"{where}: {error}"
            read.refused.append(Refused(suite.results.table, payload, ("recorded_line",), reason, where))


def _add_folder(suite: Suite, folder: RecordedFolder, read: Read, contents: Contents) -> None:
    for where, recorded in folder.lines:
        try:
            add(recorded, where, read, contents)
        except SourceError as error:
            reply = recorded.replies[-1].text or ""
            read.refused.append(Refused(suite.results.table, reply, ("recorded_file",), f"{where}: {error}", where))
    read.labels += folder.labels
    read.files |= folder.files
    read.remarks += folder.remarks
    for out in folder.skipped:
        read.skipped.setdefault(out.reason, []).append(out.where)
        if out.payload is not None:
            reason = f"{out.where}: {out.reason}"
            read.refused.append(Refused(suite.results.table, out.payload, ("recorded_file",), reason, out.where))


def add(recorded: Recorded, where: str, read: Read, contents: Contents) -> None:
    """Add a result unless it is there already. Raises SourceError where it contradicts an earlier one."""
    if recorded.item.replicate > ledger.LARGEST_REPLICATE:
        raise SourceError(f"replicate: the ledger counts to {ledger.LARGEST_REPLICATE}")
    if contents.before(recorded, where):
        read.repeated += 1
    else:
        read.recorded.append(recorded)


def of_folders(read: Read) -> dict[str, Any]:
    """Describe the files of folders: how many were read, and which were left out why."""
    if not read.files and not read.skipped:
        return {}
    return {"folders": read.files, "left_out": read.skipped} | ({"remarks": read.remarks} if read.remarks else {})


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        with file.open(encoding="utf-8-sig", errors="surrogateescape") as stream:
            yield from ((number, line) for number, line in enumerate(stream, start=1) if line.strip())
    except OSError as error:
        raise SourceError(f"cannot read {file}: {error.strerror}") from error


def _parse(suite: Suite, line: str) -> Recorded:
    if len(line) > LONGEST_LINE:
        raise SourceError(f"the line is longer than {LONGEST_LINE} characters")
    try:
        line.encode("utf-8")
        value = json.loads(line)
    except UnicodeEncodeError as error:
        raise SourceError("the line is not UTF-8") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a plain ValueError
        raise SourceError(f"the line is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise SourceError("the line is not a JSON object")
    if value.get("suite", suite.name) != suite.name:
        raise SourceError(f"the line is of the suite {str(value['suite'])[:60]}, not {suite.name}")
    return suite.recorded(value)


def _storable(line: str) -> str:
    """Make a line storable in a table, with a mark in place of every byte that is not UTF-8."""
    return line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


# What tells one recorded reply from another; columns that the ledger got later change no import's identity
_IDENTIFYING = (
    "text",
    "finish_reason",
    "model_reported",
    "input_tokens",
    "cached_input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cost_usd",
    "latency_ms",
    "attempts",
    "error_kind",
)


def identity(line: Recorded) -> list[Any]:
    """List what tells a recorded result from another."""
    item = line.item
    replies = [[getattr(reply, name) for name in _IDENTIFYING] for reply in line.replies]
    return [item.sample.sample_hash, item.model, item.judge, item.prompt_type, item.replicate, replies]
