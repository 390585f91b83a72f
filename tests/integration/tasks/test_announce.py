"""What a run is over, in words, before it asks."""

from pathlib import Path

from evalake.request import RunRequest
from evalake.tasks.preflight import check, lines_of


def test_datasets_are_told_with_their_categories_and_models_with_their_items(tmp_path: Path) -> None:
    plan = check(RunRequest("command_guard", lake=str(tmp_path / "lake"), models=("baseline/always-block",), first=10))
    *datasets, last = lines_of(plan)
    assert [line.split(":")[0] for line in datasets] == [dataset.name for dataset in plan.datasets]
    assert datasets[0].split(": ")[1].startswith("10 samples (")
    assert last == "10 items, baseline/always-block"
