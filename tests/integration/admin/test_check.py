"""Checks of a lake: damage is named with its table, and snapshots are proved again."""

import errno
import shutil
from itertools import count
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake

from evalake.admin.check import check_lake, exit_code
from evalake.admin.maintain import maintain as maintain_lake
from evalake.admin.prove import Outcome, count_outcomes, differing_values, reasons, verify_snapshots
from evalake.contracts.contract import Contract
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS, CONTRACT_CHECKS, METRIC_SNAPSHOTS, RUN_ITEMS, RUNS, SAMPLES, SNAPSHOTS
from evalake.core.configuration import Configuration, Retention
from evalake.core.errors import LakeError
from evalake.storage.integrity import Defect
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.maintenance import maintain
from evalake.storage.migrations import migrate, pending
from evalake.suites.command_guard.contract import RESULTS
from evalake.tasks.calibrate import calibrate
from evalake.tasks.rescore import rescore
from evalake.tasks.runtime.context import RunContext
from tests.integration.storage.foreign_snapshot import foreign_snapshot
from tests.integration.storage.recorded_lake import lake_of_one_run
from tests.integration.storage.rows import call
from tests.integration.storage.test_migrations import FIRST, LONG, killed
from tests.integration.storage.test_migrations import rows as rows_of

# The check of a lake: a healthy one passes, every kind of damage is named with its table, and none stops the check.


def found(lake: Lake, *contracts: Contract) -> dict[str, list[Defect]]:
    """What the check finds in these tables, by table; tables that are well are left out."""
    checked = check_lake(lake, contracts or None)
    return {table.contract.table: list(table.findings) for table in checked if table.findings}


def the_finding(lake: Lake, contract: Contract) -> Defect:
    """The one finding there is about this table, which says how to mend it."""
    ((table, (finding,)),) = found(lake, contract).items()
    assert finding.table == table == contract.table
    assert finding.mend
    return finding


def entry(lake: Lake, contract: Contract, version: int) -> Path:
    return Path(lake.location(contract)) / "_delta_log" / f"{version:020}.json"


def newest(lake: Lake, contract: Contract) -> int:
    version = lake.version(contract)
    assert version is not None
    return version


def data_file(lake: Lake, contract: Contract) -> Path:
    return Path(sorted(lake.open(contract).file_uris())[0])


def around(lake: Lake, contract: Contract, rows: pl.DataFrame) -> None:
    """Append rows as somebody else's program would."""
    write_deltalake(lake.location(contract), rows.to_arrow(), mode="append")


def test_a_healthy_lake_passes_again_and_again(lake: Lake) -> None:
    checked = [table.contract.table for table in check_lake(lake) if not table.findings]
    assert {"samples", "calls", "runs", "run_items", "metric_snapshots", "snapshots"} <= set(checked)
    maintain(lake, [RUNS, CALLS, RESULTS, CONTRACT_CHECKS], retention_hours=0)
    assert found(lake, RUNS, CALLS, RESULTS, CONTRACT_CHECKS, METRIC_SNAPSHOTS) == {}


@pytest.mark.parametrize("contract", [CALLS, RESULTS, CONTRACT_CHECKS])
def test_a_deleted_data_file_is_found(lake: Lake, contract: Contract) -> None:
    gone = data_file(lake, contract)
    gone.unlink()
    findings = found(lake, contract)[contract.table]
    assert gone.name in findings[0].problem
    assert "backup" in findings[0].mend


def test_a_data_file_that_only_a_pinned_version_needs_is_missed(lake: Lake) -> None:
    pinned = data_file(lake, RESULTS)
    lake.open(RESULTS).optimize.compact()
    assert pinned != data_file(lake, RESULTS)
    pinned.unlink()
    assert pinned.name in found(lake, RESULTS)[RESULTS.table][0].problem


def test_a_truncated_data_file_is_found(lake: Lake) -> None:
    cut = data_file(lake, RESULTS)
    cut.write_bytes(cut.read_bytes()[:500])
    results, values = check_lake(lake, [RESULTS, METRIC_SNAPSHOTS])
    assert cut.name in results.findings[0].problem
    assert "not recomputed" in [proof.outcome for proof in values.proofs]  # and what cannot be proved because of it


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_missing_log_entry_is_found(lake: Lake, checkpoint: bool) -> None:
    if checkpoint:
        lake.open(RESULTS).create_checkpoint()
    entry(lake, RESULTS, 2).unlink()
    assert entry(lake, RESULTS, 2).name in the_finding(lake, RESULTS).problem


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b"[" * 100_000])
@pytest.mark.parametrize("place", ["middle", "last"])
def test_a_truncated_log_entry_is_found(lake: Lake, content: bytes, place: str) -> None:
    version = 2 if place == "middle" else newest(lake, RUNS)
    entry(lake, RUNS, version).write_bytes(content)
    finding = the_finding(lake, RUNS)
    assert entry(lake, RUNS, version).name in finding.problem
    assert ("delete this newest entry" in finding.mend) == (place == "last")


@pytest.mark.parametrize("contract", [RESULTS, RUN_ITEMS])
def test_a_missing_last_log_entry_is_found_by_the_snapshot_that_read_it(lake: Lake, contract: Contract) -> None:
    version = newest(lake, contract)
    entry(lake, contract, version).unlink()
    assert f"version {version}" in found(lake, contract)[contract.table][0].problem


@pytest.mark.parametrize("contract", [SAMPLES, RUNS, CALLS, METRIC_SNAPSHOTS])
def test_a_missing_last_log_entry_is_found_by_an_earlier_check(lake: Lake, contract: Contract) -> None:
    assert found(lake, contract) == {}
    entry(lake, contract, newest(lake, contract)).unlink()
    assert "log entries are gone" in found(lake, contract)[contract.table][0].problem


def test_a_run_whose_snapshot_was_lost_is_found(lake: Lake) -> None:
    entry(lake, SNAPSHOTS, newest(lake, SNAPSHOTS)).unlink()
    assert "snapshot" in the_finding(lake, RUNS).problem


def test_a_table_that_lost_its_log_or_is_gone_is_found(lake: Lake) -> None:
    file = data_file(lake, RUN_ITEMS)
    file.write_bytes(b"\0" * file.stat().st_size)  # of the right size
    shutil.rmtree(entry(lake, SAMPLES, 0).parent)
    shutil.rmtree(lake.location(RESULTS))
    shutil.rmtree(lake.location(METRIC_SNAPSHOTS))
    findings = found(lake, SAMPLES, RESULTS, METRIC_SNAPSHOTS, RUN_ITEMS)
    assert "cannot be read" in findings[RUN_ITEMS.table][0].problem
    assert findings[METRIC_SNAPSHOTS.table][0].problem == "is gone"
    assert findings[SAMPLES.table][0].problem == "has lost its log"
    assert findings[RESULTS.table][0].problem == "is gone"


def test_bad_rows_are_counted_over_all_of_a_table(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("x", "y"):
        row = lake.frame(SAMPLES).head(1).collect()
        around(lake, SAMPLES, row.with_columns(sample_id=pl.lit(name), sample_hash=pl.lit("no hash")))
    monkeypatch.setattr("evalake.admin.prove.CHUNK_ROWS", 1)
    assert "2 of 14 rows" in the_finding(lake, SAMPLES).problem


def test_a_row_that_breaks_a_constraint_and_the_constraint_taken_away_for_it_are_found(lake: Lake) -> None:
    lake.open(SAMPLES).alter.drop_constraint("position_not_negative")
    row = lake.frame(SAMPLES).head(1).collect()
    around(lake, SAMPLES, row.with_columns(sample_id=pl.lit("x"), position=pl.lit(-1, pl.Int64)))
    missing, broken = found(lake, SAMPLES)[SAMPLES.table]
    assert "lacks the constraints position_not_negative" in missing.problem
    assert "position_not_negative" in broken.problem


def test_missing_constraints_are_found_and_the_named_mend_mends_them(lake: Lake) -> None:
    lake.open(RESULTS).alter.drop_constraint("replicate_not_negative")
    finding = the_finding(lake, RESULTS)
    assert "replicate_not_negative" in finding.problem
    assert "evalake maintain" in finding.mend
    maintain(lake, [RESULTS])
    assert found(lake, RESULTS) == {}


def test_a_changed_result_makes_no_snapshot_wrong_but_a_changed_snapshot_is_found(lake: Lake) -> None:
    DeltaTable(lake.location(RESULTS)).update(updates={"latency_ms": "1.0"})
    assert found(lake, METRIC_SNAPSHOTS) == {}  # snapshots read the versions they pin
    DeltaTable(lake.location(SNAPSHOTS)).update(updates={"seed": "seed + 1"})
    assert "its id does not follow" in found(lake, SNAPSHOTS)[SNAPSHOTS.table][0].problem


def test_replies_put_into_the_ledger_around_it_are_found(lake: Lake) -> None:
    row = conform([{**call(1), "ledger_version": 999}], CALLS)
    around(lake, CALLS, pl.concat([row, row]))
    problems = [finding.problem for finding in found(lake, CALLS)[CALLS.table]]
    assert any("twice in one commit" in problem for problem in problems)
    assert any("beyond the end of the log" in problem for problem in problems), problems


def test_damage_of_several_tables_is_found_in_one_check(lake: Lake) -> None:
    """Among them the tables that the check itself reads and writes."""
    data_file(lake, SAMPLES).unlink()
    entry(lake, CALLS, 3).write_text("{")
    entry(lake, SNAPSHOTS, 1).unlink()
    entry(lake, CONTRACT_CHECKS, 1).write_text("")
    checked = {table.contract.table: table.findings for table in check_lake(lake)}
    damaged = {table for table, findings in checked.items() if findings}
    assert damaged >= {"samples", "calls", "snapshots", "contract_checks"}
    assert RESULTS.table in checked
    assert all(finding.mend for findings in checked.values() for finding in findings)


def test_a_snapshot_that_could_not_be_recomputed_is_counted_with_its_reason_and_is_not_wrong(lake: Lake) -> None:
    assert exit_code(list(check_lake(lake, [METRIC_SNAPSHOTS]))) == 0
    foreign = foreign_snapshot(lake)
    (checked,) = check_lake(lake, [METRIC_SNAPSHOTS])
    assert (exit_code([checked]), checked.findings) == (3, [])
    assert count_outcomes(checked.proofs) == "snapshots: 2 proved, 0 wrong, 1 not recomputed"
    ((reason, names),) = reasons(checked.proofs).items()
    assert names == [foreign[:12]]
    assert "other versions of command_guard's metrics" in reason
    data_file(lake, SAMPLES).unlink()
    assert exit_code(list(check_lake(lake, [SAMPLES, METRIC_SNAPSHOTS]))) == 1  # what is wrong goes first


def test_a_lake_that_nobody_may_write_to_is_checked_whole_and_that_is_said_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    before = newest(lake, CONTRACT_CHECKS)
    monkeypatch.setattr("evalake.storage.objects.TemporaryFile", refuse)
    checked = list(check_lake(lake))
    ((contract, warning),) = [(table.contract, each) for table in checked for each in table.warnings]
    assert (contract, exit_code(checked)) == (CONTRACT_CHECKS, 0)
    assert warning.startswith("the results of this check are not kept: the lake")
    assert "is not writable (Read-only file system)" in warning
    assert newest(lake, CONTRACT_CHECKS) == before
    run_id = lake.frame(RUNS).collect()["run_id"][0]
    asking = RunContext("new", "solidity_audit", lake, Configuration())
    for write in (
        lambda: maintain_lake(lake, Retention()),
        lambda: rescore(lake, run_id, Configuration()),
        lambda: calibrate(asking, "baseline/overlap-judge"),
    ):
        with pytest.raises(LakeError, match=r"^the lake .* is not writable"):
            write()
    assert lake.frame(CALLS).filter(run_id="new").collect().is_empty()


def test_a_lake_that_is_half_migrated_is_found_and_the_named_mend_mends_it(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    land(lake, FIRST, rows_of(FIRST, ("a", 1)))
    for number in count(1):
        if not killed(lake, LONG, number, after=True):
            break
        if pending(lake, [LONG]):
            finding = the_finding(lake, LONG)
            assert "schema version" in finding.problem
            assert "evalake maintain --migrate" in finding.mend
    assert number > 2
    migrate(lake, [LONG])
    assert found(lake, LONG) == {}


# Verifying a snapshot: a falsified value is found, rounding is not, and what was not recomputed is never proved.


@pytest.fixture(scope="module")
def one_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with one imported run and its snapshot."""
    return lake_of_one_run(tmp_path_factory.mktemp("one_run"), 12)


@pytest.fixture
def copied(one_run: Path, tmp_path: Path) -> Lake:
    return Lake(str(shutil.copytree(one_run, tmp_path / "lake")))


def set_value(lake: Lake, value: str) -> None:
    """Falsify one value as somebody with the files would; `value` is SQL."""
    metrics = lake.frame(METRIC_SNAPSHOTS).filter(pl.col("slice") == "all", pl.col("value") > 0).collect()
    predicate = f"metric = '{metrics['metric'][0]}' AND slice = 'all'"
    DeltaTable(lake.location(METRIC_SNAPSHOTS)).update(updates={"value": value}, predicate=predicate)


def outcome(lake: Lake) -> Outcome:
    (proof,) = verify_snapshots(lake)
    return proof.outcome


@pytest.mark.parametrize("value", ["value + 0.001", "value * (1 + 3e-9) + 3e-9", "NULL", "0"])
def test_one_falsified_value_is_found(copied: Lake, value: str) -> None:
    set_value(copied, value)
    (proof,) = verify_snapshots(copied)
    assert (proof.outcome, proof.exit_code) == (Outcome.WRONG, 1)
    assert "in 1 values" in proof.reason


def test_a_value_that_another_machine_rounds_otherwise_is_proved(copied: Lake) -> None:
    before = copied.frame(METRIC_SNAPSHOTS).collect()
    set_value(copied, "value * (1 + 4e-16) + 1e-13")
    assert not copied.frame(METRIC_SNAPSHOTS).collect().equals(before)  # it did change
    assert outcome(copied) is Outcome.PROVED


@pytest.mark.parametrize("predicate", ["slice = 'all'", "true"])
def test_lost_rows_are_found(copied: Lake, predicate: str) -> None:
    DeltaTable(copied.location(METRIC_SNAPSHOTS)).delete(predicate)
    assert outcome(copied) is Outcome.WRONG


def test_a_changed_count_word_or_key_is_found_and_what_is_no_number_is_close_to_none(copied: Lake) -> None:
    kept = copied.frame(METRIC_SNAPSHOTS).filter(pl.col("value") > 0).head(1).collect()
    assert not differing_values(kept, kept)
    values = [pl.lit(value, pl.Float64).alias("value") for value in (float("nan"), float("inf"), None)]
    others = (pl.col("n") + 1, ~pl.col("reliable"), pl.lit("0" * 64).alias("row_key"), pl.lit("x").alias("judge"))
    for change in (*values, *others):
        falsified = kept.with_columns(change)
        assert differing_values(falsified, kept)
        assert differing_values(kept, falsified)


def test_a_snapshot_whose_definition_was_falsified_is_wrong_not_merely_of_another_version(copied: Lake) -> None:
    DeltaTable(copied.location(SNAPSHOTS)).update(updates={"definition_hash": f"'{'0' * 64}'"})
    assert outcome(copied) is Outcome.WRONG


def test_a_snapshot_of_another_engine_is_not_recomputed(copied: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalake.metrics.compute.ENGINE_VERSION", -1)
    assert outcome(copied) is Outcome.NOT_RECOMPUTED


def test_a_snapshot_whose_pinned_version_is_gone_is_not_recomputed_and_says_which(copied: Lake) -> None:
    shutil.rmtree(Path(copied.location(RESULTS)) / "_delta_log")
    (proof,) = verify_snapshots(copied)
    assert proof.outcome is Outcome.NOT_RECOMPUTED
    assert RESULTS.table in proof.reason
