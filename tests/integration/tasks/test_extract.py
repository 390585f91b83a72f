"""Datasets as sources give them: what is refused, what was forgotten, and what lands."""

from dataclasses import replace
from pathlib import Path

import pytest

from evalake.contracts.tables import QUARANTINE, SAMPLES
from evalake.core.errors import EvalakeError, SourceError, SuiteError, UsageError
from evalake.sdk import Dataset, Skipped
from evalake.storage.lake import Lake
from evalake.suites.registry import suite
from evalake.tasks.extract import extract, read_datasets

GUARD = suite("command_guard")
STARTER = GUARD.data.read("starter")


def reading(*datasets: Dataset) -> object:
    """The suite, whose sources are named by number."""
    return replace(GUARD, data=replace(GUARD.data, read=lambda source: datasets[int(source)]))


def test_starter_data_are_read_without_a_source() -> None:
    assert [dataset.name for dataset in read_datasets(GUARD, [])] == [STARTER.name]
    with pytest.raises(UsageError, match="name a source with --dataset"):
        read_datasets(replace(GUARD, data=replace(GUARD.data, starter=())), [])


def test_an_empty_source_and_two_of_one_name_are_refused() -> None:
    with pytest.raises(SourceError, match="the dataset nothing is empty"):
        read_datasets(reading(Dataset("nothing", (), ())), ["0"])  # type: ignore[arg-type]
    with pytest.raises(SourceError, match=f"two sources are named {STARTER.name}"):
        read_datasets(reading(STARTER), ["0", "0"])  # type: ignore[arg-type]


def test_a_password_in_a_source_is_refused_and_a_fault_of_a_suites_code_is_its_own() -> None:
    with pytest.raises(UsageError) as refused:
        read_datasets(GUARD, ["postgresql://me:hidden@host/db"])
    assert "hidden" not in str(refused.value)
    with pytest.raises(SuiteError, match="the code of command_guard that reads '9' failed with IndexError"):
        read_datasets(reading(), ["9"])  # type: ignore[arg-type]


def test_samples_land_once_and_malformed_ones_are_put_aside(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    bad = Skipped("line 3", "no label", '{"command": "ls"}')
    dataset = Dataset(STARTER.name, STARTER.samples[:5], (bad, Skipped("line 9", "empty")))
    for _ in range(2):
        extracted = extract(lake, "run", [dataset])
        assert (extracted.quarantined, extracted.skipped) == (1, {"no label": 1, "empty": 1})
    assert lake.frame(SAMPLES).collect()["sample_id"].to_list() == [sample.sample_id for sample in dataset.samples]
    assert lake.frame(QUARANTINE).collect()["origin"].to_list() == ["line 3"]


def test_a_version_that_is_there_whole_is_not_written_again_and_one_that_lacks_samples_is(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    dataset = Dataset(STARTER.name, STARTER.samples[:5])
    extract(lake, "first", [dataset])
    before = lake.version(SAMPLES)
    extract(lake, "second", [dataset])
    assert lake.version(SAMPLES) == before
    lake.open(SAMPLES).delete("position = 3")
    extract(lake, "third", [dataset])
    assert sorted(lake.frame(SAMPLES).collect()["position"]) == [0, 1, 2, 3, 4]


def test_rows_of_the_lake_are_a_dataset_and_a_hostile_condition_reads_no_file(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    extract(lake, "run", [STARTER])
    where = "lake://samples?where=category='file-read'&limit=3&command=input"
    (read,) = read_datasets(GUARD, [where], lake)
    assert (read.name, {sample.category for sample in read.samples}) == ("samples", {"file-read"})
    assert len(read.samples) == 3
    (tmp_path / "secret.csv").write_text("input,label\nrm,malicious\n")
    hostile = (
        f"where=1=1) union all by name select * from read_csv('{tmp_path}/secret.csv') where (1=1",
        f"where=1=1); copy samples to '{tmp_path}/out.csv'; select (1",
        "where=input like (select",
        "limit=3; drop table samples",
    )
    for each in hostile:
        with pytest.raises(EvalakeError):
            read_datasets(GUARD, [f"lake://samples?{each}"], lake)
    with pytest.raises(SourceError, match="names no table"):
        read_datasets(GUARD, ["lake://a/../b"], lake)
    assert not (tmp_path / "out.csv").exists()
