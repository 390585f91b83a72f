"""Metric snapshots: values, and the table versions that they were computed from; and proofs of earlier checks."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field, fields
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import polars as pl

from evalake.contracts.contract import Contract
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import METRIC_SNAPSHOTS, RUNS, SNAPSHOTS
from evalake.core.errors import UsageError
from evalake.core.files import cache_folder, is_ours, make_private
from evalake.core.hashing import content_hash
from evalake.storage.lake import Lake
from evalake.storage.landing import land

BOUNDS = ("bound_low", "bound_high")
_OF_RUN = ("run_id", "measured_at", *BOUNDS)  # columns of METRIC_SNAPSHOTS that do not follow from the values

ROW_KEY = ("model", "judge", "slice", "slice_value", "metric")


@dataclass(frozen=True)
class Snapshot:
    """The inputs of a snapshot. Its id covers all of them except the warnings and the code version."""

    run_id: str
    suite: str
    pinned_versions: Mapping[str, int | None]
    definition_hash: str
    scorer_version: str
    seed: int
    options: Mapping[str, Any]
    code_version: str
    warnings: Sequence[str] = ()

    @property
    def id(self) -> str:
        """SHA-256 over the run, the pinned versions, the definitions, the scorer, the options and the seed."""
        values = {**vars(self), "pinned_versions": dict(self.pinned_versions), "options": dict(self.options)}
        return content_hash({name: value for name, value in values.items() if name not in ("code_version", "warnings")})


Bounded = Mapping[tuple[str, str | None], Mapping[str, tuple[float, float]]]
"""By model and judge, and by metric, the lowest and the highest value that what is missing leaves over all samples."""


def land_snapshot(lake: Lake, snapshot: Snapshot, values: pl.DataFrame, bounded: Bounded = MappingProxyType({})) -> str:
    """Land the metric engine's values, then the snapshot, so that a listed snapshot is complete. Can be repeated."""
    snapshot_id, now = snapshot.id, datetime.now(UTC)
    rows = metric_rows(snapshot_id, snapshot.suite, values)
    ends = [
        bounded.get((model, judge), {}).get(metric if slice_ == "all" else "", (None, None))
        for model, judge, metric, slice_ in rows.select("model", "judge", "metric", "slice").iter_rows()
    ]
    of_run = {"run_id": pl.lit(snapshot.run_id), "measured_at": pl.lit(now)}
    known = pl.DataFrame(ends, dict.fromkeys(BOUNDS, pl.Float64), orient="row")
    land(lake, METRIC_SNAPSHOTS, conform(rows.with_columns(**of_run).hstack(known), METRIC_SNAPSHOTS))
    row = {
        **vars(snapshot),
        "snapshot_id": snapshot_id,
        "pinned_versions": json.dumps(dict(snapshot.pinned_versions), sort_keys=True),
        "options": json.dumps(dict(snapshot.options), sort_keys=True),
        "warnings": list(snapshot.warnings),
        "created_at": now,
    }
    land(lake, SNAPSHOTS, conform([row], SNAPSHOTS))
    return snapshot_id


def snapshot_of(row: Mapping[str, Any]) -> Snapshot:
    """Build the snapshot of a row of SNAPSHOTS, without its warnings."""
    kept = {field.name: row[field.name] for field in fields(Snapshot) if field.name != "warnings"}
    read = {name: json.loads(row[name]) for name in ("pinned_versions", "options")}
    return Snapshot(**{**kept, **read})


def metric_rows(snapshot_id: str, suite: str, values: pl.DataFrame) -> pl.DataFrame:
    """Convert the metric engine's values to rows of METRIC_SNAPSHOTS, without run and time."""
    keys = [content_hash([row[name] for name in ROW_KEY]) for row in values.iter_rows(named=True)]
    return values.with_columns(
        pl.lit(snapshot_id).alias("snapshot_id"),
        pl.Series("row_key", keys, dtype=pl.String),
        pl.lit(suite).alias("suite"),
    ).select(name for name in METRIC_SNAPSHOTS.column if name not in _OF_RUN)


def read_metrics(lake: Lake, snapshot_id: str) -> pl.DataFrame:
    """Read the metric rows of one snapshot in a stable order."""
    rows = lake.frame(METRIC_SNAPSHOTS).filter(pl.col("snapshot_id") == snapshot_id).collect()
    return rows.sort("model", "judge", "slice", "slice_value", "tier", "metric", nulls_last=True)


def newest_with(lake: Lake, column: str, name: str) -> dict[str, Any] | None:
    """Find the newest snapshot with this name in a column of METRIC_SNAPSHOTS; None without any."""
    having = lake.frame(METRIC_SNAPSHOTS).filter(pl.col(column) == name).select("snapshot_id").unique()
    found = lake.frame(SNAPSHOTS).join(having, on="snapshot_id", how="semi").sort("created_at").tail(1).collect()
    return None if found.is_empty() else found.row(0, named=True)


def find_snapshot(lake: Lake, *, run_id: str | None = None, snapshot_id: str | None = None) -> dict[str, Any]:
    """Find a run's snapshot by its row, the snapshot of an id or the beginning of one, or else the newest of all.

    A run whose row names none has its newest. Raises UsageError without a match, or where the beginning of an id
    matches several.
    """
    rows = lake.frame(SNAPSHOTS)
    if snapshot_id == "":
        raise UsageError("the snapshot id is empty: give at least its first character")
    if snapshot_id is not None:
        rows = rows.filter(pl.col("snapshot_id").str.starts_with(snapshot_id))
    if run_id is not None:
        rows = rows.filter(pl.col("run_id") == run_id)
    of_run = lake.frame(RUNS).filter(run_id=run_id or "").select("snapshot_id").collect()["snapshot_id"]
    newest_first = rows.sort(pl.col("snapshot_id").is_in(of_run.implode()), "created_at", descending=True).collect()
    if newest_first.is_empty():
        what = f"of the run {run_id}" if run_id is not None else "yet" if snapshot_id is None else snapshot_id
        raise UsageError(f"the lake {lake.uri} has no snapshot {what}: `evalake snapshots` lists them")
    if snapshot_id is not None and newest_first.height > 1:
        raise UsageError(f"{snapshot_id} begins {newest_first.height} snapshot ids: give more characters")
    return newest_first.row(0, named=True)


FORMAT = 1
# The packages whose results a proof depends on
ENGINES = ("evalake", "polars", "great-expectations", "pandas", "pyarrow", "numpy", "scipy", "deltalake")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A data file at its last check: size, time of change, and SHA-256 of its bytes.

    All its `rows` kept every row rule in both engines, for the rules and engines of the hash `proved`; that is empty
    where this was not proved.
    """

    size: int
    modified_ns: int
    digest: str
    rows: int = 0
    proved: str = ""


Files = Mapping[str, StoredFile]
"""Data files by their path within their table."""


@dataclass
class Proofs:
    """The results of earlier checks: data files by table, and the hashes of snapshots that were right."""

    files: dict[str, Files] = field(default_factory=dict)
    snapshots: frozenset[str] = frozenset()


def read_proofs(lake: Lake) -> Proofs:
    """Read the proofs of this user's earlier checks; none where the file is damaged or another user's."""
    try:
        if not is_ours(place := _proofs_file(lake)):
            return Proofs()
        kept = json.loads(place.read_text(encoding="utf-8"))
        if (kept["format"], kept["lake"]) != (FORMAT, lake.address):
            return Proofs()
        files: dict[str, Files] = {
            table: {path: StoredFile(*values) for path, values in of_table.items()}
            for table, of_table in kept["files"].items()
        }
        return Proofs(files, frozenset(kept["snapshots"]))
    except (OSError, RuntimeError, ValueError, LookupError, TypeError, AttributeError):
        return Proofs()


def write_proofs(lake: Lake, proofs: Proofs) -> None:
    """Store proofs for the next check; a failure to store is ignored, and the next check proves everything."""
    kept = {
        "format": FORMAT,
        "lake": lake.address,
        "files": {
            table: {path: astuple(file) for path, file in files.items()} for table, files in proofs.files.items()
        },
        "snapshots": sorted(proofs.snapshots),
    }
    with suppress(OSError, RuntimeError):
        place = _proofs_file(lake)
        make_private(place.parent)
        if is_ours(place):
            with TemporaryDirectory(dir=place.parent) as folder:  # then replaced, so that readers see a whole file
                draft = Path(folder) / place.name
                draft.write_text(json.dumps(kept), encoding="utf-8")
                draft.chmod(0o600)
                draft.replace(place)


def rules_and_engines(contract: Contract) -> str:
    """Hash the rules of a table and the versions of the engines that check them."""
    return content_hash(
        [contract.table, contract.schema_version, repr(contract.columns), repr(contract.rules), engines()]
    )


@cache
def engines() -> tuple[str, ...]:
    """Look up the versions of the packages in ENGINES."""
    return tuple(version(name) for name in ENGINES)


def _proofs_file(lake: Lake) -> Path:
    return cache_folder() / "checks" / f"{content_hash(lake.address)[:16]}.json"
