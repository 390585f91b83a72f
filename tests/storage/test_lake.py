"""The lake: created from contracts, refused where it is foreign, read-only or absent."""

from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable

from contracts.contract import Contract
from contracts.errors import LakeError, SchemaMismatchError
from contracts.tables import CORE_CONTRACTS
from storage.lake import Lake, constraints
from suites.registry import all_contracts
from tests.storage.rows import TOYS


@pytest.mark.parametrize("contract", CORE_CONTRACTS, ids=lambda contract: contract.table)
def test_every_table_is_readable_by_every_delta_engine(lake: Lake, contract: Contract) -> None:
    protocol = lake.ensure(contract).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version <= 4) == (1, True)
    assert not protocol.reader_features
    assert not protocol.writer_features


def test_a_table_has_the_constraints_of_its_contract(lake: Lake) -> None:
    assert "size_not_negative" in constraints(lake.ensure(TOYS))


def test_ensuring_twice_changes_nothing(lake: Lake) -> None:
    version = lake.ensure(TOYS).version()
    assert lake.ensure(TOYS).version() == version


def test_a_table_that_does_not_exist_reads_as_empty_and_opens_as_an_error(lake: Lake) -> None:
    assert lake.frame(TOYS).collect().is_empty()
    assert lake.frame(TOYS).collect_schema().names() == ["key", "model", "state", "size"]
    assert lake.version(TOYS) is None
    with pytest.raises(LakeError, match="no table toys"):
        lake.open(TOYS)


def test_a_foreign_table_of_the_same_name_is_refused(lake: Lake) -> None:
    pl.DataFrame({"key": ["a"], "colour": ["red"]}).write_delta(lake.location(TOYS))
    with pytest.raises(SchemaMismatchError, match=r"toys.*colour"):
        lake.ensure(TOYS)


def test_a_lake_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(LakeError, match=r"not writable.*--lake"):
        Lake(str(tmp_path / "file")).ensure(TOYS)


def test_a_version_that_does_not_exist_is_named(lake: Lake) -> None:
    lake.ensure(TOYS)
    with pytest.raises(LakeError, match="toys at version 99"):
        lake.open(TOYS, version=99)


def test_partition_columns_are_those_of_the_contract(lake: Lake) -> None:
    lake.ensure(TOYS)
    assert DeltaTable(lake.location(TOYS)).metadata().partition_columns == ["model"]


def test_all_suites_tables_can_be_created(lake: Lake) -> None:
    for contract in all_contracts():
        assert lake.ensure(contract).schema().to_arrow().names == [column.name for column in contract.columns]
