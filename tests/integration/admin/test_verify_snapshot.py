"""Verifying a snapshot: a falsified value is found, rounding is not, and what was not recomputed is never proved."""

import shutil
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable

from evalake.admin.prove import Outcome, differing_values, verify_snapshots
from evalake.contracts.tables import METRIC_SNAPSHOTS, SNAPSHOTS
from evalake.storage.lake import Lake
from evalake.suites.command_guard.contract import RESULTS
from tests.integration.storage.recorded_lake import lake_of_one_run


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with one imported run and its snapshot."""
    return lake_of_one_run(tmp_path_factory.mktemp("healthy"), 12)


@pytest.fixture
def lake(healthy: Path, tmp_path: Path) -> Lake:
    return Lake(str(shutil.copytree(healthy, tmp_path / "lake")))


def set_value(lake: Lake, value: str) -> None:
    """Falsify one value as somebody with the files would; `value` is SQL."""
    metrics = lake.frame(METRIC_SNAPSHOTS).filter(pl.col("slice") == "all", pl.col("value") > 0).collect()
    predicate = f"metric = '{metrics['metric'][0]}' AND slice = 'all'"
    DeltaTable(lake.location(METRIC_SNAPSHOTS)).update(updates={"value": value}, predicate=predicate)


def outcome(lake: Lake) -> Outcome:
    (proof,) = verify_snapshots(lake)
    return proof.outcome


@pytest.mark.parametrize("value", ["value + 0.001", "value * (1 + 3e-9) + 3e-9", "NULL", "0"])
def test_one_falsified_value_is_found(lake: Lake, value: str) -> None:
    set_value(lake, value)
    (proof,) = verify_snapshots(lake)
    assert (proof.outcome, proof.exit_code) == (Outcome.WRONG, 1)
    assert "in 1 values" in proof.reason


def test_a_value_that_another_machine_rounds_otherwise_is_proved(lake: Lake) -> None:
    before = lake.frame(METRIC_SNAPSHOTS).collect()
    set_value(lake, "value * (1 + 4e-16) + 1e-13")
    assert not lake.frame(METRIC_SNAPSHOTS).collect().equals(before)  # it did change
    assert outcome(lake) is Outcome.PROVED


@pytest.mark.parametrize("predicate", ["slice = 'all'", "true"])
def test_lost_rows_are_found(lake: Lake, predicate: str) -> None:
    DeltaTable(lake.location(METRIC_SNAPSHOTS)).delete(predicate)
    assert outcome(lake) is Outcome.WRONG


def test_a_changed_count_word_or_key_is_found(lake: Lake) -> None:
    kept = lake.frame(METRIC_SNAPSHOTS).collect()
    for change in (pl.col("n") + 1, ~pl.col("reliable"), pl.lit("0" * 64).alias("row_key"), pl.lit("x").alias("judge")):
        assert differing_values(kept.head(1).with_columns(change), kept.head(1))
    assert not differing_values(kept, kept)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_what_is_no_number_is_never_close_to_one(lake: Lake, value: float | None) -> None:
    kept = lake.frame(METRIC_SNAPSHOTS).filter(pl.col("value") > 0).head(1).collect()
    falsified = kept.with_columns(pl.lit(value, pl.Float64).alias("value"))
    assert differing_values(falsified, kept)
    assert differing_values(kept, falsified)


def test_a_snapshot_whose_definition_was_falsified_is_wrong_not_merely_of_another_version(lake: Lake) -> None:
    DeltaTable(lake.location(SNAPSHOTS)).update(updates={"definition_hash": f"'{'0' * 64}'"})
    assert outcome(lake) is Outcome.WRONG


def test_a_snapshot_of_another_engine_is_not_recomputed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalake.metrics.compute.ENGINE_VERSION", -1)
    assert outcome(lake) is Outcome.NOT_RECOMPUTED


def test_a_snapshot_whose_pinned_version_is_gone_is_not_recomputed_and_says_which(lake: Lake) -> None:
    shutil.rmtree(Path(lake.location(RESULTS)) / "_delta_log")
    (proof,) = verify_snapshots(lake)
    assert proof.outcome is Outcome.NOT_RECOMPUTED
    assert RESULTS.table in proof.reason
