"""Check: every table of a lake against its contract, by two engines, and every snapshot against its recomputation.

A proof of an earlier check counts while its data have the same bytes: rows file by file, since Delta never changes a
file, and snapshots. Rules over whole tables, like unique keys, read all keys each time.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import polars as pl

from evalake.admin import prove
from evalake.contracts.audit import RuleResult, audit_table, result_of
from evalake.contracts.contract import Contract
from evalake.contracts.engines.sql import describe
from evalake.contracts.tables import CALLS, CONTRACT_CHECKS, METRIC_SNAPSHOTS, RUNS, SNAPSHOTS
from evalake.core.errors import EvalakeError, LakeError, NewerLakeError
from evalake.core.hashing import content_hash
from evalake.core.redaction import redact
from evalake.reports.page import write_data_docs
from evalake.storage import integrity
from evalake.storage.lake import TO_MIGRATE, Lake, short_message
from evalake.storage.landing import land
from evalake.storage.migrations import pending
from evalake.storage.objects import require_write_access
from evalake.storage.snapshots import Files, Proofs, read_proofs, rules_and_engines, write_proofs
from evalake.suites.registry import all_contracts, because_undeclared
from evalake.tasks.publish import check_rows

Engines = Mapping[str, dict[str, RuleResult]]

_NOT_KEPT = "the results of this check are not kept"


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """The result of the check of one table.

    `proofs` has the outcome of each snapshot, for the table of their values. `results` has that of each rule by engine,
    for a readable table. An earlier check proved `files_before` of its `files`. `unkept` says why the results of this
    check are not kept.
    """

    contract: Contract
    findings: Sequence[integrity.Defect]
    proofs: Sequence[prove.Proof] = ()
    results: Engines = field(default_factory=dict)
    files: int = 0
    files_before: int = 0
    unkept: Sequence[str] = ()

    @property
    def warnings(self) -> list[str]:
        """The broken rules of severity `warning`, and why results are not kept, in words."""
        results = (result for of_engine in self.results.values() for result in of_engine.values())
        broken = {result.rule_id: result.message for result in results if result.outcome == "warning"}
        return [*(f"{message or 'a rule is broken'} ({rule_id})" for rule_id, message in broken.items()), *self.unkept]

    @property
    def state(self) -> Literal["ok", "warning", "broken"]:
        """The state of the table."""
        return "broken" if self.findings else "warning" if self.warnings else "ok"


@dataclass(frozen=True, slots=True)
class _Looked:
    """A table whose log and files were inspected: the findings, or the files to prove."""

    contract: Contract
    findings: Sequence[integrity.Defect]
    inspected: integrity.Inspected = field(default_factory=integrity.Inspected)
    files: Files = field(default_factory=dict)  # of all versions that were looked at

    @property
    def newest(self) -> Files:
        """The files of the newest version."""
        return {path: self.files[path] for path in self.inspected.files.get(self.inspected.newest, ())}

    @property
    def to_prove(self) -> Sequence[str]:
        """The files whose rows are not proved."""
        proof = rules_and_engines(self.contract)
        return [path for path, file in self.newest.items() if file.proved != proof]


def check_lake(
    lake: Lake,
    contracts: Sequence[Contract] | None = None,
    *,
    again: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[CheckedTable]:
    """Check all tables, or those of `contracts`, one after the other; the rule results become rows.

    `again` ignores earlier proofs, `tell` takes a line about the coming work. An error from a damaged table becomes a
    finding, and the other tables are checked. Raises LakeError where the lake itself cannot be reached.
    """
    seen, unwritable = dict[str, integrity.Seen](), _unwritable(lake)
    with suppress(*prove.ANY_FAILURE):  # of a damaged table nothing is known; its own check says what is wrong with it
        seen |= integrity.seen_elsewhere(lake)
    there = [
        contract
        for contract in (all_contracts(lake) if contracts is None else contracts)
        if contract.table in seen or integrity.has_traces(lake, contract) or any(map(lake.find, contract.former_tables))
    ]
    proofs = read_proofs(lake)
    if again:  # the digests of files stay
        before: dict[str, Files] = {
            table: {path: replace(file, proved="", rows=0) for path, file in files.items()}
            for table, files in proofs.files.items()
        }
        proofs = Proofs(before)
    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        looked = list(
            threads.map(lambda each: _look(lake, each, seen.get(each.table, integrity.Seen()), proofs), there)
        )
        files, to_prove = sum(len(each.newest) for each in looked), [each.to_prove for each in looked]
        known = files - sum(map(len, to_prove))
        if there:
            tell(f"checking {len(there)} tables with {files} files, {known} of them proved before")
        check = _Check(lake, proofs, {each.contract.table: each for each in looked}, keep=not unwritable)
        try:
            yield from threads.map(check.contained, [each for each in looked if each.contract is not CONTRACT_CHECKS])
            unkept = unwritable or check.keep_results()
            own = CheckedTable(CONTRACT_CHECKS, ())
            if CONTRACT_CHECKS in there:  # last, because the results of all others are written there
                own = check.own_results(seen.get(CONTRACT_CHECKS.table, integrity.Seen()))
        finally:
            write_proofs(lake, proofs)
    if CONTRACT_CHECKS in there or (there and unkept):
        yield replace(own, unkept=[*unkept, *own.unkept])


def exit_code(checked: Sequence[CheckedTable], undeclared: Sequence[str] = ()) -> int:
    """Choose the exit code of a check; `undeclared` are the lake's tables that could not be checked.

    Returns:
        0 where nothing is wrong and every snapshot proved, 1 where something is wrong, 3 where nothing is wrong but
        some snapshots could not be recomputed, or tables checked. A rule that warns is said, and is no failure.
    """
    if any(table.findings for table in checked):
        return 1
    proofs = [proof for table in checked for proof in table.proofs]
    return 3 if undeclared or any(proof.outcome is prove.Outcome.NOT_RECOMPUTED for proof in proofs) else 0


def _unwritable(lake: Lake) -> list[str]:
    """Report once that the lake is not writable; no table is damaged by that."""
    try:
        require_write_access(lake)
    except LakeError as error:
        return [f"{_NOT_KEPT}: {error}"]
    return []


def _look(lake: Lake, contract: Contract, seen: integrity.Seen, proofs: Proofs) -> _Looked:
    """Look at the schema, the log and the files of a table."""
    try:
        if findings := _of_another_schema(lake, contract):
            return _Looked(contract, findings)
        inspected = integrity.inspect(lake, contract, seen)
        if inspected.damage:
            return _Looked(contract, inspected.damage)
        before = proofs.files.get(contract.table, {})
        files = integrity.stored_files(lake, contract, sorted({*chain(*inspected.files.values())}), before)
        return _Looked(contract, list(integrity.find_changed(contract, files, before)), inspected, files)
    except prove.ANY_FAILURE as error:
        return _Looked(contract, [_unreadable(contract, error)])


def _unreadable(contract: Contract, error: BaseException) -> integrity.Defect:
    said = str(error) if isinstance(error, LakeError) else f"{type(error).__name__}: {short_message(error)}"
    return integrity.Defect(contract.table, f"cannot be read: {said}", integrity.UNREADABLE)


class _Check:
    """The check of tables that were looked at."""

    def __init__(self, lake: Lake, proofs: Proofs, looked: Mapping[str, _Looked], *, keep: bool) -> None:
        self.lake, self.proofs, self.looked, self.keep = lake, proofs, looked, keep
        self.results: list[pl.DataFrame] = []  # rows of CONTRACT_CHECKS that are to be landed

    def contained(self, table: _Looked) -> CheckedTable:
        """Check one table; an error becomes a finding."""
        if table.findings:
            return CheckedTable(table.contract, table.findings)
        try:
            return self._check(table)
        except prove.ANY_FAILURE as error:
            return CheckedTable(table.contract, [_unreadable(table.contract, error)])

    def own_results(self, seen: integrity.Seen) -> CheckedTable:
        """Check the table that results are kept in, and prove the rows that this check has added to it.

        Where all its rows were proved before, no results are added: their rows would have to be proved next time.
        """
        checked = self.contained(_look(self.lake, CONTRACT_CHECKS, seen, self.proofs))
        if unkept := self.keep_results():
            return replace(checked, unkept=unkept)
        if not checked.findings and checked.files > checked.files_before:
            now = _look(self.lake, CONTRACT_CHECKS, seen, self.proofs)
            if not now.findings:
                held = prove.hold(self.lake, CONTRACT_CHECKS, now.to_prove)
                self.proofs.files[CONTRACT_CHECKS.table] = _proved(now, held)
        return checked

    def keep_results(self) -> list[str]:
        """Land the results of the rules in one commit; returns why that failed, where it did."""
        if not self.results:
            return []
        try:
            land(self.lake, CONTRACT_CHECKS, pl.concat(self.results))
        except prove.ANY_FAILURE as error:
            return [f"{_NOT_KEPT}: {short_message(error)}"]
        finally:
            self.results.clear()
        return []

    def _check(self, table: _Looked) -> CheckedTable:
        lake, contract, version = self.lake, table.contract, table.inspected.newest
        to_prove = table.to_prove
        held = prove.hold(lake, contract, to_prove) if to_prove else prove.Held()
        rows_before = sum(file.rows for path, file in table.newest.items() if path not in to_prove)
        results = _results(lake, contract, held, rows_before, version)
        findings = [*integrity.find_tampering(lake, contract), *_disagreeing_or_broken(contract, results)]
        if held.false_requests:
            problem = f"{held.false_requests} requests do not hash to their prompt hash"
            mend = "restore an earlier version of the table, or delete these rows and ask again"
            findings.append(integrity.Defect(CALLS.table, problem, mend))
        if self.keep and (to_prove or contract is not CONTRACT_CHECKS):
            self.results.extend(
                check_rows(contract, tuple(by_rule.values()), table_version=version, engine=engine)
                for engine, by_rule in results.items()
            )
        proofs = self._verify_snapshots() if contract is METRIC_SNAPSHOTS else []
        self.proofs.files[contract.table] = _proved(table, held)
        if contract is RUNS:
            findings += _lost_snapshots(lake)
        elif contract is SNAPSHOTS:
            findings += _false_ids(lake)
        findings += _wrong_snapshots(proofs)
        files = len(table.newest)
        return CheckedTable(contract, findings, proofs, results, files, files - len(to_prove))

    def _verify_snapshots(self) -> list[prove.Proof]:
        files = {
            (name, version): {path: table.files[path].digest for path in paths}
            for name, table in self.looked.items()
            if not table.findings
            for version, paths in table.inspected.files.items()
        }
        proofs = list(prove.verify_snapshots(self.lake, files, self.proofs.snapshots))
        self.proofs.snapshots = frozenset(
            proof.basis for proof in proofs if proof.outcome is prove.Outcome.PROVED and proof.basis
        )
        return proofs


def _proved(table: _Looked, held: prove.Held) -> Files:
    """Mark the files whose rows all keep their rules as proved."""
    proof = rules_and_engines(table.contract)
    proved = {
        path: replace(table.files[path], proved=proof, rows=held.rows[path])
        for path in table.to_prove
        if path not in held.broken
    }
    return {**table.files, **proved}


def _of_another_schema(lake: Lake, contract: Contract) -> list[integrity.Defect]:
    """Report a table of another evalake's schema, like one that an interrupted migration has not reached yet."""
    try:
        older = pending(lake, [contract])
    except NewerLakeError as error:
        return [integrity.Defect(contract.table, str(error), "update evalake")]
    except EvalakeError:
        return []  # it is damaged, and that is looked for next
    return [
        integrity.Defect(
            each.source,
            f"has schema version {each.from_version}, this evalake has {each.to_version} ({'; '.join(each.changes)})",
            TO_MIGRATE,
        )
        for each in older
    ]


def _results(lake: Lake, contract: Contract, held: prove.Held, rows_before: int, version: int) -> Engines:
    """Collect the result of every rule by engine: row rules by both, rules over the whole table by Polars alone."""
    checked = rows_before + held.rows.total()
    by_engine = {
        engine: {rule.id: result_of(rule, checked, counts[rule.id]) for rule in contract.rules}
        for engine, counts in held.failed.items()
    }
    columns = sorted({name for rule in contract.table_rules for name in rule.columns}) or contract.key
    whole = audit_table(lake.frame(contract, version).select(columns).collect(), contract)
    by_engine["polars"] |= {result.rule_id: result for result in whole}
    return by_engine


def _disagreeing_or_broken(contract: Contract, by_engine: Engines) -> Iterator[integrity.Defect]:
    mend = "restore an earlier version of the table, or delete these rows, and run or import again"
    later = f"restore an earlier version of the table, or delete the later rows of each {', '.join(contract.key)}"
    for rule_id in dict.fromkeys(rule_id for results in by_engine.values() for rule_id in results):
        given = {engine: results[rule_id] for engine, results in by_engine.items() if rule_id in results}
        broken = {engine: result for engine, result in given.items() if result.outcome == "broken"}
        if not broken:
            continue
        result = next(iter(broken.values()))
        problem = f"{result.message or 'a rule is broken'} ({rule_id})"
        if len(broken) < len(given):
            problem += f", says {', '.join(broken)} alone"
        yield integrity.Defect(contract.table, problem, later if rule_id == "key_unique" else mend)


def _lost_snapshots(lake: Lake) -> Iterator[integrity.Defect]:
    """Find runs that name a snapshot which is not there: it lands before its run names it."""
    measured = lake.frame(RUNS).filter(pl.col("snapshot_id").is_not_null()).select("run_id", "snapshot_id")
    lost = measured.join(lake.frame(SNAPSHOTS), on="snapshot_id", how="anti").sort("run_id").collect()
    for run_id, snapshot_id in lost.iter_rows():
        problem = f"run {run_id} has the snapshot {snapshot_id[:12]}, which the table snapshots has lost"
        yield integrity.Defect(RUNS.table, problem, "restore the table snapshots from a backup, or run or import again")


def _false_ids(lake: Lake) -> Iterator[integrity.Defect]:
    """Find snapshots whose id does not follow from their columns: one of these was changed afterwards."""
    for row in lake.frame(SNAPSHOTS).sort("created_at", "snapshot_id").collect().iter_rows(named=True):
        if not prove.has_true_id(row):
            problem = f"snapshot {row['snapshot_id'][:12]} was changed: its id does not follow from its columns"
            yield integrity.Defect(SNAPSHOTS.table, problem, "restore an earlier version of the table")


def _wrong_snapshots(proofs: Sequence[prove.Proof]) -> Iterator[integrity.Defect]:
    """Find snapshots whose values do not come out again; a false id is a finding of the table that has the id."""
    for proof in proofs:
        if proof.outcome is prove.Outcome.WRONG and not proof.false_id:
            mend = "restore an earlier version of the table, or delete the snapshot's rows and measure its run again"
            yield integrity.Defect(METRIC_SNAPSHOTS.table, f"snapshot {proof.name} {proof.reason}", mend)


# Data docs: the findings of a check as data for a page, and the place of that page.

ENGINES = {"great_expectations": "Great Expectations", "polars": "audit"}
_OF_A_RESULT = ("passed", "outcome", "rows_failed")


def leave_data_docs(lake: Lake, checked: Sequence[CheckedTable], reports: Path, undeclared: Sequence[str] = ()) -> Path:
    """Write the page of a lake's last check into the folder of reports, in place of the one before; returns its path.

    Raises UsageError where the folder cannot be written.
    """
    return write_data_docs(data_docs(lake, checked, undeclared), reports / f"check-{content_hash(lake.address)[:8]}")


def data_docs(lake: Lake, checked: Sequence[CheckedTable], undeclared: Sequence[str] = ()) -> dict[str, Any]:
    """Gather the findings of a check, table by table and rule by rule, and the tables that it could not check."""
    return {
        "lake": redact(lake.uri),
        "checked_at": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "findings": sum(len(table.findings) for table in checked),
        "warnings": sum(len(table.warnings) for table in checked),
        "unchecked": because_undeclared(undeclared) if undeclared else None,
        "engines": list(ENGINES.values()),
        "snapshots": Counter(str(proof.outcome) for table in checked for proof in table.proofs),
        "tables": [_table(table) for table in checked],
    }


def _table(table: CheckedTable) -> dict[str, Any]:
    results = [result for of_engine in table.results.values() for result in of_engine.values()]
    return {
        "table": table.contract.table,
        "purpose": table.contract.description,
        "rows": max((result.rows_checked for result in results), default=None),
        "state": table.state,
        "findings": [asdict(finding) for finding in table.findings],
        "warnings": table.warnings,
        "rules": list(_rules(table.contract, table.results)),
    }


def _rules(contract: Contract, results: Mapping[str, Mapping[str, RuleResult]]) -> Iterator[dict[str, Any]]:
    """Yield each rule that an engine has checked on the table, with its result in each engine."""
    for rule in contract.all_rules:
        by_engine = [results.get(engine, {}).get(rule.id) for engine in ENGINES]
        if any(by_engine):
            yield {
                "rule": rule.id,
                "demands": describe(rule),
                "severity": str(rule.severity),
                "dimension": str(rule.dimension),
                "results": [each and {name: getattr(each, name) for name in _OF_A_RESULT} for each in by_engine],
            }
