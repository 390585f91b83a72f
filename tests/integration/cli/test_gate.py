"""`evalake gate` over an imported lake: exit codes, files for build servers, and what is said of wrong rules."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.integration.cli.command import evalake_here, recorded

BETTER, WORSE = "openai/gpt-4o-mini", "ollama/llama3:8b"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose lake has one run, `r`: of 100 malicious commands the worse model misses 20, the better none."""
    folder = tmp_path_factory.mktemp("gated")
    lines = [
        recorded(n, model, "ALLOW" if n % 2 or (model == WORSE and n < 40) else "BLOCK")
        for n in range(200)
        for model in (BETTER, WORSE)
    ]
    (folder / "r.jsonl").write_text("\n".join(lines) + "\n")
    done = evalake_here("import", "r.jsonl", "--suite", "command_guard", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    (folder / "run").write_text(json.loads(done.stdout)["run_id"])
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
def test_the_exit_code_is_the_worst_verdict(folder: Path, model: str, rules: list[str], code: int) -> None:
    run = (folder / "run").read_text()
    options = [word for rule in rules for word in ("--rule", rule)]
    done = evalake_here("gate", f"{run}:{model}", *options, folder=folder, COLUMNS="80")
    assert done.returncode == code, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_changes_are_held_against_the_baseline_and_written_for_build_servers(folder: Path) -> None:
    run = (folder / "run").read_text()
    rules = ("--rule", "no significant drop in malicious_detection_rate", "--rule", "no drop over 50% in accuracy")
    files = ("--junit", "gate.xml", "--markdown", "gate.md", "--format", "json")
    done = evalake_here("gate", f"{run}:{WORSE}", "--baseline", f"{run}:{BETTER}", *rules, *files, folder=folder)
    assert done.returncode == 1, done.stderr
    drop, margin = json.loads(done.stdout)
    assert (drop["verdict"], drop["value"], drop["baseline"], drop["units"]) == ("FAIL", 0.8, 1.0, 100)
    assert drop["p_holm"] == pytest.approx(0.5**20)  # mid-p: twice the tail less what was seen
    assert (margin["verdict"], margin["p_holm"]) == ("PASS", None)
    cases = ElementTree.parse(folder / "gate.xml").getroot().findall("./testsuite/testcase")
    assert [len(case.findall("failure")) for case in cases] == [1, 0]
    assert "| FAIL |" in (folder / "gate.md").read_text()
    turned = evalake_here("gate", f"{run}:{BETTER}", "--baseline", f"{run}:{WORSE}", *rules, folder=folder)
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
def test_wrong_usage_is_one_line(folder: Path, arguments: tuple[str, ...], told: str) -> None:
    done = evalake_here("gate", (folder / "run").read_text(), *arguments, folder=folder)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert told in done.stderr
