"""Checks stored tables: is the log complete, is each data file there and unchanged, is the ledger unaltered."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

import polars as pl
from deltalake import DeltaTable
from pyarrow import fs

from evalake.contracts.contract import Contract
from evalake.contracts.engines.sql import check_constraints
from evalake.contracts.tables import CALLS, CONTRACT_CHECKS, METRIC_SNAPSHOTS
from evalake.core.errors import EvalakeError
from evalake.storage import ledger
from evalake.storage.lake import Lake, constraints
from evalake.storage.maintenance import pinned_versions
from evalake.storage.objects import failing_as, file_infos, file_sizes, modified_at, open_store, read_object
from evalake.storage.snapshots import Files, StoredFile

LOG = "_delta_log"
READERS = 8  # threads that read files and log entries
UNREADABLE = "check again; if it stays so, restore the table's folder from a backup"


@dataclass(frozen=True, slots=True)
class Defect:
    """A problem of a table, and how to mend it."""

    table: str
    problem: str
    mend: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What other tables say about a table: its log reached `newest`, and snapshots need the `pinned` versions."""

    newest: int = -1
    pinned: frozenset[int] = frozenset()


def seen_elsewhere(lake: Lake) -> dict[str, Seen]:
    """Collect by table the versions that snapshots and earlier checks saw; any snapshot adds METRIC_SNAPSHOTS."""
    pinned = pinned_versions(lake)
    checked = lake.frame(CONTRACT_CHECKS).filter(pl.col("table_version").is_not_null())
    newest = dict(checked.group_by("table_name").agg(pl.col("table_version").max()).collect().iter_rows())
    return {
        table: Seen(max({newest.get(table, -1), *pinned.get(table, ())}), frozenset(pinned.get(table, ())))
        for table in pinned.keys() | newest.keys() | ({METRIC_SNAPSHOTS.table} if pinned else set())
    }


def has_traces(lake: Lake, contract: Contract) -> bool:
    """Tell whether the table's folder holds any file, readable or not."""
    return bool(file_sizes(lake, contract.table))


@dataclass(frozen=True, slots=True)
class Inspected:
    """The defects of a table's log and files; without any, its file sizes for the newest and the pinned versions."""

    damage: Sequence[Defect] = ()
    newest: int = -1
    files: Mapping[int, Collection[str]] = field(default_factory=dict)


def inspect(lake: Lake, contract: Contract, seen: Seen = Seen()) -> Inspected:
    """Inspect the log and the data files of a table's newest and pinned versions; a defect makes rows unreliable."""
    if damage := list(_find_in_log(lake, contract, seen)):
        return Inspected(damage)
    try:
        pinned = [lake.find(contract.table, version) for version in sorted(seen.pinned)]
        newest = lake.open(contract)
    except EvalakeError as error:
        return Inspected([Defect(contract.table, str(error), UNREADABLE)])
    files = {table.version(): dict(data_files(table)) for table in (*pinned, newest) if table is not None}
    damage = list(_find_in_files(lake, contract, files.values()))
    return Inspected(damage, newest.version(), files)


def stored_files(lake: Lake, contract: Contract, paths: Collection[str], before: Files) -> dict[str, StoredFile]:
    """Hash data files; unchanged ones keep their proofs from `before`.

    Local files are always read, because a disk may flip a bit. In an object store, which checks its own bytes, a file
    of the same size and time counts as unchanged.
    """
    infos, store = file_infos(lake, contract.table), open_store(lake, contract.table)

    def read(path: str) -> StoredFile:
        info, known = infos[path], before.get(path)
        if "://" in lake.uri and known and (known.size, known.modified_ns) == (info.size, info.mtime_ns):
            return known
        with failing_as(f"cannot read {path} of {contract.table}"), store.open_input_stream(path) as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        if known and known.digest == digest:
            return replace(known, size=info.size, modified_ns=info.mtime_ns)
        return StoredFile(info.size, info.mtime_ns, digest)

    with ThreadPoolExecutor(READERS) as pool:
        return dict(zip(paths, pool.map(read, paths), strict=True))


def find_changed(contract: Contract, now: Files, before: Files) -> Iterator[Defect]:
    """Find data files that changed since an earlier check: data files are immutable."""
    changed = sorted(path for path, file in now.items() if path in before and before[path].digest != file.digest)
    if changed:
        problem = f"{len(changed)} data files have changed since an earlier check: {_examples(changed)}"
        yield Defect(contract.table, problem, "restore the files from a backup")


def find_tampering(lake: Lake, contract: Contract) -> Iterator[Defect]:
    """Find changes that other programs made: removed constraints, altered keys or stamps of the ledger."""
    table = lake.open(contract)
    if absent := sorted(check_constraints(contract).keys() - constraints(table)):
        problem = f"lacks the constraints {', '.join(absent)}"
        mend = "mend the rows that break them, if any are named here, then run `evalake maintain` to add them"
        yield Defect(contract.table, problem, mend)
    if contract is CALLS:
        yield from _find_in_ledger(table)


def false_requests(calls: pl.DataFrame) -> pl.Series:
    """Mark the ledger's calls whose request does not hash to their prompt hash."""
    rows = calls.select("origin", "request", "prompt_hash").iter_rows()
    false = [
        origin == "call" and hashlib.sha256(request.encode()).hexdigest() != prompt_hash
        for origin, request, prompt_hash in rows
    ]
    return pl.Series(false, dtype=pl.Boolean)


def _find_in_log(lake: Lake, contract: Contract, seen: Seen) -> Iterator[Defect]:
    objects = file_sizes(lake, contract.table)
    entries = _numbers(objects, r"json")
    if not entries:
        problem = "has lost its log" if objects else "is gone"
        yield Defect(contract.table, problem, "restore the table's folder from a backup")
        return
    end = max(*entries, *_numbers(objects, r"checkpoint\..*parquet"), seen.newest)
    if missing := [version for version in range(end + 1) if not _is_there(lake, contract, version, entries)]:
        mend = f"restore the entries in {LOG} from a backup"
        if missing[0] > max(entries):
            seen_by = "a snapshot, a checkpoint or an earlier check has seen"
            problem = f"ends at version {max(entries)}, but {seen_by} version {end}: log entries are gone"
            mend += "; without one, repeat the last runs and imports: missing rows land again"
        else:
            problem = f"lacks {len(missing)} log entries: {_examples([_entry(version) for version in missing])}"
        yield Defect(contract.table, problem, mend)
    store = open_store(lake, contract.table)
    with ThreadPoolExecutor(READERS) as pool:
        whole = pool.map(lambda version: _is_whole(store, _entry(version)), sorted(entries))
        broken = [_entry(version) for version, good in zip(sorted(entries), whole, strict=True) if not good]
    if broken:
        problem = f"{len(broken)} log entries are cut off or not JSON: {_examples(broken)}"
        mend = f"restore the entries in {LOG} from a backup"
        if broken == [_entry(max(entries))]:
            mend += "; without one, delete this newest entry and repeat the run or import that wrote it"
        yield Defect(contract.table, problem, mend)


def _find_in_files(lake: Lake, contract: Contract, versions: Iterable[Mapping[str, int]]) -> Iterator[Defect]:
    needed = {path: size for files in versions for path, size in files.items()}
    objects = file_sizes(lake, contract.table)  # listed after opening the versions, so their files were written before
    gone = sorted(path for path in needed if path not in objects)
    cut = sorted(path for path, size in needed.items() if objects.get(path, size) != size)
    mend = "restore the files from a backup; without one, remove them from the log and run or import again"
    if gone:
        yield Defect(contract.table, f"{len(gone)} data files are gone: {_examples(gone)}", mend)
    if cut:
        yield Defect(contract.table, f"{len(cut)} data files have changed their size: {_examples(cut)}", mend)


def _find_in_ledger(table: DeltaTable) -> Iterator[Defect]:
    mend = "restore an earlier version of the table, or delete these rows and ask again"
    calls = pl.scan_delta(table)
    stamped = [*ledger.KEY, "reply_revision", "ledger_version"]
    twice = calls.group_by(stamped).len().filter(pl.col("len") > 1).select(pl.len()).collect().item()
    if twice:
        yield Defect(CALLS.table, f"{twice} keys stand twice in one commit: another program wrote them", mend)
    ahead = calls.filter(pl.col("ledger_version") > table.version()).select(pl.len()).collect().item()
    if ahead:
        yield Defect(CALLS.table, f"{ahead} rows are stamped with versions beyond the end of the log", mend)


def _numbers(objects: Collection[str], ending: str) -> set[int]:
    """List the versions for which the log has a file with this ending."""
    pattern = re.compile(rf"{LOG}/(\d{{20}})\.{ending}")
    return {int(match[1]) for path in objects if (match := pattern.fullmatch(path))}


def _entry(version: int) -> str:
    return f"{LOG}/{version:020}.json"


def _is_there(lake: Lake, contract: Contract, version: int, entries: Collection[int]) -> bool:
    # A listing during a write may skip an entry and show the next: look for it by name
    if version in entries:
        return True
    return modified_at(lake, contract.table, _entry(version)) is not None


def _is_whole(store: fs.FileSystem, path: str) -> bool:
    """Tell whether a log entry has at least one line, and a JSON object on each."""
    lines = read_object(store, path).split(b"\n")
    try:
        actions = [json.loads(line) for line in lines if line.strip()]
    except (ValueError, RecursionError):
        return False
    return bool(actions) and all(isinstance(action, dict) for action in actions)


def data_files(table: DeltaTable) -> Iterator[tuple[str, int]]:
    """Yield the data files of an open version: path within the table, and size in bytes."""
    files = pl.DataFrame(table.get_add_actions(flatten=True))
    if files.height:
        yield from ((unquote(path), size) for path, size in files.select("path", "size_bytes").iter_rows())


def _examples(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
