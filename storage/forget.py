"""Removes rows from a table, and every byte of them from its files, its log and its checkpoints; finds rows by text.

Versions keep their numbers and log entries stay, so that stamps and checks still hold; versions before the removal
become unreadable. No other process may write to the table meanwhile. An interrupted removal can be run again.
"""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

import polars as pl
from deltalake import DeltaTable

from evalake.contracts.contract import Contract
from evalake.contracts.tables import CALL_FAILURES, CALLS, FORGOTTEN, JUDGE_CANARIES, QUARANTINE, SAMPLES
from evalake.core.errors import LakeError
from evalake.storage.integrity import data_files
from evalake.storage.lake import FILE, Lake
from evalake.storage.landing import begin_merge, commit
from evalake.storage.maintenance import remove, require_no_links
from evalake.storage.objects import file_sizes, open_store, read_object, write_object

LOG = "_delta_log/"
_ENTRY = re.compile(rf"{LOG}\d{{20}}\.json")


def forgotten_samples(lake: Lake) -> set[str]:
    """Read the content hashes of samples that were forgotten, or whose removal was interrupted."""
    tombstones = lake.frame(FORGOTTEN).filter(pl.col("table_name") == SAMPLES.table).select("row_hash")
    return set(tombstones.collect()["row_hash"])


def unfinished(lake: Lake) -> dict[str, set[str]]:
    """Read what is being removed, or whose removal was cut off: by table, values of its identifying column."""
    rows = lake.frame(FORGOTTEN).filter(pl.col("first_version").is_null()).select("table_name", "row_hash").collect()
    return {table: set(of_table["row_hash"]) for (table,), of_table in rows.group_by("table_name")}


def erase(lake: Lake, name: str, column: str, values: Collection[str]) -> int:
    """Remove rows by the values of `column`, with every trace of them; return the table's version.

    Raises LakeError where the table holds links, or the removal fails: the same call continues it.
    """
    require_no_links(lake, name)

    def erase_once() -> int:
        _delete(_open(lake, name), column, values)
        remove(lake, name, _old_files(lake, name))
        _clear_log(lake, name)
        _open(lake, name).create_checkpoint()
        return _open(lake, name).version()

    return commit(
        erase_once,
        busy=f"the table {name} kept changing: stop what writes to it, and forget again",
        failed=f"cannot remove rows of the table {name} (forget again)",
    )


def _open(lake: Lake, name: str) -> DeltaTable:
    table = lake.find(name)
    if table is None:
        raise LakeError(f"the lake {lake.uri} has no table {name}")
    return table


def _delete(table: DeltaTable, column: str, values: Collection[str]) -> None:
    rows = pl.DataFrame({column: sorted(values)}, schema={column: pl.String})
    begin_merge(table, rows, [column]).when_matched_delete().execute()


def files_to_go(lake: Lake, name: str, column: str, values: Collection[str]) -> list[str]:
    """List the files that `erase` would remove, by path within the table."""
    table = lake.find(name)
    if table is None:
        return []
    paths = {PurePosixPath(path).name: path for path, _ in data_files(table)}  # Delta's file names are unique
    files = pl.scan_parquet(
        table.file_uris(),
        storage_options=dict(lake.storage_options) or None,
        include_file_paths=FILE,
        glob=False,
        hive_partitioning=False,
        missing_columns="insert",
        extra_columns="ignore",
    )
    held = files.filter(pl.col(column).is_in(sorted(values))).select(FILE).unique().collect()[FILE] if paths else ()
    return sorted({*_old_files(lake, name), *(paths[PurePosixPath(file).name] for file in held)})


def _old_files(lake: Lake, name: str) -> list[str]:
    """List the files outside the newest version: of older versions and dead writers, and checkpoints, by statistics."""
    live = {path for path, _ in data_files(_open(lake, name))}
    return [path for path in file_sizes(lake, name) if path not in live and not _ENTRY.fullmatch(path)]


def _clear_log(lake: Lake, name: str) -> None:
    """Remove the statistics of deleted files and the conditions of commits from the log: they quote deleted rows."""
    live = {path for path, _ in data_files(_open(lake, name))}
    store = open_store(lake, name)
    for path in sorted(filter(_ENTRY.fullmatch, file_sizes(lake, name))):
        actions = [json.loads(line) for line in read_object(store, path).split(b"\n") if line.strip()]
        cleared = [_clear(action, live) for action in actions]
        if any(cleared):
            write_object(store, path, ["\n".join(map(json.dumps, actions)).encode()])


def _clear(action: dict[str, Any], live: Collection[str]) -> bool:
    """Clear one action of the log; returns whether it changed."""
    for kind in ("add", "remove", "cdc"):
        file = action.get(kind)
        if file and file.get("stats") and unquote(file["path"]) not in live:
            del file["stats"]
            return True
    parameters = action.get("commitInfo", {}).get("operationParameters") or {}
    conditions = [name for name in parameters if "predicate" in name.lower()]
    for name in conditions:
        del parameters[name]
    return bool(conditions)


def refused_rows(lake: Lake, run_id: str, contracts: Sequence[Contract]) -> Iterator[dict[str, Any]]:
    """Yield a run's quarantined rows that were meant for these tables, except unreadable recorded lines."""
    tables = [contract.table for contract in contracts]
    refused = lake.frame(QUARANTINE).filter(pl.col("run_id") == run_id, pl.col("table_name").is_in(tables))
    for payload in refused.select("payload").collect()["payload"]:
        try:
            row = json.loads(payload)
        except ValueError:
            continue
        if isinstance(row, dict) and "sample_hash" in row:
            yield row


TEXTS = ("input", "target", "note")  # columns of samples that hold what somebody wrote
CHUNK_ROWS = 10_000


@dataclass(frozen=True)
class Choice:
    """Samples in all their versions, and the words by which they were chosen."""

    samples: pl.DataFrame
    sample: str | None = None
    session: str | None = None
    dataset: str | None = None

    @property
    def hashes(self) -> set[str]:
        """The content hashes of the samples."""
        return set(self.samples["sample_hash"])

    @property
    def names(self) -> set[tuple[str, str]]:
        """Dataset and id of each sample."""
        return set(self.samples.select("dataset", "sample_id").iter_rows())

    @property
    def texts(self) -> set[str]:
        """All that stands in the samples."""
        return {text for name in TEXTS for text in self.samples[name].drop_nulls()}


def streamed(rows: pl.LazyFrame) -> Iterator[tuple[Any, ...]]:
    """Yield rows a chunk at a time, for all of them may be more than memory holds."""
    for chunk in rows.collect_batches(chunk_size=CHUNK_ROWS):
        yield from chunk.iter_rows()


# Rows that no key connects with a sample any more, found by the sample's text in them.


SHORTEST_PIECE = 20  # characters: shorter lines, like the name of a tool, stand in many prompts
LONGEST_PIECE = 80  # characters: a longer line is looked for in parts, for prompts cut what is long

_NO_LETTERS = re.compile(r"[\W\d_]+")


def orphans(lake: Lake, choice: Choice, known: Collection[str], kept: Collection[str]) -> set[str]:
    """Find calls, answered or given up on, with a line that only these samples have; returns their prompt hashes.

    Args:
        lake: The lake.
        choice: The samples.
        known: Prompts that are known to be asked about these samples.
        kept: Prompts that are asked about samples that stay.
    """
    canaries = lake.frame(JUDGE_CANARIES).select("run_id").collect()["run_id"].unique().to_list()
    is_open = ~pl.col("prompt_hash").is_in(sorted({*known, *kept})) & ~pl.col("run_id").is_in(canaries)
    calls = lake.frame(CALLS).filter(is_open).select(key="prompt_hash", text="request")
    failures = lake.frame(CALL_FAILURES).filter(is_open).select(key="prompt_hash", text="message")
    return holding(lake, choice, kept, calls) | holding(lake, choice, kept, failures)


def holding(lake: Lake, choice: Choice, kept: Collection[str], rows: pl.LazyFrame) -> set[str]:
    """Find the `key` of each row whose `text` has a line that only these samples have, or a whole input of theirs."""
    others = lake.frame(SAMPLES).filter(~pl.col("sample_hash").is_in(sorted(choice.hashes)))
    asked = lake.frame(CALLS).filter(pl.col("prompt_hash").is_in(sorted(kept)))
    pieces = _standing(rows, {piece for text in choice.texts for piece in _pieces(text)})
    for staying in (*(others.select(text=name) for name in TEXTS), asked.select(text="request")):
        pieces -= _standing(staying, pieces)
    keys = _with_whole(rows, others, choice)
    if pieces:
        holds = pl.col("text").str.contains_any(sorted(_forms(pieces)))
        keys.update(rows.filter(holds).select("key").collect()["key"])
    return keys


def _with_whole(rows: pl.LazyFrame, others: pl.LazyFrame, choice: Choice) -> set[str]:
    """Find the `key` of each row whose `text` holds a whole input, by letters alone, even if others share each line."""
    whole = {letters for text in choice.samples["input"] if len(letters := _letters(text)) >= SHORTEST_PIECE}
    for (text,) in streamed(others.select("input")):
        letters = _letters(text)
        whole -= {each for each in whole if each in letters}
    keys = set()
    for key, text in streamed(rows.drop_nulls()) if whole else ():
        letters = _letters(text)
        if any(each in letters for each in whole):
            keys.add(key)
    return keys


def _letters(text: str) -> str:
    return _NO_LETTERS.sub("", "".join(_texts(text)))


def _standing(rows: pl.LazyFrame, pieces: Collection[str]) -> set[str]:
    """Find the pieces that occur in a `text`, as they are or as JSON has them."""
    if not pieces:
        return set()
    forms = _forms(pieces)
    matches = pl.col("text").str.extract_many(sorted(forms), overlapping=True).list.unique()
    standing: set[str] = set()
    for chunk in rows.select("text").drop_nulls().collect_batches(chunk_size=CHUNK_ROWS):
        standing.update(forms[form] for form in chunk.select(matches)["text"].explode().drop_nulls().unique())
    return standing


def _forms(pieces: Collection[str]) -> dict[str, str]:
    """Map each way in which a piece may be written to the piece: plain, in JSON, and in JSON within JSON."""
    forms = {}
    for piece in pieces:
        quoted = json.dumps(piece, ensure_ascii=False)[1:-1]
        for form in (piece, quoted, json.dumps(quoted, ensure_ascii=False)[1:-1], json.dumps(piece)[1:-1]):
            forms[form] = piece
    return forms


def _pieces(text: str) -> Iterator[str]:
    """Yield the lines of a text, or of all texts in its JSON, in pieces, without those too short to tell anything."""
    for part in _texts(text):
        for line in map(str.strip, part.splitlines()):
            pieces = (line[start : start + LONGEST_PIECE] for start in range(0, len(line), LONGEST_PIECE))
            yield from (piece for piece in pieces if len(piece) >= SHORTEST_PIECE)


def _texts(text: str) -> Iterator[str]:
    """Yield all texts in a JSON object or list; any other text as it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    yield from _leaves(value if isinstance(value, dict | list) else text)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _leaves(part)
