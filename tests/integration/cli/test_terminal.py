"""Terminals: eighty columns, control characters, pipes, and closed outputs."""

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from evalake.contracts.tables import RUNS
from evalake.core.redaction import visible
from tests.integration.admin.roadmap.scored import absent, land_scores
from tests.integration.cli.command import ROOT, evalake, evalake_here, recorded, said_at
from tests.integration.storage.recorded_lake import MODELS, recorded_lake

# What is printed can be read: on narrow terminals, in old encodings, through pipes, and whatever the data holds.

COMMAND = [sys.executable, "-m", "evalake.cli"]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a lake of one import, whose name a shell would take apart."""
    folder = tmp_path_factory.mktemp("with spaces, é and 100%#")
    lines = [recorded(n, command=f"printf '\x1b[31m{n}'") for n in range(4)]
    (folder / "recorded.jsonl").write_text("\n".join(lines))
    done = evalake_here("import", "recorded.jsonl", "--suite", "command_guard", "--lake", "my lake", folder=folder)
    assert done.returncode == 0, done.stderr
    # What is printed to be copied is taken by a shell as it stands.
    tried = next(line for line in done.stdout.splitlines() if " sql --lake " in line)
    assert " --lake 'my lake' " in tried
    return folder


def _on_terminal(folder: Path, width: int, *arguments: str) -> str:
    leader, follower = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": str(width), "TERM": "xterm", "NO_COLOR": "1"}
    with subprocess.Popen(
        [*COMMAND, *arguments], cwd=folder, env=environment, stdout=follower, stderr=follower, stdin=follower
    ) as process:
        os.close(follower)
        said = said_at(leader)
    assert process.returncode == 0
    shown = said.replace("\x1b[1m", "").replace("\x1b[0m", "")  # bold is ours
    return re.sub(r"(?m)^.*\r\x1b\[2K", "", shown)  # the line that says what goes on is wiped by the first that stays


def test_a_narrow_terminal_shows_a_line_a_run_and_names_what_it_leaves_out(lake: Path) -> None:
    said = _on_terminal(lake, 80, "runs", "--lake", "my lake")
    assert max(map(len, said.splitlines())) <= 80
    heading, run, *rest = said.splitlines()
    assert heading.split()[:4] == ["run_id", "suite", "models", "state"]
    assert run.split()[0].startswith("import-")
    assert run.split()[1:4] == ["command_guard", "gpt-4o-mini", "completed"]
    assert "cost_usd" not in heading
    assert "cost_usd" in " ".join(rest)
    assert "--format json" in " ".join(rest)


def test_rows_for_machines_steer_no_terminal_either(lake: Path) -> None:
    texts = r"'a' || chr(27) || ']52;c;eA==' || chr(7) || chr(155) || '31m' || chr(8238) as x"
    for form in ("csv", "json"):
        said = _on_terminal(lake, 80, "sql", f"select {texts}", "--format", form, "--lake", "my lake")
        assert "]52;c;eA==" in said
        assert visible(said.replace("\r\n", "\n")) == said.replace("\r\n", "\n")


def test_a_listing_keeps_the_last_column_and_cuts_it(lake: Path) -> None:
    wide, narrow = _tables(lake, 200), _tables(lake, 60)
    assert wide[0].split() == ["table", "rows", "version", "files", "bytes", "description"]
    assert narrow[0].split()[-1] == "description"
    assert "bytes" not in narrow[0]
    assert all(line.endswith("…") for line in narrow if line.startswith("metric_snapshots"))


def _tables(lake: Path, width: int) -> list[str]:
    terminal = {"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": str(width)}
    said = evalake_here("tables", "--lake", "my lake", folder=lake, **terminal).stdout
    return re.sub(r"\x1b\[[01]m", "", said).splitlines()


def test_a_pipe_gets_one_line_a_row(lake: Path) -> None:
    done = evalake_here("runs", "--lake", "my lake", folder=lake)
    assert [line.split()[0][:7] for line in done.stdout.splitlines()] == ["run_id", "import-"]


def test_data_cannot_steer_the_terminal(lake: Path) -> None:
    query = "select input, chr(27) || ']0;x' as \"\x1b[2Jname\" from samples"
    said = _on_terminal(lake, 80, "sql", query, "--lake", "my lake")
    assert not [steering for steering in ("\x1b[31m", "\x1b]", "\x1b[2J") if steering in said]
    assert "\\u001b[31m" in said


def test_old_encodings_lose_nothing(lake: Path) -> None:
    environment = {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    shown = evalake("sql", "select null as nothing", "--format", "table", folder=lake, **environment)
    assert "\\u2013" in shown.stdout
    told = evalake("sql", "select chr(8211) as dash", "--format", "json", folder=lake, **environment)
    assert told.stdout == '[{"dash": "\\u2013"}]\n'


@pytest.mark.parametrize("arguments", [["--help"], ["sql", "select * from range(100000)", "--format", "csv"]])
def test_a_reader_that_goes_away_is_no_failure(lake: Path, arguments: list[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "EVALAKE_LAKE": "my lake"}
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(
            [*COMMAND, *arguments], cwd=lake, env=environment, stdout=closed, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments", ["sql 'select 1'", "run nothing"])
def test_a_standard_output_that_is_closed_is_no_failure(lake: Path, arguments: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "EVALAKE_LAKE": "my lake"}
    line = f"{shlex.join(COMMAND)} {arguments} >&-"
    done = subprocess.run(["sh", "-c", line], cwd=lake, env=environment, stderr=subprocess.PIPE, text=True)
    if arguments == "run nothing":
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    else:
        assert (done.returncode, done.stderr) == (0, "")


def test_a_large_result_takes_no_more_memory_than_a_small_one(lake: Path) -> None:
    def most_memory(rows: int, style: str) -> int:
        command = [*COMMAND, "sql", f"select i, repeat('x', 2000) from range({rows}) t(i)", "--format", style]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "EVALAKE_LAKE": "my lake"}
        started = subprocess.Popen(command, cwd=lake, env=environment, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(started.pid, 0)  # of the command itself, not of what it started
        started.returncode = os.waitstatus_to_exitcode(status)
        assert started.returncode == 0
        return used.ru_maxrss // 1024

    small = most_memory(1, "csv")
    assert most_memory(30_000, "csv") < small + 50  # 60 MB of text
    assert most_memory(30_000, "json") < small + 50


@pytest.mark.parametrize(("options", "shown"), [((), False), (("-W", "default"), True)])
def test_warnings_of_libraries_are_for_those_who_ask(tmp_path: Path, options: tuple[str, ...], shown: bool) -> None:
    code = "import warnings; from evalake.cli.terminal import prepare; prepare(); warnings.warn('of no use')"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    done = subprocess.run(
        [sys.executable, *options, "-c", code],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("of no use" in done.stderr) is shown


@pytest.mark.parametrize("character", ["\u202e", "\u2066", "\u200b", "\ufeff", "\u2028", "\U000e0041"])
def test_what_is_not_seen_or_turns_the_text_is_escaped(character: str) -> None:
    assert character not in (shown := visible(f"allow{character}ed"))
    assert f"{ord(character):x}" in shown


HOSTILE = "no\nevalake: all is well\r\x1b[2J\t\u2028\u202e"


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", HOSTILE),
        ("metrics", "--snapshot", HOSTILE),
        ("gate", HOSTILE, "--rule", "f1 >= 0.5"),
        ("sql", "select 1", "--at", HOSTILE),
        ("sql", f'select * from "{HOSTILE}"'),
        ("run", HOSTILE),
        ("run", "command_guard", "--models", HOSTILE.replace("\n", "")),  # lines are several models
        ("run", "command_guard", "--dataset", HOSTILE),
        ("check", "--lake", HOSTILE),
        ("runs", "--lake", HOSTILE),
        ("serve", "--sessions", f"mysql://h/{HOSTILE}"),
        (HOSTILE,),
    ],
    ids=lambda arguments: " ".join(arguments[:2]).partition("\n")[0],
)
def test_a_name_that_is_given_begins_no_line_of_its_own(lake: Path, arguments: tuple[str, ...]) -> None:
    no_server = "http://127.0.0.1:9/api"
    done = evalake_here(*arguments, folder=lake, EVALAKE_LAKE="my lake", PREFECT_API_URL=no_server)
    assert done.stderr.count("\n") == 1
    assert done.stderr.removesuffix("\n").isprintable()
    assert "all is well" in done.stderr


def test_an_unexpected_error_is_one_line_without_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise TypeError("connect(password='hunter2')\ngot it wrong")

    monkeypatch.setattr("evalake.storage.cached_table.inventory", fail)
    done = evalake_here("tables", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "evalake: unexpected TypeError: connect(password='[redacted]')\\ngot it wrong (--debug shows where)\n"
    )


# Every command that prints a table, on a lake of three suites and a terminal of 80 columns.

TERMINAL = {"FORCE_COLOR": "1", "TERM": "dumb", "COLUMNS": "80"}  # a terminal that knows no colours
NEXT_STEP = re.compile(r"\bevalake [a-z]")  # a command line is printed to be copied, and not broken
COLUMNS = ("model", "metric", "value", "slice", "snapshot_id", "n", "reliable", "ci_low", "ci_high", "judge")
COMMANDS = (
    "runs",
    "snapshots",
    "tables",
    "tables --describe",
    "metrics",
    "metrics --all",
    f"compare {MODELS[0]} {MODELS[1]} --run {{command_guard}}",
    f"explain {MODELS[0]} {MODELS[1]} --run {{command_guard}}",
    f"explain {MODELS[0]} {MODELS[1]} --run {{command_guard}} --rows replies",
    "power command_guard --detect 0.05",
    "report {command_guard}",
    "report {solidity_audit}",
    "show {command_guard}",
    "show {solidity_audit} s1",
    "check",
    "sql --all 'from runs'",
    *(f"sql 'from {table}'" for table in ("metric_snapshots", "session_scores")),
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
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(tmp_path_factory.mktemp("three suites"))


@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_is_longer(narrow: Lake, command: str) -> None:
    done = narrow(command)
    assert done.returncode == 0, done.stderr
    lines = [line for line in (done.stdout + done.stderr).splitlines() if not NEXT_STEP.search(line)]
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.startswith(("metrics", "compare"))])
def test_names_of_metrics_and_models_are_whole(narrow: Lake, command: str) -> None:
    done = narrow(command)
    told = json.loads(narrow(command, "--json").stdout)
    if command == "metrics":
        told = [row for row in told if row["metric"] == "target_detection_rate"]
    names = {row["metric"] for row in told} | {row["model"] for row in told if "model" in row}
    assert names - set(done.stdout.split()) == set()


def test_columns_without_room_are_named_with_how_to_see_them(narrow: Lake) -> None:
    done = narrow(f"sql 'select {','.join(COLUMNS)} from metric_snapshots'")
    assert done.returncode == 0, done.stderr
    shown = done.stdout.splitlines()[0].split()
    told = " ".join(done.stderr.split())
    assert "value" in shown
    assert len(done.stdout.splitlines()) == len(json.loads(narrow("sql --json 'from metric_snapshots'").stdout)) + 1
    assert set(COLUMNS) - set(shown) == set(
        re.search("no room for (.*);", told)[1].split(", ")  # type: ignore[index]
    )
    assert told.endswith("select the columns that you want, or see all: --all, --json")
