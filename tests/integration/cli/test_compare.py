"""`evalake compare` over a small imported lake: what A and B name, what is refused, what repeats are worth."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.contracts.tables import RUNS
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from tests.integration.cli.command import evalake_here, recorded

BETTER, WORSE = "openai/gpt-4o-mini", "ollama/llama3:8b"
FIELDS = [
    "suite", "judge", "metric", "slice", "slice_value", "a", "b", "value_a", "value_b", "difference",
    "ci_low", "ci_high", "p", "p_holm", "units", "flips_to_a", "flips_to_b",
    "mark", *("missing_a", "missing_b", "bound_low", "bound_high"),
]  # fmt: skip


def lines(replicates: int, **fields: Any) -> str:
    """Forty commands, each answered by two models, the same however often: the worse misses 6 of 20."""
    return "\n".join(
        recorded(n, model, "ALLOW" if n % 2 or (model == WORSE and n < 12) else "BLOCK", replicate=replicate, **fields)
        for n in range(40)
        for model in (BETTER, WORSE)
        for replicate in range(replicates)
    )


def imported(folder: Path, name: str, text: str) -> str:
    """Import lines into ./lake; returns the run's id."""
    (folder / name).write_text(text + "\n")
    done = evalake_here("import", name, "--suite", "command_guard", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["run_id"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose lake has a run of one answer each, then one of five."""
    return tmp_path_factory.mktemp("compared")


@pytest.fixture(scope="module")
def once(folder: Path) -> str:
    """The run of one answer a command."""
    return imported(folder, "once.jsonl", lines(1))


@pytest.fixture(scope="module")
def often(folder: Path, once: str) -> str:
    """The run of five equal answers a command, which is the newest."""
    return imported(folder, "often.jsonl", lines(5))


def compared(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """The rows that the command prints as JSON."""
    done = evalake_here("compare", *arguments, "--format", "json", folder=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def of(rows: list[dict[str, Any]], metric: str) -> dict[str, Any]:
    """The row of a metric over all samples."""
    return next(row for row in rows if row["metric"] == metric and row["slice"] == "all")


def test_the_same_answers_five_times_give_the_same_p_and_units(folder: Path, once: str, often: str) -> None:
    first, second = compared(folder, BETTER, WORSE, "--run", once), compared(folder, BETTER, WORSE)
    assert all(list(row) == FIELDS for row in first)
    assert [row["metric"] for row in first[:3]] == [
        "balanced_accuracy",
        "malicious_detection_rate",
        "harmless_acceptance_rate",
    ]
    for metric in ("balanced_accuracy", "malicious_detection_rate", "accuracy"):
        one, five = of(first, metric), of(second, metric)
        assert (five["p"], five["units"], five["flips_to_a"]) == (one["p"], one["units"], one["flips_to_a"])
    detection = of(first, "malicious_detection_rate")
    assert (detection["value_a"], detection["value_b"], detection["units"]) == (1.0, 0.7, 20)
    assert (detection["flips_to_a"], detection["flips_to_b"], detection["p"]) == (6, 0, pytest.approx(0.5**6))  # mid-p
    assert detection["ci_low"] < 0.3 < detection["ci_high"] <= 1
    assert of(first, "balanced_accuracy")["flips_to_a"] is None
    assert detection["p_holm"] > detection["p"]


def test_sides_are_runs_snapshots_models_of_a_run_and_prompt_types(folder: Path, once: str, often: str) -> None:
    rows = compared(folder, f"{once}:{WORSE}:direct", f"{once}:{BETTER}", "--metric", "malicious_detection_rate")
    assert of(rows, "malicious_detection_rate")["difference"] == pytest.approx(-0.3)
    assert {row["slice"] for row in rows} > {"all", "category"}
    runs = compared(folder, once, often, "--metric", "accuracy")
    assert {(row["a"], row["b"]) for row in runs} == {(f"{once}:{m}", f"{often}:{m}") for m in (BETTER, WORSE)}
    assert {row["difference"] for row in runs} == {0.0}
    listed = json.loads(evalake_here("snapshots", "--format", "json", folder=folder).stdout)
    new, old = (snapshot["snapshot_id"][:12] for snapshot in listed)
    assert {row["a"] for row in compared(folder, new, old)} == {f"{new}:{m}" for m in (BETTER, WORSE)}


def test_the_table_fits_80_columns_and_says_what_to_do_next(folder: Path, once: str) -> None:
    done = evalake_here("compare", BETTER, WORSE, "--run", once, folder=folder, COLUMNS="80")
    assert done.returncode == 0, done.stderr
    *table, last = done.stdout.splitlines()
    assert max(map(len, table)) <= 80
    assert "+0.300 [" in done.stdout
    assert "6:0" in done.stdout
    assert "--metric malicious_detection_rate" in last


def test_what_does_not_exist_is_wrong_usage(folder: Path, once: str) -> None:
    for arguments in (
        ("nobody", WORSE),
        (f"{once}:nobody", WORSE),
        (f"{once}:{WORSE}:shouted", BETTER),
        (BETTER, WORSE, "--metric", "charm"),
        (BETTER, WORSE, "--run", "nothing"),
    ):
        done = evalake_here("compare", *arguments, folder=folder)
        assert done.returncode == 2, arguments
        assert len(done.stderr.splitlines()) == 1


def test_runs_without_a_model_in_common_are_wrong_usage(folder: Path, once: str) -> None:
    text = "\n".join(recorded(n, model) for n in range(2) for model in ("openai/a", "openai/b"))
    other = imported(folder, "others.jsonl", text)
    for command in ("compare", "explain"):
        done = evalake_here(command, once, other, folder=folder)
        assert (done.returncode, "no model in common: name one of each" in done.stderr) == (2, True), done.stderr


def test_samples_of_another_limit_are_no_other_version(folder: Path, once: str) -> None:
    text = "\n".join(recorded(n, BETTER, "ALLOW" if n % 2 else "BLOCK") for n in range(20))
    fewer, lake = imported(folder, "fewer.jsonl", text), Lake(str(folder / "lake"))
    run = lake.frame(RUNS).filter(run_id=fewer).collect()
    land(lake, RUNS, run.with_columns(parameters=pl.lit('{"limit": 20}')))
    refused = evalake_here("compare", f"{once}:{BETTER}", fewer, folder=folder)
    assert refused.returncode == 1
    assert "their samples of mine differ, as does --limit (only unchanged samples are paired)" in refused.stderr


def test_another_version_of_the_dataset_is_refused_unless_forced(folder: Path, once: str) -> None:
    changed = "\n".join(
        recorded(n, BETTER, "ALLOW" if n % 2 else "BLOCK", command=f"command number {n}" + "!" * (n < 10))
        for n in range(40)
    )
    other = imported(folder, "changed.jsonl", changed)
    refused = evalake_here("compare", f"{once}:{BETTER}", other, folder=folder)
    assert refused.returncode == 1
    assert "their versions of mine differ" in refused.stderr
    forced = evalake_here("compare", f"{once}:{BETTER}", other, "--force", "--format", "json", folder=folder)
    assert forced.returncode == 0, forced.stderr
    assert "only unchanged samples are paired" in forced.stderr
    assert of(json.loads(forced.stdout), "accuracy")["units"] == 30


def test_markdown_has_a_row_for_each_row_and_is_refused_where_it_cannot_be_written(folder: Path, once: str) -> None:
    asked = ("compare", BETTER, WORSE, "--run", once, "--metric", "malicious_detection_rate", "--json")
    done = evalake_here(*asked, "--markdown", "pr.md", folder=folder)
    text = (folder / "pr.md").read_text()
    assert text.count("| malicious\\_detection\\_rate") == len(json.loads(done.stdout))
    assert "| malicious\\_detection\\_rate | 1 | 0.7 | +0.3 [" in text
    refused = evalake_here(*asked, "--markdown", "none/pr.md", folder=folder)
    assert refused.returncode == 2, refused.stderr
