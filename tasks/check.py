"""Check: every table of a lake against its contract, by two engines, and every snapshot against its recomputation."""

import json
from collections.abc import Container, Iterator, Sequence

import polars as pl

from contracts.audit import RuleResult, audit, audit_table
from contracts.contract import Contract
from contracts.errors import EvalakeError
from contracts.expectations import validate
from contracts.rules import Severity
from contracts.tables import SNAPSHOTS
from storage.integrity import Finding, chunks, find_damage
from storage.lake import Lake
from storage.snapshots import metric_rows, read_metrics
from suites.registry import all_contracts
from suites.registry import suite as find_suite
from tasks.measure import compute, run_frame
from tasks.publish import record_checks


def check_lake(lake: Lake) -> Iterator[tuple[Contract, list[Finding]]]:
    """Check table after table, and yield each with what is wrong with it; the rule results are kept as rows."""
    present = [contract for contract in all_contracts() if lake.exists(contract)]
    for contract in present:
        findings = list(find_damage(lake, contract))
        if not findings:
            findings = [*_broken_rules(lake, contract)]
        if contract is SNAPSHOTS and not findings:
            findings = [*_wrong_snapshots(lake)]
        yield contract, findings


def _broken_rules(lake: Lake, contract: Contract) -> Iterator[Finding]:
    version = lake.version(contract)
    by_engine: dict[str, dict[str, RuleResult]] = {"polars": {}, "great_expectations": {}}
    about_rows = {rule.id for rule in contract.rules}
    for chunk in chunks(lake, contract):
        _collect(by_engine["polars"], audit(chunk, contract).results, about_rows)
        _collect(by_engine["great_expectations"], validate(chunk, contract).results, about_rows)
    _collect(by_engine["polars"], audit_table(_rule_columns(lake, contract), contract))
    for engine, results in by_engine.items():
        record_checks(lake, contract, tuple(results.values()), table_version=version, engine=engine)
        for result in results.values():
            if not result.passed and result.severity is not Severity.WARNING:
                problem = f"{result.rows_failed} of {result.rows_checked} rows break {result.rule_id} ({engine})"
                yield Finding(contract.table, problem, "restore an earlier version, or delete these rows")


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


def _collect(known: dict[str, RuleResult], results: Sequence[RuleResult], only: Container[str] | None = None) -> None:
    """Add the results of one chunk to those of the chunks before; of `only` these rules, where given."""
    for result in results:
        if only is not None and result.rule_id not in only:
            continue
        before = known.get(result.rule_id)
        known[result.rule_id] = (
            result
            if before is None
            else RuleResult(
                result.rule_id,
                result.severity,
                result.dimension,
                before.passed and result.passed,
                before.rows_checked + result.rows_checked,
                before.rows_failed + result.rows_failed,
                before.message or result.message,
            )
        )


def _wrong_snapshots(lake: Lake) -> Iterator[Finding]:
    for row in lake.frame(SNAPSHOTS).sort("created_at").collect().iter_rows(named=True):
        name = row["snapshot_id"][:12]
        try:
            suite = find_suite(row["suite"])
            if row["scorer_version"] != suite.scorer_version:
                continue  # made by other rules than this evalake's; its values stand, but cannot be made again here
            frame = run_frame(lake, suite, row["run_id"], json.loads(row["pinned_versions"]))
            values = compute(frame, suite, json.loads(row["options"]), row["seed"])
        except EvalakeError as error:
            yield Finding(
                SNAPSHOTS.table, f"snapshot {name} cannot be recomputed: {error}", "restore the pinned table versions"
            )
            continue
        again = metric_rows(row["snapshot_id"], row["suite"], values).sort("row_key")
        kept = read_metrics(lake, row["snapshot_id"]).select(again.columns).sort("row_key")
        if not again.equals(kept, null_equal=True):
            yield Finding(
                SNAPSHOTS.table,
                f"snapshot {name} differs from its recomputation",
                "measure its run again, and trust the new one",
            )
