"""Samples of a suite that imports them: one run without items, named by its content."""

from pathlib import Path

from evalake.admin.import_results import import_samples
from evalake.contracts.tables import RUNS, SAMPLES
from evalake.storage.lake import Lake
from evalake.suites.registry import suite


def test_the_same_sources_are_the_same_run(tmp_path: Path) -> None:
    lake, chosen = Lake(str(tmp_path / "lake")), suite("session_review")
    first, again = (import_samples(lake, chosen, chosen.data.starter) for _ in range(2))
    assert first == again
    (run,) = lake.frame(RUNS).collect().to_dicts()
    samples = lake.frame(SAMPLES).collect()
    assert (run["state"], run["items"], run["models"]) == ("completed", 0, [])
    assert run["samples"] == samples.height > 0
