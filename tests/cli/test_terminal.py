"""What is printed can be read: on narrow terminals, in old encodings, through pipes, and whatever the data holds."""

import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import ROOT, evalake, recorded

COMMAND = [sys.executable, "-m", "cli"]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a lake of one import, whose name a shell would take apart."""
    folder = tmp_path_factory.mktemp("with spaces, é and 100%#")
    lines = [recorded(n, command=f"printf '\x1b[31m{n}'") for n in range(4)]
    (folder / "recorded.jsonl").write_text("\n".join(lines))
    done = evalake("import", "recorded.jsonl", "--suite", "command_guard", "--lake", "my lake", folder=folder)
    assert done.returncode == 0, done.stderr
    # What is printed to be copied is taken by a shell as it stands.
    tried = next(line for line in done.stdout.splitlines() if " sql --lake " in line)
    assert " --lake 'my lake' " in tried
    return folder


def _on_terminal(folder: Path, width: int, *arguments: str) -> str:
    leader, follower = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": str(width), "TERM": "dumb"}
    with subprocess.Popen(
        [*COMMAND, *arguments], cwd=folder, env=environment, stdout=follower, stderr=follower, stdin=follower
    ) as process:
        os.close(follower)
        said = b""
        while chunk := _read(leader):
            said += chunk
    os.close(leader)
    assert process.returncode == 0
    return said.decode()


def _read(leader: int) -> bytes:
    try:
        return os.read(leader, 65536)
    except OSError:  # the other end is closed
        return b""


def test_a_narrow_terminal_shows_whole_words(lake: Path) -> None:
    said = _on_terminal(lake, 80, "runs", "--lake", "my lake")
    assert max(map(len, said.splitlines())) <= 80
    for word in ("run_id", "calls_from_ledger", "rows_quarantined", "command_guard", "openai/gpt-4o-mini"):
        assert word in said
    (run_id,) = (line.split()[1] for line in said.splitlines() if line.startswith("run_id"))
    assert len(run_id) == len("import-") + 12


def test_a_pipe_gets_one_line_a_row(lake: Path) -> None:
    done = evalake("runs", "--lake", "my lake", folder=lake)
    assert [line.split()[0][:7] for line in done.stdout.splitlines()] == ["run_id", "import-"]


def test_data_cannot_steer_the_terminal(lake: Path) -> None:
    query = "select input, chr(27) || ']0;x' as \"\x1b[2Jname\" from samples"
    for width in (40, 200):
        said = _on_terminal(lake, width, "sql", query, "--lake", "my lake")
        assert not [steering for steering in ("\x1b[31m", "\x1b]", "\x1b[2J") if steering in said]
        assert "\\x1b[31m" in said


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_old_encodings_lose_nothing(lake: Path, encoding: str) -> None:
    environment = {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    shown = evalake("metrics", "--lake", "my lake", folder=lake, **environment)
    assert "\\u2013" in shown.stdout
    told = evalake("sql", "select chr(8211) as dash", "--format", "json", folder=lake, **environment)
    assert told.stdout == '[{"dash": "\\u2013"}]\n'


@pytest.mark.parametrize(
    "arguments", [["check"], ["--help"], ["sql", "select * from range(100000)", "--format", "csv"]]
)
def test_a_reader_that_goes_away_is_no_failure(lake: Path, arguments: list[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "EVALAKE_LAKE": "my lake"}
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(
            [*COMMAND, *arguments], cwd=lake, env=environment, stdout=closed, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments", ["check", "sql 'select 1'", "run nothing"])
def test_a_standard_output_that_is_closed_is_no_failure(lake: Path, arguments: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "EVALAKE_LAKE": "my lake"}
    line = f"{shlex.join(COMMAND)} {arguments} >&-"
    done = subprocess.run(["sh", "-c", line], cwd=lake, env=environment, stderr=subprocess.PIPE, text=True)
    if arguments == "run nothing":
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    else:
        assert (done.returncode, done.stderr) == (0, "")


def test_a_long_table_says_how_much_is_left_out(lake: Path) -> None:
    done = evalake("sql", "select * from range(10003)", folder=lake)
    assert done.stdout.splitlines()[-1].strip() == "9999"
    assert "3 more rows" in done.stderr
    assert evalake("sql", "select * from range(10003)", "--format", "csv", folder=lake).stdout.count("\n") == 10004


@pytest.mark.parametrize(
    ("expression", "as_csv", "as_json"),
    [
        ("'a'::blob", "61", '"61"'),
        ("[1, 2]::int[2]", '"[1, 2]"', "[1, 2]"),
        ("['a'::blob]", '"[""61""]"', '["61"]'),
        ("{'a': [0.5::double]}", '"{""a"": [0.5]}"', '{"a": [0.5]}'),
        ("null::int[]", "", "null"),
    ],
)
def test_values_of_every_kind_are_written_for_machines(lake: Path, expression: str, as_csv: str, as_json: str) -> None:
    query = f"select {expression} as it, 1 as n"
    assert evalake("sql", query, "--format", "csv", folder=lake).stdout == f"it,n\n{as_csv},1\n"
    assert evalake("sql", query, "--format", "json", folder=lake).stdout == f'[{{"it": {as_json}, "n": 1}}]\n'


@pytest.mark.parametrize(("options", "shown"), [((), False), (("-W", "default"), True)])
def test_warnings_of_libraries_are_for_those_who_ask(tmp_path: Path, options: tuple[str, ...], shown: bool) -> None:
    code = "import warnings; from cli.environment import prepare; prepare(); warnings.warn('of no use')"
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
