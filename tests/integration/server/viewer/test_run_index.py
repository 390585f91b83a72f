"""The index of a run is kept until a table that it follows from has moved."""

from pathlib import Path

from evalake.contracts.tables import RUNS
from evalake.server.viewer.run_index import RunIndexes
from tests.integration.storage.recorded_lake import MODELS, SAMPLES, recorded_lake

GUARD = "command_guard"


def test_it_holds_every_sample_and_answer_and_is_read_once(tmp_path: Path) -> None:
    lake = recorded_lake(tmp_path)
    run = lake.frame(RUNS).filter(suite=GUARD).sort("started_at").collect()["run_id"][-1]
    indexes = RunIndexes(lake)
    index = indexes.of(run)
    assert (index.samples.height, index.answers.height) == (SAMPLES, SAMPLES * len(MODELS))
    assert index.answers.filter(correct=False).height == 10
    assert indexes.of(run) is index
    lake.open(RUNS).delete("run_id = 'nobody'")  # another version, with the same rows
    assert indexes.of(run).answers.equals(index.answers)


def test_what_is_read_ahead_is_there_for_who_asks_next(tmp_path: Path) -> None:
    lake = recorded_lake(tmp_path)
    run = lake.frame(RUNS).filter(suite=GUARD).sort("started_at").collect()["run_id"][-1]
    indexes = RunIndexes(lake)
    indexes.read_ahead(run)
    index = indexes.of(run)
    assert index.samples.height == SAMPLES
    indexes.read_ahead(run)
    assert indexes.of(run) is index
