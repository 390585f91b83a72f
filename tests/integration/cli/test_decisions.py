"""Commands that decide: comparison, gate, settling, power and fitted weights."""

import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest

from evalake.contracts.tables import RUNS
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.tasks.runtime.runs import SETTLE_TAG
from tests.integration.cli.command import evalake_here, recorded
from tests.integration.cli.conftest import Imported, import_lines

# `evalake compare` over a small imported lake: what A and B name, what is refused, what repeats are worth.

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
    return import_lines(folder, name, "command_guard", [text]).run


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
    named = evalake_here("explain", f"{other}:openai/a", f"{other}:openai/b", folder=folder)
    assert named.stdout.startswith(f"A {other}:openai/a: ")


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


# `evalake gate` over an imported lake: exit codes, files for build servers, and what is said of wrong rules.


@pytest.fixture(scope="module")
def gate_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose lake has one run, `r`: of 100 malicious commands the worse model misses 20, the better none."""
    folder = tmp_path_factory.mktemp("gated")
    lines = [
        recorded(n, model, "ALLOW" if n % 2 or (model == WORSE and n < 40) else "BLOCK")
        for n in range(200)
        for model in (BETTER, WORSE)
    ]
    (folder / "run").write_text(imported(folder, "r.jsonl", "\n".join(lines)))
    return folder


@pytest.mark.parametrize(
    ("model", "rules", "code"),
    [
        (BETTER, ["accuracy >= 0.85", "cost_usd_total <= 1", "latency_ms_max <= 300"], 0),
        (WORSE, ["malicious_detection_rate >= 0.9"], 1),
        (WORSE, ["malicious_detection_rate >= 0.75"], 3),
        (WORSE, ["malicious_detection_rate >= 0.75", "latency_ms_max <= 1"], 1),
    ],
)
def test_the_exit_code_is_the_worst_verdict(gate_folder: Path, model: str, rules: list[str], code: int) -> None:
    run = (gate_folder / "run").read_text()
    options = [word for rule in rules for word in ("--rule", rule)]
    done = evalake_here("gate", f"{run}:{model}", *options, folder=gate_folder, COLUMNS="80")
    assert done.returncode == code, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_changes_are_held_against_the_baseline_and_written_for_build_servers(gate_folder: Path) -> None:
    run = (gate_folder / "run").read_text()
    rules = ("--rule", "no significant drop in malicious_detection_rate", "--rule", "no drop over 50% in accuracy")
    files = ("--junit", "gate.xml", "--markdown", "gate.md", "--format", "json")
    done = evalake_here("gate", f"{run}:{WORSE}", "--baseline", f"{run}:{BETTER}", *rules, *files, folder=gate_folder)
    assert done.returncode == 1, done.stderr
    drop, margin = json.loads(done.stdout)
    assert (drop["verdict"], drop["value"], drop["baseline"], drop["units"]) == ("FAIL", 0.8, 1.0, 100)
    assert drop["p_holm"] == pytest.approx(0.5**20)  # mid-p: twice the tail less what was seen
    assert (margin["verdict"], margin["p_holm"]) == ("PASS", None)
    cases = ElementTree.parse(gate_folder / "gate.xml").getroot().findall("./testsuite/testcase")
    assert [len(case.findall("failure")) for case in cases] == [1, 0]
    assert "| FAIL |" in (gate_folder / "gate.md").read_text()
    turned = evalake_here("gate", f"{run}:{BETTER}", "--baseline", f"{run}:{WORSE}", *rules, folder=gate_folder)
    assert turned.returncode == 0, turned.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--rule", "charm >= 1"), "names no metric that was measured. Known: accuracy, balanced_accuracy"),
        (("--rule", "no significant drop in accuracy"), "needs a --baseline"),
        (("--rule", "accuracy >= 1", "--junit", "no/such/folder.xml"), "cannot be written"),
        ((), "--rule"),
    ],
)
def test_wrong_usage_is_one_line(gate_folder: Path, arguments: tuple[str, ...], told: str) -> None:
    done = evalake_here("gate", (gate_folder / "run").read_text(), *arguments, folder=gate_folder)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert told in done.stderr


# `evalake settle`: rounds until the rules are decided, said as they come; exit codes as a gate's.

BLOCKS = ("settle", "command_guard", "--model", "baseline/always-block")


def test_it_stops_when_the_rules_are_decided(tmp_path: Path, prefect_api: str) -> None:
    words = (*BLOCKS, "--rule", "malicious_detection_rate >= 0.5", "--max-missing", 0.4, "--json")
    done = evalake_here(*words, folder=tmp_path, PREFECT_API_URL=prefect_api)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert (printed["verdict"], printed["stopped"]) == ("PASS", "every rule is decided")
    assert "shuffled" in printed["promise"]
    (only,) = printed["rounds"]
    assert only["samples"] == 40
    parameters = json.loads(Lake(str(tmp_path / "lake")).frame(RUNS).collect()["parameters"].item())
    assert parameters["tags"][0].startswith(SETTLE_TAG)
    assert parameters["max_missing"] == 0.4
    assert "round 1: 40 of " in done.stderr


def test_it_stops_with_an_incomplete_run_on_lines_of_80_columns(tmp_path: Path, prefect_api: str) -> None:
    (tmp_path / "own.jsonl").write_text('{"command": "ls", "label": "harmless"}\n{"sample_id": "bare"}\n{broken')
    words = (*BLOCKS, "--dataset", "own.jsonl", "--rule", "balanced_accuracy >= 0.5")
    done = evalake_here(*words, folder=tmp_path, PREFECT_API_URL=prefect_api)
    assert "stopped: the run is incomplete: 2 rows are in quarantine; left out" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--rule", "no significant drop in accuracy"), "give --against MODEL"),
        (("--rule", "timeout_error_count <= 1"), "grows with the samples"),
        ((), "Missing option '--rule'"),
    ],
)
def test_what_cannot_be_settled_is_wrong_usage(tmp_path: Path, options: tuple[str, ...], reason: str) -> None:
    done = evalake_here(*BLOCKS, *options, folder=tmp_path)
    assert done.returncode == 2
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "lake").rglob("*.parquet"))


# `evalake power`: a plan from what the lake shows, on 80 columns and for machines.


def test_a_smaller_difference_takes_more_samples(audited: Imported) -> None:
    def samples(detect: float) -> int:
        plan = ("power", "solidity_audit", "--detect", detect, "--metric", "target_detection_rate", "--sd", 0.5)
        done = evalake_here(*plan, "--format", "json", folder=audited.folder)
        assert done.returncode == 0, done.stderr
        assert "assumed: " in done.stderr
        return int(json.loads(done.stdout)[0]["samples"])

    assert samples(0.05) > samples(0.2) > 0


def test_a_difference_that_is_none_is_wrong_usage(audited: Imported) -> None:
    done = evalake_here("power", "solidity_audit", "--detect", 0, folder=audited.folder)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


# `evalake fit-weights`: a ranking of people's gives weights, and one that cannot is named.


def test_weights_are_fitted_to_a_ranking_and_their_worth_is_said(audited: Imported) -> None:
    (audited.folder / "ranking.csv").write_text("model,rank\ngood,1\nfair,2\npoor,3\n")
    fit = json.loads(evalake_here("fit-weights", "ranking.csv", "--json", folder=audited.folder).stdout)
    assert (fit["agreeing"], fit["pairs"]) == (3, 3)
    assert sum(fit["weights"].values()) == pytest.approx(1.0)
    assert fit["support"]


@pytest.mark.parametrize(
    ("content", "code", "named"),
    [
        ("model,rank\nunknown,1\ngood,2\nfair,3\n", 2, "unknown"),
        ("name,place\ngood,1\n", 2, "columns"),
        ("", 2, "empty"),
        ("model,rank\ngood,1\nfair,nan\n", 2, "gives fair the rank nan"),
        ("model,rank\ngood,1\nfair,2\ngood,3\n", 2, "has a model twice"),
        (f"model,rank\n{'x' * 17_000_000},1\n", 2, "must be CSV"),
    ],
)
def test_a_bad_ranking_is_named(audited: Imported, content: str, code: int, named: str) -> None:
    (audited.folder / "bad.csv").write_text(content)
    done = evalake_here("fit-weights", "bad.csv", folder=audited.folder)
    assert done.returncode == code
    assert named in done.stderr


def test_a_sheet_that_is_no_regular_file_is_not_waited_for(audited: Imported) -> None:
    if not (audited.folder / "pipe.csv").exists():
        os.mkfifo(audited.folder / "pipe.csv")
    done = evalake_here("fit-weights", "pipe.csv", folder=audited.folder)
    assert done.returncode == 2
    assert "pipe.csv is not read: no regular file" in done.stderr


# `evalake calibrate`: what it refuses before anything is asked.


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--judges", "openai/judge", "--suite", "command_guard"), "command_guard has no calibration set"),
        (("--judges", " , "), "--judges names nothing"),
        ((), "--judges"),
    ],
)
def test_a_mistake_is_told_before_a_server_is_started(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    done = evalake_here("calibrate", *arguments, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert "Prefect" not in done.stderr
