"""Check: every table of a lake against its contract, by two engines, and every snapshot against its recomputation."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl
from polars.exceptions import PanicException

from contracts.audit import RuleResult, audit, audit_table, result_of
from contracts.contract import Contract
from contracts.expectations import validate
from contracts.rules import Severity
from contracts.tables import METRIC_SNAPSHOTS, RUNS, SNAPSHOTS
from storage.integrity import Finding, Seen, chunks, find_damage, find_tampering, has_traces, seen_elsewhere
from storage.lake import Lake, first_words
from storage.snapshots import Snapshot, metric_rows, read_metrics
from suites.registry import all_contracts
from suites.registry import suite as find_suite
from tasks.measure import compute, definition_hash_of, run_calls, run_frame
from tasks.publish import record_checks

# Damaged files make engines fail in every way there is, up to a panic of Polars, which is no Exception.
ANY_FAILURE = (Exception, PanicException)

Engines = Mapping[str, dict[str, RuleResult]]


def check_lake(lake: Lake, contracts: Sequence[Contract] | None = None) -> Iterator[tuple[Contract, list[Finding]]]:
    """Check table after table, all that there are or those of `contracts`, and yield each with what is
    wrong with it; the rule results are kept as rows.

    Whatever a damaged table does when it is read becomes a finding, and does not keep the others from being checked.
    Raises LakeError where the lake itself cannot be reached.
    """
    seen = _seen_elsewhere(lake)
    for contract in all_contracts() if contracts is None else contracts:
        if contract.table in seen or has_traces(lake, contract):
            step = partial(_check, lake, contract, seen.get(contract.table, Seen()))
            yield contract, _contained(contract, step)


def _check(lake: Lake, contract: Contract, seen: Seen) -> list[Finding]:
    if damage := find_damage(lake, contract, seen):
        return damage
    findings = [*find_tampering(lake, contract), *_broken_rules(lake, contract)]
    if contract is RUNS:
        findings += _lost_snapshots(lake)
    if contract is SNAPSHOTS:
        findings += _false_ids(lake)
    if contract is METRIC_SNAPSHOTS:
        findings += _false_values(lake)
    return findings


def _contained(contract: Contract, step: Callable[[], list[Finding]]) -> list[Finding]:
    try:
        return step()
    except ANY_FAILURE as error:
        problem = f"cannot be read: {type(error).__name__}: {first_words(error)}"
        return [Finding(contract.table, problem, "restore the table's folder from a backup")]


def _seen_elsewhere(lake: Lake) -> Mapping[str, Seen]:
    try:
        return seen_elsewhere(lake)
    except ANY_FAILURE:
        return {}  # a damaged table bears no witness; its own check says what is wrong with it


def _broken_rules(lake: Lake, contract: Contract) -> list[Finding]:
    version = lake.version(contract)
    checked, failed = 0, {"polars": Counter[str](), "great_expectations": Counter[str]()}
    for chunk in chunks(lake, contract):
        checked += chunk.height
        failed["polars"].update(_failed(audit(chunk, contract).results))
        failed["great_expectations"].update(_failed(validate(chunk, contract).results))
    by_engine = {
        engine: {rule.id: result_of(rule, checked, counts[rule.id]) for rule in contract.rules}
        for engine, counts in failed.items()
    }
    whole = audit_table(_rule_columns(lake, contract), contract)
    by_engine["polars"] |= {result.rule_id: result for result in whole}
    findings = list(_disagreeing_or_broken(contract, by_engine))
    try:
        for engine, results in by_engine.items():
            record_checks(lake, contract, tuple(results.values()), table_version=version, engine=engine)
    except ANY_FAILURE as error:
        problem = f"its results cannot be kept in contract_checks: {first_words(error)}"
        findings.append(Finding(contract.table, problem, "mend the table contract_checks"))
    return findings


def _disagreeing_or_broken(contract: Contract, by_engine: Engines) -> Iterator[Finding]:
    rule_ids = dict.fromkeys(rule_id for results in by_engine.values() for rule_id in results)
    for rule_id in rule_ids:
        said = {engine: results[rule_id] for engine, results in by_engine.items() if rule_id in results}
        broken = {engine: result for engine, result in said.items() if not result.passed}
        if not broken or next(iter(broken.values())).severity is Severity.WARNING:
            continue
        result = next(iter(broken.values()))
        problem = f"{result.message or 'a rule is broken'} ({rule_id})"
        if len(broken) < len(said):
            problem += f", says {', '.join(broken)} alone"
        yield Finding(contract.table, problem, _mend(contract, rule_id))


def _mend(contract: Contract, rule_id: str) -> str:
    if rule_id == "key_unique":
        return f"restore an earlier version of the table, or delete the later rows of each {', '.join(contract.key)}"
    return "restore an earlier version of the table, or delete these rows, and run or import again"


def _rule_columns(lake: Lake, contract: Contract) -> pl.DataFrame:
    """The whole table, of the columns that its table rules look at."""
    named = {name for rule in contract.table_rules for name in rule.parameters.get("columns", ())}
    named |= {
        rule.parameters[role]
        for rule in contract.table_rules
        for role in ("column", "group")
        if role in rule.parameters
    }
    return lake.frame(contract).select(sorted(named) or contract.key).collect()


def _failed(results: Sequence[RuleResult]) -> dict[str, int]:
    return {result.rule_id: result.rows_failed for result in results}


def _lost_snapshots(lake: Lake) -> Iterator[Finding]:
    """Runs that name a snapshot which is not there: it lands before its run says so."""
    measured = lake.frame(RUNS).filter(pl.col("snapshot_id").is_not_null()).select("run_id", "snapshot_id")
    lost = measured.join(lake.frame(SNAPSHOTS), on="snapshot_id", how="anti").sort("run_id").collect()
    for run_id, snapshot_id in lost.iter_rows():
        problem = f"run {run_id} has the snapshot {snapshot_id[:12]}, which the table snapshots has lost"
        yield Finding(RUNS.table, problem, "restore the table snapshots from a backup, or run or import again")


def _false_ids(lake: Lake) -> Iterator[Finding]:
    """Snapshots that are not what their id says: something of what they were made from was changed afterwards."""
    for row in _snapshots(lake):
        try:
            true = _snapshot(row).id == row["snapshot_id"]
        except ANY_FAILURE:
            true = False
        if not true:
            problem = f"snapshot {row['snapshot_id'][:12]} was changed: its id does not follow from its columns"
            yield Finding(SNAPSHOTS.table, problem, "restore an earlier version of the table")


def _false_values(lake: Lake) -> Iterator[Finding]:
    """Snapshots whose values do not come out again when they are computed from the versions they pin."""
    for row in _snapshots(lake):
        name = row["snapshot_id"][:12]
        try:
            differing = _differing(lake, row)
        except ANY_FAILURE as error:
            problem = f"snapshot {name} cannot be recomputed: {first_words(error)}"
            mend = "mend the tables that it pins, if findings name them; else restore them from a backup"
            yield Finding(METRIC_SNAPSHOTS.table, problem, mend)
            continue
        if differing:
            problem = f"snapshot {name} differs from its recomputation in {len(differing)} values: {differing[0]}"
            mend = "restore an earlier version of the table, or delete the snapshot's rows and measure its run again"
            yield Finding(METRIC_SNAPSHOTS.table, problem, mend)


def _differing(lake: Lake, row: Mapping[str, Any]) -> list[str]:
    """Which values are kept other than they are recomputed, in words."""
    suite = find_suite(row["suite"])
    options = json.loads(row["options"])
    made_by = (suite.scorer_version, definition_hash_of(suite, options))
    if (row["scorer_version"], row["definition_hash"]) != made_by:
        return []  # made by other rules than this evalake's; its values stand, but cannot be made again here
    versions = json.loads(row["pinned_versions"])
    frame = run_frame(lake, suite, row["run_id"], versions)
    calls = run_calls(lake, row["run_id"], versions)
    values = compute(frame, calls, suite, options, row["seed"])
    again = metric_rows(row["snapshot_id"], row["suite"], values).sort("row_key")
    kept = read_metrics(lake, row["snapshot_id"]).select(again.columns).sort("row_key")
    if again.equals(kept, null_equal=True):
        return []
    only_one_has = [a.join(b, on=a.columns, how="anti", nulls_equal=True) for a, b in ((again, kept), (kept, again))]
    changed = pl.concat(only_one_has).unique("row_key").sort("row_key")
    return [f"{metric} of {model}" for metric, model in changed.select("metric", "model").rows()]


def _snapshot(row: Mapping[str, Any]) -> Snapshot:
    return Snapshot(
        run_id=row["run_id"],
        suite=row["suite"],
        pinned_versions=json.loads(row["pinned_versions"]),
        definition_hash=row["definition_hash"],
        scorer_version=row["scorer_version"],
        seed=row["seed"],
        options=json.loads(row["options"]),
        code_version=row["code_version"],
    )


def _snapshots(lake: Lake) -> Iterator[dict[str, Any]]:
    yield from lake.frame(SNAPSHOTS).sort("created_at").collect().iter_rows(named=True)
