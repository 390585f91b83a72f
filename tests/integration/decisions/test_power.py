"""Planning from a lake: what it assumes is said, and what the lake does not know is refused or null."""

from pathlib import Path

import pytest

from evalake.admin.import_results import import_recorded
from evalake.core.errors import UsageError
from evalake.decisions.power import UnknownVarianceError, plan
from evalake.storage.lake import Lake
from evalake.suites.registry import suite
from tests.integration.cli.command import recorded

MODELS = ("openai/gpt-4o-mini", "ollama/llama3:8b")


def lake_of(folder: Path, models: tuple[str, ...], repeats: int) -> Lake:
    """A lake of 40 commands; the second model misses ten of twenty, two more in its second repeats."""
    lines = [
        recorded(
            n, model, "ALLOW" if n % 2 or (model == MODELS[1] and n < 20 + 4 * repeat) else "BLOCK", replicate=repeat
        )
        for missed, model in enumerate(models)
        for n in range(40)
        for repeat in range(repeats)
    ]
    (folder / "lines.jsonl").write_text("\n".join(lines))
    lake = Lake(str(folder / "lake"))
    import_recorded(lake, suite("command_guard"), [folder / "lines.jsonl"])
    return lake


def test_repeats_are_planned_where_the_lake_knows_their_noise(tmp_path: Path) -> None:
    planned = plan(lake_of(tmp_path, MODELS, 2), "command_guard", 0.1)
    assert planned.metric == "balanced_accuracy"
    assert planned.rows["replicates"].to_list() == [1, 2, 3, 5, 10]
    samples = planned.rows["samples"].to_list()
    assert samples == sorted(samples, reverse=True)
    assert planned.rows["answers"].to_list() == [
        2 * n * r for n, r in planned.rows.select("samples", "replicates").rows()
    ]
    assert "40 units, each asked 2 times" in planned.assumed
    for low, middle, high in planned.rows.select("samples_low", "samples", "samples_high").rows():
        assert low < middle < high
    assert "95 % range" in planned.notes[0]


def test_without_repeats_only_single_answers_are_planned_and_that_is_said(tmp_path: Path) -> None:
    planned = plan(lake_of(tmp_path, MODELS, 1), "command_guard", 0.1)
    assert planned.rows["replicates"].to_list() == [1]
    assert "unknown" in planned.notes[1]


def test_what_the_lake_does_not_know_is_refused_unless_assumed(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, MODELS[:1], 1)
    with pytest.raises(UnknownVarianceError, match="--sd"):
        plan(lake, "command_guard", 0.03)
    planned = plan(lake, "command_guard", 0.03, sd=0.3)
    assert planned.rows.row(0)[:2] == (1, 785)
    assert planned.rows["cost_usd"].to_list() == [None]
    for wrong in (
        {"detect": 0.0},
        {"detect": 5.0},
        {"detect": 0.1, "power": 1.0},
        {"detect": 0.1, "sd": 1.0, "metric": "charm"},
    ):
        with pytest.raises(UsageError):
            plan(lake, "command_guard", **wrong)
