"""Verify a snapshot: prove its values by computing them again from the table versions that it pins."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import reduce
from types import MappingProxyType
from typing import Any

import polars as pl
from polars.exceptions import PanicException

from evalake.contracts.audit import kept_rules
from evalake.contracts.contract import Contract
from evalake.contracts.engines.great_expectations import failing_rows
from evalake.contracts.tables import CALLS, METRIC_SNAPSHOTS, SNAPSHOTS
from evalake.core.errors import EvalakeError, LakeError
from evalake.core.hashing import content_hash
from evalake.storage.integrity import false_requests
from evalake.storage.lake import FILE, Lake, short_message
from evalake.storage.snapshots import engines, find_snapshot, metric_rows, read_metrics, snapshot_of
from evalake.suites.registry import suite as find_suite
from evalake.tasks.measure import compute, definition_hash_of, measured_rows, run_calls

# Prove rows: hold the rows of data files to the row rules of their table, by two engines.


# Damaged files make engines fail in every way there is, up to a panic of Polars, which is no Exception.
ANY_FAILURE = (Exception, PanicException)

CHUNK_ROWS = 50_000  # in memory at a time


@dataclass(frozen=True)
class Held:
    """The result of checking rows against their rules.

    `rows` has how many rows each file has, `failed` how many rows broke each rule, by engine, and `broken` the files
    that have a row which broke one by either. `false_requests` counts calls whose request is not the one of their hash.
    """

    rows: Counter[str] = field(default_factory=Counter)
    failed: Mapping[str, Counter[str]] = field(
        default_factory=lambda: {"polars": Counter(), "great_expectations": Counter()}
    )
    broken: frozenset[str] = frozenset()
    false_requests: int = 0

    def __add__(self, other: "Held") -> "Held":
        failed = {engine: counts + other.failed[engine] for engine, counts in self.failed.items()}
        broken, requests = self.broken | other.broken, self.false_requests + other.false_requests
        return Held(self.rows + other.rows, failed, broken, requests)


def hold(lake: Lake, contract: Contract, paths: Collection[str]) -> Held:
    """Hold the rows of files to the row rules of their table, by Polars and Great Expectations.

    Raises LakeError where they cannot be read.
    """
    folder = lake.location(contract)
    by_uri = {f"{folder}/{path}": path for path in paths}
    try:
        chunks = lake.frame_of_files(contract, list(by_uri)).collect_batches(chunk_size=CHUNK_ROWS)
        held = reduce(Held.__add__, (_hold(chunk, contract) for chunk in chunks), Held())
    except ANY_FAILURE as error:
        raise LakeError(f"{type(error).__name__}: {short_message(error)}") from None
    rows = Counter({path: held.rows[uri] for uri, path in by_uri.items()})
    return Held(rows, held.failed, frozenset(by_uri[uri] for uri in held.broken), held.false_requests)


def _hold(chunk: pl.DataFrame, contract: Contract) -> Held:
    kept = kept_rules(chunk, contract)
    failing = failing_rows(chunk, contract)
    failed = {
        "polars": Counter(kept.select((~pl.all()).sum()).row(0, named=True)),
        "great_expectations": Counter({rule_id: len(rows) for rule_id, rows in failing.items()}),
    }
    false = false_requests(chunk).arg_true() if contract.table == CALLS.table else ()
    by_polars = kept.select(~pl.all_horizontal(pl.all())).to_series().arg_true()
    broken = sorted({*false, *by_polars, *frozenset().union(*failing.values())})
    rows = Counter(dict(chunk[FILE].value_counts().iter_rows()))
    return Held(rows, failed, frozenset(chunk[FILE].gather(broken).unique()), len(false))


TOLERANCE = 1e-9
"""The largest difference between a kept and a recomputed number, relative above 1: machines round differently."""

AGAIN = " again"

FilesAt = Mapping[tuple[str, int], Mapping[str, str]]
"""The SHA-256 of the data files of a table at a version, by their paths."""


class Outcome(StrEnum):
    """The outcome of verifying a snapshot."""

    PROVED = "proved"
    WRONG = "wrong"
    NOT_RECOMPUTED = "not recomputed"


@dataclass(frozen=True, slots=True)
class Proof:
    """The outcome of verifying one snapshot, with the reason if it is not proved.

    `basis` is a hash of all that the outcome follows from, empty where that is not known; `before` says whether an
    earlier check has proved it on the same basis.
    """

    snapshot_id: str
    outcome: Outcome
    reason: str = ""
    false_id: bool = False
    basis: str = ""
    before: bool = False

    @property
    def name(self) -> str:
        """The beginning of the id, as listings show it."""
        return self.snapshot_id[:12]

    @property
    def exit_code(self) -> int:
        """The exit code of a command that verified this snapshot alone."""
        return {Outcome.PROVED: 0, Outcome.WRONG: 1, Outcome.NOT_RECOMPUTED: 3}[self.outcome]


class NotRecomputableError(EvalakeError):
    """A snapshot cannot be recomputed by this evalake; its values may be right or wrong."""


def verify_snapshot(lake: Lake, snapshot_id: str) -> Proof:
    """Verify the snapshot that an id, or the beginning of one, names.

    Raises UsageError where there is none, or where the beginning names several.
    """
    return _verify(lake, find_snapshot(lake, snapshot_id=snapshot_id))


def verify_snapshots(
    lake: Lake, files: FilesAt = MappingProxyType({}), before: Collection[str] = ()
) -> Iterator[Proof]:
    """Verify every snapshot of the lake, oldest first, but those that were proved `before` on the same basis.

    Args:
        lake: The lake.
        files: The digests of the data files of tables at versions that snapshots pin, as far as they are known.
        before: The bases on which snapshots were proved.
    """
    rows = lake.frame(SNAPSHOTS).sort("created_at", "snapshot_id").collect().iter_rows(named=True)
    kept = _kept_values(lake) if files else {}
    for row in rows:
        basis = _basis(lake, row, kept.get(row["snapshot_id"], ""), files)
        if basis and basis in before:
            yield Proof(row["snapshot_id"], Outcome.PROVED, basis=basis, before=True)
        else:
            yield replace(_verify(lake, row), basis=basis)


def _kept_values(lake: Lake) -> dict[str, str]:
    """Compute for each snapshot the SHA-256 over the values that are kept of it."""
    rows = lake.frame(METRIC_SNAPSHOTS).sort("row_key").collect()
    return {
        str(snapshot_id): content_hash(repr(values.rows()))
        for (snapshot_id,), values in rows.partition_by("snapshot_id", as_dict=True).items()
    }


def _basis(lake: Lake, row: Mapping[str, Any], values: str, files: FilesAt) -> str:
    """Compute the SHA-256 over all that decides the outcome of verifying a snapshot; empty where not all is known."""
    try:
        pinned, options = json.loads(row["pinned_versions"]), json.loads(row["options"])
        suite = find_suite(row["suite"], lake)
        data = {table: version if version is None else files[table, version] for table, version in pinned.items()}
        declared = [suite.scoring.version, definition_hash_of(suite, options)]
        return content_hash([repr(sorted(row.items())), values, data, declared, engines()])
    except ANY_FAILURE:
        return ""


def count_outcomes(proofs: Sequence[Proof]) -> str:
    """Say in words how many snapshots are proved, wrong and not recomputed."""
    counts = Counter(proof.outcome for proof in proofs)
    return "snapshots: " + ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome)


def reasons(proofs: Sequence[Proof]) -> dict[str, list[str]]:
    """Group the snapshots that could not be recomputed by the reason: each reason with the names of its snapshots."""
    by_reason: dict[str, list[str]] = {}
    for proof in (each for each in proofs if each.outcome is Outcome.NOT_RECOMPUTED):
        by_reason.setdefault(proof.reason, []).append(proof.name)
    return by_reason


def has_true_id(row: Mapping[str, Any]) -> bool:
    """Tell whether the id of a row of SNAPSHOTS follows from its other columns."""
    try:
        return bool(snapshot_of(row).id == row["snapshot_id"])
    except ANY_FAILURE:
        return False


def differing_values(kept: pl.DataFrame, again: pl.DataFrame) -> list[str]:
    """Name the values that came out otherwise than they were kept, as `metric of model`.

    Numbers differ where they are further apart than TOLERANCE.
    """
    paired = kept.join(again, on="row_key", how="full", suffix=AGAIN, coalesce=True)
    same = pl.all_horizontal(_same(name, kind) for name, kind in kept.schema.items() if name != "row_key")
    differing = paired.filter(~same).sort("row_key")
    named = differing.select(pl.coalesce(name, name + AGAIN) for name in ("metric", "model")).unique(
        maintain_order=True
    )
    return [f"{metric} of {model}" for metric, model in named.rows()]


def _verify(lake: Lake, row: Mapping[str, Any]) -> Proof:
    snapshot_id = row["snapshot_id"]
    if not has_true_id(row):
        reason = "was changed: its id does not follow from its columns"
        return Proof(snapshot_id, Outcome.WRONG, reason, false_id=True)
    try:
        again = _recompute(lake, row)
        differing = differing_values(read_metrics(lake, snapshot_id).select(again.columns), again)
    except ANY_FAILURE as error:
        return Proof(snapshot_id, Outcome.NOT_RECOMPUTED, short_message(error))
    if differing:
        reason = f"differs from its recomputation in {len(differing)} values: {differing[0]}"
        return Proof(snapshot_id, Outcome.WRONG, reason)
    return Proof(snapshot_id, Outcome.PROVED)


def _recompute(lake: Lake, row: Mapping[str, Any]) -> pl.DataFrame:
    """Compute the rows of the snapshot with this evalake, from the versions that the snapshot pins.

    Raises NotRecomputableError where the snapshot was made by other versions than this evalake's, or of data that was
    forgotten, LakeError where a version that it pins cannot be read.
    """
    pinned = json.loads(row["pinned_versions"])
    first = lake.first_versions()
    if any(version is not None and version < first.get(table, 0) for table, version in pinned.items()):
        raise NotRecomputableError("data that it was computed from was forgotten; its values are kept")
    suite = find_suite(row["suite"], lake)
    options = json.loads(row["options"])
    if row["scorer_version"] != suite.scoring.version:
        versions = f"scorer {row['scorer_version']}, and this evalake has scorer {suite.scoring.version}"
        raise NotRecomputableError(f"it was made with {suite.name}'s {versions}")
    if row["definition_hash"] != definition_hash_of(suite, options):
        raise NotRecomputableError(
            f"it was made with other versions of {suite.name}'s metrics or of the engine than this evalake's"
        )
    with measured_rows(lake, suite, row["run_id"], pinned, options) as rows:
        values = compute(rows, run_calls(lake, row["run_id"], pinned), suite, options)
    return metric_rows(row["snapshot_id"], row["suite"], values)


def _same(name: str, kind: pl.DataType) -> pl.Expr:
    kept, again = pl.col(name), pl.col(name + AGAIN)
    equal = kept.eq_missing(again)
    if not kind.is_float():
        return equal
    close = (kept - again).abs() <= TOLERANCE * pl.max_horizontal(1.0, again.abs())
    return equal | (kept.is_finite() & again.is_finite() & close).fill_null(False)
