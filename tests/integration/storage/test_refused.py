"""Rows in quarantine are read back as rows; lines that never were any are left out."""

import json
from pathlib import Path

from evalake.storage.forget import refused_rows
from evalake.storage.lake import Lake
from evalake.suites.registry import suite
from evalake.tasks.publish import Refused, quarantine


def test_only_rows_of_the_run_and_its_tables_are_read_back(tmp_path: Path) -> None:
    lake, contract = Lake(str(tmp_path / "lake")), suite("solidity_audit").results
    row = {"sample_hash": "a" * 64, "judge": "j"}
    assert list(refused_rows(lake, "run", [contract])) == []
    payloads = [json.dumps(row), "no JSON", "[1]", "null", json.dumps({"suite": "solidity_audit"})]
    quarantine(lake, "run", "batch", [Refused(contract.table, payload, ("rule",), "why") for payload in payloads])
    quarantine(lake, "run", "other", [Refused("samples", json.dumps(row), ("rule",), "why")])
    quarantine(lake, "another", "third", [Refused(contract.table, json.dumps(row), ("rule",), "why")])
    assert list(refused_rows(lake, "run", [contract])) == [row]
