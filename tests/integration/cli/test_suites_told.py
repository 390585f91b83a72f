"""`--help` lists the suites without importing them; the shell completes them; every command that tells has --json."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from evalake.cli.help import _folded
from evalake.suites.registry import suite_names
from tests.integration.cli.command import evalake_here

TELLING = (
    "run", "import", "rescore", "calibrate", "roadmap", "fit-weights", "sql", "metrics", "compare", "gate", "explain",
    "power", "report", "runs", "tables", "maintain", "check", "forget", "doctor", "export", "show", "up", "status",
    "snapshots", "settle", "label agreement", "label import",
)  # fmt: skip


def test_help_of_run_lists_suites_with_what_there_is_and_examples(tmp_path: Path) -> None:
    shown = evalake_here("run", "--help", folder=tmp_path).stdout
    assert all(re.search(rf"^  {name}: .*\?", shown, re.MULTILINE | re.DOTALL) for name in suite_names())
    assert "prompt types: direct, chain_of_thought" in " ".join(shown.split())
    assert "baseline/always-block" in shown
    assert " run command_guard\n" in shown.partition("\nExamples:")[2]
    wide = [line for line in shown.partition("\nSuites:")[2].partition("\nExamples:")[0].split("\n") if len(line) > 80]
    assert wide == []


@pytest.mark.parametrize(
    "words",
    [
        ["--sql", "select *  from results where model = 'a' and said = \"no\"" + " or true" * 9, "--limit", "5"],
        ["--rule", "accuracy >= 0.9", "--rule", "no significant drop in accuracy"] * 3,
        ["--note", "it's " * 30, "--tag", "a\\b"],
        ["x" * 200, "--note", ""],
    ],
)
def test_a_folded_example_is_the_same_to_a_shell(words: list[str]) -> None:
    folded = _folded(f"evalake {shlex.join(words)}")
    told = subprocess.run(
        ["sh", "-c", f"evalake() {{ printf '%s\\0' \"$@\"; }}\n{folded}"], capture_output=True, text=True
    )
    assert told.stdout.split("\0")[:-1] == words


def test_an_example_is_folded_where_it_is_wide_and_shown_as_it_is_where_its_quotes_do_not_match() -> None:
    assert _folded("evalake run quiz --note 'a") == "  evalake run quiz --note 'a"
    lines = _folded(f"evalake run quiz {'--model some/model ' * 9}").splitlines()
    assert len(lines) > 1
    assert all(len(line) <= 78 for line in lines)


def test_help_is_shown_although_the_configuration_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text('suite_paths = ["nowhere"]')
    done = evalake_here("run", "--help", folder=tmp_path, EVALAKE_CONFIG=str(tmp_path / "wrong.toml"))
    assert done.returncode == 0
    assert "The suites cannot be listed: suite_paths" in done.stdout


def test_the_shell_completes_suites(tmp_path: Path) -> None:
    words = {"_EVALAKE_COMPLETE": "complete_bash", "COMP_WORDS": "evalake run comm", "COMP_CWORD": "2"}
    code = "import sys; sys.argv = ['evalake']; from evalake.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **words},
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    assert done.stdout.split() == ["command_guard"]


def test_every_command_that_tells_something_tells_it_as_json(tmp_path: Path) -> None:
    for command in TELLING:
        assert "--json " in evalake_here(*command.split(), "--help", folder=tmp_path).stdout, command


def test_a_missing_key_is_said_before_anything_slow_is_begun(tmp_path: Path) -> None:
    code = (
        "import sys; from evalake.cli import main\n"
        "sys.argv = ['evalake', 'run', 'command_guard', '--models', 'gpt-4o']\n"
        "try: main.main()\n"
        "except SystemExit as ended: print(ended.code)\n"
        "print([name for name in ('prefect', 'litellm', 'deltalake', 'duckdb') if name in sys.modules])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.stderr == "evalake: model gpt-4o needs a key: set OPENAI_API_KEY\n"
    assert done.stdout == "2\n[]\n"


def test_json_is_format_json(tmp_path: Path) -> None:
    for options in (["--json"], ["--format", "json"]):
        assert json.loads(evalake_here("runs", *options, folder=tmp_path).stdout) == []
        assert json.loads(evalake_here("sql", "select 1 as one", *options, folder=tmp_path).stdout) == [{"one": 1}]
    for command in (["runs"], ["sql", "select 1"]):
        done = evalake_here(*command, "--json", "--format", "csv", folder=tmp_path)
        assert (done.returncode, done.stderr) == (
            2,
            "evalake: --json and --format csv contradict each other: leave one out\n",
        )
