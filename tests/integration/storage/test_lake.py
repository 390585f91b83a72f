"""A lake: its tables, its versions and its mending."""

import shutil
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable

from evalake.admin.import_results import import_recorded
from evalake.contracts.contract import Contract
from evalake.contracts.tables import CALLS, CORE_CONTRACTS, METRIC_SNAPSHOTS, SAMPLES
from evalake.core.errors import LakeError, SchemaMismatchError, UsageError
from evalake.storage import ledger
from evalake.storage.integrity import inspect
from evalake.storage.lake import Lake, constraints
from evalake.storage.landing import land
from evalake.storage.maintenance import maintain
from evalake.suites.command_guard.contract import RESULTS
from evalake.suites.registry import suite
from evalake.tasks.runtime.resources import ledger_writer
from tests.integration.admin.test_check import around, data_file, entry, found, newest, the_finding
from tests.integration.cli.command import recorded
from tests.integration.storage.recorded_lake import lake_of_one_run
from tests.integration.storage.rows import TOYS, call, key_of, toy
from tests.integration.storage.sql.engine import answered
from tests.integration.storage.test_landing import frame

# The lake: created from contracts, refused where it is foreign, read-only or absent.


@pytest.mark.parametrize("contract", CORE_CONTRACTS, ids=lambda contract: contract.table)
def test_every_table_is_readable_by_every_delta_engine(lake: Lake, contract: Contract) -> None:
    protocol = lake.ensure(contract).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version <= 4) == (1, True)
    assert not protocol.reader_features
    assert not protocol.writer_features


def test_a_table_has_the_constraints_and_partitions_of_its_contract(lake: Lake) -> None:
    table = lake.ensure(TOYS)
    assert "size_not_negative" in constraints(table)
    assert table.metadata().partition_columns == ["model"]
    # By them a table could be made with its constraints, but Spark takes no such metadata.
    assert not {"delta.minReaderVersion", "delta.minWriterVersion"} & table.metadata().configuration.keys()


def test_lakes_of_one_name_in_two_folders_are_two_and_stay_where_they_were_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lakes = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        lakes.append(Lake("lake"))
    one, other = lakes
    assert (one.uri, one == other, Lake(str(tmp_path / "other" / "lake")) == other) == ("lake", False, True)
    assert ledger_writer(one) is not ledger_writer(other)
    one.ensure(TOYS)
    assert (tmp_path / "one" / "lake" / "toys").is_dir()


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


def test_a_lake_that_cannot_be_written_is_named(tmp_path: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(LakeError, match=r"cannot read.*--lake"):
        Lake(str(tmp_path / "file")).ensure(TOYS)
    land(lake, TOYS, frame(toy("a")))
    logs = f"{lake.location(TOYS)}/_delta_log"
    monkeypatch.setattr("os.access", lambda path, mode: str(path) != logs)  # root may write everywhere
    with pytest.raises(LakeError, match=r"the table toys of the lake .* is not writable: ask its owner"):
        land(lake, TOYS, frame(toy("b")))
    assert lake.frame(TOYS).collect()["key"].to_list() == ["a"]


def test_a_version_that_does_not_exist_is_named(lake: Lake) -> None:
    lake.ensure(TOYS)
    with pytest.raises(LakeError, match="toys at version 99"):
        lake.frame(TOYS, version=99)


@pytest.mark.parametrize(
    "name", ["my lake", "é日", "a#b", "50%", "what?", "a&b+c", "'quoted' \"twice\"", "*", "{x}", "~"]
)
def test_a_lake_may_have_any_usual_name(tmp_path: Path, name: str) -> None:
    lake = Lake(str(tmp_path / name))
    land(lake, TOYS, frame(toy("a", model="some model/é")))
    land(lake, TOYS, frame(toy("b")))
    assert lake.frame(TOYS).collect()["key"].sort().to_list() == ["a", "b"]
    assert all(Path(file).is_file() for file in lake.open(TOYS).file_uris())
    ledger.append(lake, [call(1)])
    assert ledger.LedgerIndex.read(lake).fetch([key_of(call(1))])
    assert answered(lake, (TOYS,), "select count(*) as n from toys").item() == 2
    assert not inspect(lake, TOYS).damage
    assert [done.files_after for done in maintain(lake, [TOYS, CALLS])] == [2, 1]


@pytest.mark.parametrize("name", ["a[1]", "a=b", "a|b", "a^b", "a\\b", "a%20b", "a\nb"])
def test_a_name_that_the_engine_cannot_read_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(LakeError, match="engines misread"):
        Lake(str(tmp_path / name)).ensure(TOYS)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("sign", ["?", "#"])
def test_an_address_with_parameters_is_refused_for_all_tables_would_be_one(tmp_path: Path, sign: str) -> None:
    for uri in (f"file://{tmp_path}/lake{sign}region=x", f"s3://bucket/lake{sign}region=x"):
        with pytest.raises(UsageError, match="has parameters, which no store reads") as refused:
            Lake(uri).ensure(TOYS)
        assert "region" not in str(refused.value)
    assert not list(tmp_path.iterdir())
    assert Lake(str(tmp_path / f"lake{sign}x")).ensure(TOYS).version() >= 0  # in the name of a folder it is a letter


@pytest.mark.parametrize("blank", ["", " "])
def test_a_lake_without_a_name_is_not_the_root_folder(blank: str) -> None:
    with pytest.raises(UsageError, match="no name"):
        Lake(blank)


# What the check says to do mends what it found: afterwards it finds nothing.

CHECKED = (SAMPLES, RESULTS, METRIC_SNAPSHOTS)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lake_of_one_run(tmp_path_factory.mktemp("mending"), 8)


@pytest.fixture
def backup(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "backup"))


@pytest.fixture
def damaged(written: Path, tmp_path: Path) -> Lake:
    return Lake(str(shutil.copytree(written, tmp_path / "lake")))


@pytest.mark.parametrize("contract", [SAMPLES, RESULTS, METRIC_SNAPSHOTS])
def test_a_deleted_data_file_is_copied_back(damaged: Lake, backup: Path, contract: Contract) -> None:
    gone = data_file(damaged, contract)
    gone.unlink()
    assert "restore the files from a backup" in found(damaged, *CHECKED)[contract.table][0].mend
    shutil.copy2(backup / gone.relative_to(damaged.uri), gone)
    assert found(damaged, *CHECKED) == {}


@pytest.mark.parametrize("content", [b"", b"{"])
def test_a_cut_log_entry_is_copied_back(damaged: Lake, backup: Path, content: bytes) -> None:
    cut = entry(damaged, SAMPLES, 1)
    cut.write_bytes(content)
    assert "backup" in found(damaged, SAMPLES)[SAMPLES.table][0].mend
    shutil.copy2(backup / cut.relative_to(damaged.uri), cut)
    assert found(damaged, *CHECKED) == {}


def test_a_cut_newest_entry_is_deleted_and_what_it_held_imported_again(damaged: Lake, tmp_path: Path) -> None:
    rows = damaged.frame(SAMPLES).collect().height
    cut = entry(damaged, SAMPLES, newest(damaged, SAMPLES))
    cut.write_bytes(cut.read_bytes()[:-30])
    assert "delete this newest entry" in found(damaged, SAMPLES)[SAMPLES.table][0].mend
    cut.unlink()
    assert damaged.frame(SAMPLES).collect().height == 0
    (tmp_path / "results.jsonl").write_text("\n".join(recorded(n) for n in range(8)))
    import_recorded(damaged, suite("command_guard"), [tmp_path / "results.jsonl"])
    assert damaged.frame(SAMPLES).collect().height == rows
    assert found(damaged, *CHECKED) == {}


def test_a_duplicate_key_and_a_row_that_breaks_a_rule_go_with_an_earlier_version(damaged: Lake) -> None:
    good = newest(damaged, SAMPLES)
    row = damaged.frame(SAMPLES).head(1).collect()
    around(damaged, SAMPLES, row)
    assert "key_unique" in the_finding(damaged, SAMPLES).problem
    around(damaged, SAMPLES, row.with_columns(sample_id=pl.lit("x"), sample_hash=pl.lit("no hash")))
    assert all("restore an earlier version" in finding.mend for finding in found(damaged, SAMPLES)[SAMPLES.table])
    DeltaTable(damaged.location(SAMPLES)).restore(good)
    assert found(damaged, *CHECKED) == {}


def test_a_bad_row_can_be_deleted_alone(damaged: Lake) -> None:
    """As docs/backup.md shows it."""
    row = damaged.frame(SAMPLES).head(1).collect()
    around(damaged, SAMPLES, row.with_columns(sample_id=pl.lit("x"), sample_hash=pl.lit("no hash")))
    assert "delete these rows" in the_finding(damaged, SAMPLES).mend
    DeltaTable(damaged.location(SAMPLES)).delete("sample_id = 'x' AND sample_hash = 'no hash'")
    assert found(damaged, *CHECKED) == {}


def test_a_changed_metric_goes_with_an_earlier_version(damaged: Lake) -> None:
    good = newest(damaged, METRIC_SNAPSHOTS)
    DeltaTable(damaged.location(METRIC_SNAPSHOTS)).update(updates={"value": "0.123"}, predicate="metric = 'accuracy'")
    finding = the_finding(damaged, METRIC_SNAPSHOTS)
    assert "differs from its recomputation" in finding.problem
    assert "restore an earlier version" in finding.mend
    DeltaTable(damaged.location(METRIC_SNAPSHOTS)).restore(good)
    assert found(damaged, *CHECKED) == {}
