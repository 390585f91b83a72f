"""Exported contracts follow the standard, and change only on purpose.

Where a change is on purpose, write the golden files again with `python -m tests.unit.contracts.engines.test_odcs`, and
read the diff.
"""

import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest
import yaml
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from open_data_contract_standard.model import OpenDataContractStandard, SchemaObject

from evalake.contracts.audit import audit_table, keeps
from evalake.contracts.contract import Contract
from evalake.contracts.engines.arrow import conform
from evalake.contracts.engines.odcs import odcs_yaml
from evalake.contracts.tables import CORE_CONTRACTS
from evalake.suites.registry import all_contracts
from tests.unit.contracts.examples import EXAMPLE, edge_frame, row

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).parents[3] / "golden" / "odcs"
ALL = (EXAMPLE, *all_contracts())
STANDARD = json.loads(
    resources.files("open_data_contract_standard").joinpath("schema.json").read_text(encoding="utf-8")
)


def parsed(contract: Contract) -> SchemaObject:
    tables = OpenDataContractStandard.from_string(odcs_yaml(contract)).schema_
    assert tables is not None
    (table,) = tables
    return table


def checks(contract: Contract) -> dict[str, Any]:
    table = parsed(contract)
    found = [*(table.quality or []), *(check for each in table.properties or [] for check in each.quality or [])]
    return {check.name or "": check for check in found}


KEPT = [contract for contract in all_contracts() if (GOLDEN / f"{contract.table}.yaml").exists()]


@pytest.mark.parametrize("contract", KEPT, ids=lambda contract: contract.table)
def test_the_document_is_the_golden_one(contract: Contract) -> None:
    golden = (GOLDEN / f"{contract.table}.yaml").read_text(encoding="utf-8")
    assert odcs_yaml(contract) == golden
    ours = OpenDataContractStandard.from_string(odcs_yaml(contract))
    assert ours == OpenDataContractStandard.from_string(golden)


def test_there_is_a_golden_file_for_every_shared_table_and_none_without_a_table() -> None:
    golden = {path.stem for path in GOLDEN.glob("*.yaml")}
    assert {contract.table for contract in CORE_CONTRACTS} <= golden
    assert golden == {contract.table for contract in KEPT}


@pytest.mark.parametrize("contract", ALL, ids=lambda contract: contract.table)
def test_the_document_follows_the_standard(contract: Contract) -> None:
    validator = jsonschema.validators.validator_for(STANDARD)(STANDARD)
    assert list(validator.iter_errors(yaml.safe_load(odcs_yaml(contract)))) == []


@pytest.mark.parametrize("contract", ALL, ids=lambda contract: contract.table)
def test_columns_keys_and_rules_are_all_there(contract: Contract) -> None:
    properties = parsed(contract).properties or []
    assert [each.name for each in properties] == [column.name for column in contract.columns]
    assert [each.required for each in properties] == [not column.nullable for column in contract.columns]
    assert [each.description for each in properties] == [column.description for column in contract.columns]
    positions = {each.primaryKeyPosition: each.name for each in properties if each.primaryKey}
    assert positions == dict(enumerate(contract.key, start=1))
    assert checks(contract).keys() == {rule.id for rule in contract.all_rules}


def test_an_enumeration_holds_words_of_any_characters() -> None:
    by_name = {each.name: each for each in parsed(EXAMPLE).properties or []}
    assert [each.value for each in by_name["state"].enum or []] == ["done", "failed", "it's", 'say "x"', "two\nlines"]


def test_a_number_of_rows_has_both_its_bounds() -> None:
    assert checks(EXAMPLE)["rows"].mustBeBetween == [1, 1000]


def test_the_queries_count_what_the_masks_refuse(tmp_path: Path) -> None:
    blamed = [row(name=f"{n}", word="yes", state="failed", reason="r", number=float(n)) for n in range(3)]
    frame = pl.concat([edge_frame(), conform(blamed, EXAMPLE)])
    write_deltalake(str(tmp_path), frame.to_arrow())
    engine = QueryBuilder().register("example", DeltaTable(str(tmp_path)))
    queries = {name: check.query for name, check in checks(EXAMPLE).items() if check.type == "sql"}
    counted = {name: pl.DataFrame(engine.execute(query).read_all()).item() for name, query in queries.items()}
    broken = frame.select((~keeps(rule, EXAMPLE)).sum().alias(rule.id) for rule in EXAMPLE.rules if rule.id in queries)
    groups_with_too_many = 1
    assert not next(result for result in audit_table(frame, EXAMPLE) if result.rule_id == "failed_share").passed
    assert counted == {**broken.row(0, named=True), "failed_share": groups_with_too_many}


if __name__ == "__main__":
    for written in all_contracts():
        (GOLDEN / f"{written.table}.yaml").write_text(odcs_yaml(written), encoding="utf-8")
