"""Check: every table of a lake against its contract, by two engines, and every snapshot against its recomputation."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from contracts.audit import RuleResult, audit, audit_table, result_of
from contracts.compile.great_expectations import validate
from contracts.contract import Contract
from contracts.rule import Severity
from contracts.tables import CONTRACT_CHECKS, METRIC_SNAPSHOTS, RUNS, SNAPSHOTS
from core.errors import EvalakeError, LakeError, NewerLakeError
from storage.integrity import Defect, Seen, chunks, find_damage, find_tampering, has_traces, seen_elsewhere
from storage.lake import TO_MIGRATE, Lake, first_words
from storage.migrations import pending
from storage.reach import require_reachable
from suites.registry import all_contracts
from tasks.jobs.verify_snapshot import ANY_FAILURE, Outcome, Proof, has_true_id, verify_snapshots
from tasks.steps.publish import record_checks

Engines = Mapping[str, dict[str, RuleResult]]


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """What the check of one table found.

    `proofs` has what came of each snapshot, for the table of their values; `results` what came of each rule, by engine,
    where the table could be read.
    """

    contract: Contract
    findings: Sequence[Defect]
    proofs: Sequence[Proof] = ()
    results: Engines = field(default_factory=dict)


def check_lake(lake: Lake, contracts: Sequence[Contract] | None = None) -> Iterator[CheckedTable]:
    """Check table after table, all that there are or those of `contracts`; the rule results are kept as rows.

    Whatever a damaged table does when it is read becomes a finding, and does not keep the others from being checked.
    Raises LakeError where the lake itself cannot be reached.
    """
    seen, unwritable = _seen_elsewhere(lake), _unwritable(lake)
    there = [
        contract
        for contract in (all_contracts() if contracts is None else contracts)
        if contract.table in seen or has_traces(lake, contract) or any(map(lake.find, contract.former_tables))
    ]
    for contract in there:
        yield _contained(lake, contract, seen.get(contract.table, Seen()), keep=not unwritable)
    if there and unwritable:
        yield CheckedTable(CONTRACT_CHECKS, unwritable)


def exit_code(checked: Sequence[CheckedTable]) -> int:
    """Choose the exit code of a check.

    Returns:
        0 where all is in order and every snapshot proved, 1 where something is wrong, 3 where nothing is wrong but some
        snapshots could not be recomputed.
    """
    if any(table.findings for table in checked):
        return 1
    proofs = [proof for table in checked for proof in table.proofs]
    return 3 if any(proof.outcome is Outcome.NOT_RECOMPUTED for proof in proofs) else 0


def _unwritable(lake: Lake) -> list[Defect]:
    """That nothing can be written to the lake: said once, for no table of it is the worse for that."""
    try:
        require_reachable(lake)
    except LakeError as error:
        return [
            Defect(CONTRACT_CHECKS.table, f"what was found is not kept: {error}", "check it where it can be written")
        ]
    return []


def _check(lake: Lake, contract: Contract, seen: Seen, *, keep: bool) -> CheckedTable:
    findings = _of_another_schema(lake, contract) or find_damage(lake, contract, seen)
    if findings:
        return CheckedTable(contract, findings)
    version, results = lake.version(contract), _hold_to_rules(lake, contract)
    findings = [*find_tampering(lake, contract), *_disagreeing_or_broken(contract, results)]
    findings += _keep_results(lake, contract, results, version) if keep else []
    if contract is RUNS:
        findings += _lost_snapshots(lake)
    if contract is SNAPSHOTS:
        findings += _false_ids(lake)
    proofs = list(verify_snapshots(lake)) if contract is METRIC_SNAPSHOTS else []
    return CheckedTable(contract, [*findings, *_wrong_snapshots(proofs)], proofs, results)


def _of_another_schema(lake: Lake, contract: Contract) -> list[Defect]:
    """That a table is of another evalake's schema, such as one that a migration, cut off, has not come to yet."""
    try:
        older = pending(lake, [contract])
    except NewerLakeError as error:
        return [Defect(contract.table, str(error), "update evalake")]
    except EvalakeError:
        return []  # it is damaged, and that is looked for next
    return [
        Defect(
            each.source,
            f"has schema version {each.from_version}, this evalake has {each.to_version} ({'; '.join(each.changes)})",
            TO_MIGRATE,
        )
        for each in older
    ]


def _contained(lake: Lake, contract: Contract, seen: Seen, *, keep: bool) -> CheckedTable:
    try:
        return _check(lake, contract, seen, keep=keep)
    except ANY_FAILURE as error:
        problem = f"cannot be read: {type(error).__name__}: {first_words(error)}"
        return CheckedTable(contract, [Defect(contract.table, problem, "restore the table's folder from a backup")])


def _seen_elsewhere(lake: Lake) -> Mapping[str, Seen]:
    try:
        return seen_elsewhere(lake)
    except ANY_FAILURE:
        return {}  # a damaged table bears no witness; its own check says what is wrong with it


def _hold_to_rules(lake: Lake, contract: Contract) -> Engines:
    """Hold a table to its rules by both engines."""
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
    return by_engine


def _keep_results(lake: Lake, contract: Contract, by_engine: Engines, version: int | None) -> list[Defect]:
    """Keep what came of the rules as rows."""
    try:
        for engine, results in by_engine.items():
            record_checks(lake, contract, tuple(results.values()), table_version=version, engine=engine)
    except ANY_FAILURE as error:
        problem = f"its results cannot be kept in contract_checks: {first_words(error)}"
        return [Defect(contract.table, problem, "mend the table contract_checks")]
    return []


def _disagreeing_or_broken(contract: Contract, by_engine: Engines) -> Iterator[Defect]:
    rule_ids = dict.fromkeys(rule_id for results in by_engine.values() for rule_id in results)
    for rule_id in rule_ids:
        given = {engine: results[rule_id] for engine, results in by_engine.items() if rule_id in results}
        broken = {engine: result for engine, result in given.items() if not result.passed}
        if not broken or next(iter(broken.values())).severity is Severity.WARNING:
            continue
        result = next(iter(broken.values()))
        problem = f"{result.message or 'a rule is broken'} ({rule_id})"
        if len(broken) < len(given):
            problem += f", says {', '.join(broken)} alone"
        yield Defect(contract.table, problem, _mend(contract, rule_id))


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


def _lost_snapshots(lake: Lake) -> Iterator[Defect]:
    """Runs that name a snapshot which is not there: it lands before its run says so."""
    measured = lake.frame(RUNS).filter(pl.col("snapshot_id").is_not_null()).select("run_id", "snapshot_id")
    lost = measured.join(lake.frame(SNAPSHOTS), on="snapshot_id", how="anti").sort("run_id").collect()
    for run_id, snapshot_id in lost.iter_rows():
        problem = f"run {run_id} has the snapshot {snapshot_id[:12]}, which the table snapshots has lost"
        yield Defect(RUNS.table, problem, "restore the table snapshots from a backup, or run or import again")


def _false_ids(lake: Lake) -> Iterator[Defect]:
    """Snapshots that are not what their id says: something of what they were made from was changed afterwards."""
    for row in lake.frame(SNAPSHOTS).sort("created_at", "snapshot_id").collect().iter_rows(named=True):
        if not has_true_id(row):
            problem = f"snapshot {row['snapshot_id'][:12]} was changed: its id does not follow from its columns"
            yield Defect(SNAPSHOTS.table, problem, "restore an earlier version of the table")


def _wrong_snapshots(proofs: Sequence[Proof]) -> Iterator[Defect]:
    """Snapshots whose values do not come out again; those of a false id are findings of the table that has the id."""
    for proof in proofs:
        if proof.outcome is Outcome.WRONG and not proof.false_id:
            mend = "restore an earlier version of the table, or delete the snapshot's rows and measure its run again"
            yield Defect(METRIC_SNAPSHOTS.table, f"snapshot {proof.name} {proof.reason}", mend)
