"""Every command that prints a table, on a lake of three suites and a terminal of 80 columns."""

import json
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from evalake.contracts.tables import RUNS
from tests.integration.admin.roadmap.scored import absent, land_scores
from tests.integration.cli.command import evalake_here
from tests.integration.storage.recorded_lake import MODELS, recorded_lake

TERMINAL = {"FORCE_COLOR": "1", "TERM": "dumb", "COLUMNS": "80"}  # a terminal that knows no colours
NEXT_STEP = re.compile(r"\bevalake [a-z]")  # a command line is printed to be copied, and not broken
COLUMNS = ("model", "metric", "value", "slice", "snapshot_id", "n", "reliable", "ci_low", "ci_high", "judge")
COMMANDS = (
    "runs",
    "snapshots",
    "tables",
    "tables samples",
    "tables --describe",
    "metrics",
    "metrics --all",
    "metrics --run {command_guard} --all",
    f"compare {MODELS[0]} {MODELS[1]} --run {{command_guard}}",
    f"compare {MODELS[0]} {MODELS[1]} --run {{command_guard}} --metric malicious_detection_rate",
    f"explain {MODELS[0]} {MODELS[1]} --run {{command_guard}}",
    f"explain {MODELS[0]} {MODELS[1]} --run {{command_guard}} --rows replies",
    "power command_guard --detect 0.05",
    "report {command_guard}",
    "report {solidity_audit}",
    "show {command_guard}",
    "show {solidity_audit}",
    "show {solidity_audit} s1",
    "check",
    "sql --all 'from runs'",
    *(
        f"sql 'from {table}'"
        for table in ("runs", "samples", "metric_snapshots", "solidity_audit_results", "session_scores")
    ),
)


class Lake:
    """A folder with a lake of three suites."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        lake = recorded_lake(folder)
        land_scores(lake, ("a", 40, absent("x-ray")), ("b", 60, absent("y-scan")))
        runs = lake.frame(RUNS).sort("started_at").collect()
        self.runs = {row["suite"]: row["run_id"] for row in runs.iter_rows(named=True)}

    @cache  # noqa: B019 - one lake, which no command changes
    def __call__(self, command: str, *more: str) -> "subprocess.CompletedProcess[str]":
        """Run a command on the terminal."""
        words = [part.strip("'") for part in re.findall(r"'[^']*'|\S+", command.format_map(self.runs))]
        return evalake_here(*words, *more, folder=self.folder, **TERMINAL)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(tmp_path_factory.mktemp("three suites"))


@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_is_longer(lake: Lake, command: str) -> None:
    done = lake(command)
    assert done.returncode == 0, done.stderr
    lines = [line for line in (done.stdout + done.stderr).splitlines() if not NEXT_STEP.search(line)]
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.startswith(("metrics", "compare"))])
def test_names_of_metrics_and_models_are_whole(lake: Lake, command: str) -> None:
    done = lake(command)
    told = json.loads(lake(command, "--json").stdout)
    if command == "metrics":
        told = [row for row in told if row["metric"] == "target_detection_rate"]
    names = {row["metric"] for row in told} | {row["model"] for row in told if "model" in row}
    assert names - set(done.stdout.split()) == set()


def test_columns_without_room_are_named_with_how_to_see_them(lake: Lake) -> None:
    done = lake(f"sql 'select {','.join(COLUMNS)} from metric_snapshots'")
    assert done.returncode == 0, done.stderr
    shown = done.stdout.splitlines()[0].split()
    told = " ".join(done.stderr.split())
    assert "value" in shown
    assert len(done.stdout.splitlines()) == len(json.loads(lake("sql --json 'from metric_snapshots'").stdout)) + 1
    assert set(COLUMNS) - set(shown) == set(
        re.search("no room for (.*);", told)[1].split(", ")  # type: ignore[index]
    )
    assert told.endswith("select the columns that you want, or see all: --all, --json")
