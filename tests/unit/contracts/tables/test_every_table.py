"""The tables say what they are, completely and without contradiction."""

import pickle
from typing import get_args

import pytest

from evalake.contracts.contract import Contract
from evalake.suites.registry import all_contracts


@pytest.mark.parametrize("contract", all_contracts(), ids=lambda contract: contract.table)
def test_every_table_and_column_is_described(contract: Contract) -> None:
    assert contract.description.endswith(".")
    assert contract.row.__doc__
    for column in contract.columns:
        assert len(column.description) > 4, column.name


@pytest.mark.parametrize("contract", all_contracts(), ids=lambda contract: contract.table)
def test_keys_and_partitions_are_columns(contract: Contract) -> None:
    assert contract.key
    for name in contract.key:
        assert not contract.column[name].nullable
        assert contract.column[name].base in (str, int)
    assert set(contract.partition_by) <= contract.column.keys()


@pytest.mark.parametrize("contract", all_contracts(), ids=lambda contract: contract.table)
def test_columns_hold_only_what_every_engine_can_read(contract: Contract) -> None:
    for column in contract.columns:
        elements = get_args(column.type) if column.base is list else (column.base,)
        assert {element.__name__ for element in elements} <= {"str", "int", "float", "bool", "datetime"}, column.name


def test_tables_have_names_of_their_own() -> None:
    names = [contract.table for contract in all_contracts()]
    assert len(set(names)) == len(names)
    assert {"samples", "calls", "call_failures", "run_items", "runs"} <= set(names)
    assert {"metric_snapshots", "snapshots", "contract_checks", "quarantine"} <= set(names)


def test_only_the_ledger_may_repeat_a_key() -> None:
    assert [contract.table for contract in all_contracts() if contract.append_only] == ["calls"]
    for contract in all_contracts():
        unique = [rule.parameters["columns"] for rule in contract.table_rules if rule.id == "key_unique"]
        assert unique == ([] if contract.append_only else [contract.key])


@pytest.mark.parametrize("contract", all_contracts(), ids=lambda contract: contract.table)
def test_a_pickled_contract_is_whole_without_its_row_model(contract: Contract) -> None:
    written = pickle.dumps(contract)
    assert contract.row.__name__.encode() in written
    assert not contract.table.startswith("command_guard") or b"suites.command_guard" not in written
    read = pickle.loads(written)
    assert read.columns == contract.columns
    assert (read.rules, read.key, read.schema_version) == (contract.rules, contract.key, contract.schema_version)
