"""Data docs: the findings of a check as data for a page, and the place of that page."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalake.admin.check import CheckedTable
from evalake.contracts.audit import RuleResult
from evalake.contracts.contract import Contract
from evalake.contracts.engines.sql import describe
from evalake.core.hashing import content_hash
from evalake.core.redaction import redact
from evalake.reports.page import write_data_docs
from evalake.storage.lake import Lake

ENGINES = {"great_expectations": "Great Expectations", "polars": "audit"}


def leave_data_docs(lake: Lake, checked: Sequence[CheckedTable], reports: Path) -> Path:
    """Write the page of a lake's last check into the folder of reports, in place of the one before; returns its path.

    Raises UsageError where the folder cannot be written.
    """
    return write_data_docs(data_docs(lake, checked), reports / f"check-{content_hash(lake.address)[:8]}")


def data_docs(lake: Lake, checked: Sequence[CheckedTable]) -> dict[str, Any]:
    """Gather the findings of a check, table by table and rule by rule."""
    return {
        "lake": redact(lake.uri),
        "checked_at": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "findings": sum(len(table.findings) for table in checked),
        "warnings": sum(len(table.warnings) for table in checked),
        "engines": list(ENGINES.values()),
        "snapshots": Counter(str(proof.outcome) for table in checked for proof in table.proofs),
        "tables": [_table(table) for table in checked],
    }


def _table(table: CheckedTable) -> dict[str, Any]:
    rules = list(_rules(table.contract, table.results))
    results = [result for of_engine in table.results.values() for result in of_engine.values()]
    return {
        "table": table.contract.table,
        "purpose": table.contract.description,
        "rows": max((result.rows_checked for result in results), default=None),
        "state": table.state,
        "findings": [asdict(finding) for finding in table.findings],
        "warnings": table.warnings,
        "rules": rules,
    }


def _rules(contract: Contract, results: Mapping[str, Mapping[str, RuleResult]]) -> Iterator[dict[str, Any]]:
    """Yield each rule that an engine has checked on the table, with its result in each engine."""
    rules = contract.all_rules
    for rule in rules:
        by_engine = [results.get(engine, {}).get(rule.id) for engine in ENGINES]
        if any(by_engine):
            yield {
                "rule": rule.id,
                "demands": describe(rule),
                "severity": str(rule.severity),
                "dimension": str(rule.dimension),
                "results": [
                    result and {"passed": result.passed, "outcome": result.outcome, "rows_failed": result.rows_failed}
                    for result in by_engine
                ],
            }
