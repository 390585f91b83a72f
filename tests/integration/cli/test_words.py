"""What commands say: help, mistakes and transcripts."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from evalake.cli.help import LONGEST
from evalake.cli.main import COMMANDS, app
from evalake.cli.samples import SHORT, transcript
from evalake.core.errors import UsageError
from evalake.server.viewer.item import ItemDetail
from tests.cases import cases_beside
from tests.integration.cli.command import evalake_here

CASES = cases_beside(__file__, "mistakes.json")

# Help names what a user writes: every option and argument of every command, on 80 columns.

OF_PREFECT = "prefect"  # whose help is Prefect's own


def _help(folder: Path, *command: str) -> Iterator[tuple[str, str]]:
    """Help of a command, and of those below it."""
    done = evalake_here(*command, "--help", folder=folder, COLUMNS="80")
    assert done.returncode == 0, done.stderr
    yield " ".join(command), done.stdout
    listed = done.stdout.partition("\n  -h, --help")[2] if not command else done.stdout.partition("\nCommands:\n")[2]
    for name in re.findall(r"(?m)^  ([a-z][a-z-]*)  ", listed):
        if name != OF_PREFECT:
            yield from _help(folder, *command, name)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Help of every command."""
    return dict(_help(tmp_path_factory.mktemp("help")))


def test_no_type_of_python_and_no_formula_stands_for_a_value(shown: dict[str, str]) -> None:
    assert {"", "run", "label import", "snapshots verify"} < set(shown)
    typed = re.compile(r"<[a-z ]+>|\[x|x[<>]=|\b(?:INTEGER|FLOAT|PATH|BOOLEAN)\b(?= {2})")
    assert {name: found for name, text in shown.items() if (found := typed.findall(text))} == {}
    assert "at least 1" in " ".join(shown["show"].split())


def test_every_line_has_room_and_a_long_example_goes_on_as_a_shell_takes_it(shown: dict[str, str]) -> None:
    assert [line for text in shown.values() for line in text.splitlines() if len(line) > 80] == []
    assert "--dry-run" in shown["run"].partition("\nExamples:\n")[2].replace(" \\\n ", "").splitlines()[-1]


def test_commands_are_listed_with_whole_sentences(shown: dict[str, str]) -> None:
    listed = shown[""].partition("\nEvery day:\n")[2]
    assert "..." not in listed

    commands: Any = typer.main.get_command(app)
    assert {name: each.get_short_help_str(LONGEST) for name, each in commands.commands.items()} == COMMANDS
    assert set(shown) - {""} >= {name for name in COMMANDS if name != OF_PREFECT}
    assert "the ledger answers known calls." in " ".join(listed.split())


# The command's entry: a mistake is one clear line that names the thing, with its exit code, and nothing half-done.

NO_SERVER = "http://127.0.0.1:9/api"  # no mistake waits for one, or has one started
MISTAKES = CASES["mistakes"]


@pytest.mark.parametrize(("arguments", "code", "named"), MISTAKES, ids=[" ".join(mistake[0]) for mistake in MISTAKES])
def test_a_mistake_is_named_in_one_line(tmp_path: Path, arguments: tuple[str, ...], code: int, named: str) -> None:
    done = evalake_here(*arguments, folder=tmp_path, OPENAI_API_KEY="", PREFECT_API_URL=NO_SERVER)
    assert done.returncode == code, done.stderr
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("evalake: ")
    assert done.stderr.count("\n") == 1
    assert not done.stdout
    assert not list(tmp_path.iterdir())  # what is refused before it begins leaves nothing


@pytest.mark.parametrize("group", [(), ("suite",)])
def test_a_group_without_its_command_shows_the_help_line_by_line(tmp_path: Path, group: tuple[str, ...]) -> None:
    done = evalake_here(*group, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: ")
    assert done.stderr.count("\n") > 5


def test_debug_shows_where(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no snapshot yet"):  # of which Python itself shows the traceback
        evalake_here("metrics", "--debug", folder=tmp_path)


def test_verbose_shows_phases_and_the_whole(tmp_path: Path) -> None:
    done = evalake_here("run", "command_guard", "--limit", "1", "--dry-run", "--verbose", folder=tmp_path)
    told = [line.split(" s  ")[1] for line in done.stderr.splitlines() if " s  " in line]
    assert told == ["read the suite and its samples", "look up the ledger", "run as a whole, after its start"]


HEAVY = (
    *("prefect", "litellm", "great_expectations", "pandas", "polars", "deltalake", "duckdb", "opentelemetry"),
    *("distributed", "scipy"),
)


@pytest.mark.parametrize(("lines", "loaded"), [("[[]]", []), ("[[each] for each in main.COMMANDS]", ["polars"])])
def test_help_starts_without_the_heavy_libraries(lines: str, loaded: list[str]) -> None:
    code = (
        "import sys; from evalake.cli import main\n"
        f"for words in {lines}:\n"
        "    sys.argv = ['evalake', *words, '--help']\n"
        "    try: 'prefect' in words or main.main()\n"  # whose help is Prefect's own
        "    except SystemExit as ended: assert ended.code == 0, words\n"
        f"print([m for m in {HEAVY} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert done.stdout.splitlines()[-1:] == [str(loaded)], done.stderr


def test_empty_lakes_list_nothing_and_say_so(tmp_path: Path) -> None:
    for listing in ("runs", "snapshots", "tables"):
        done = evalake_here(listing, "--format", "json", folder=tmp_path)
        assert (done.returncode, done.stdout) == (0, "[]\n")
        assert f"the lake {tmp_path}/lake has no {listing}" in done.stderr
    assert f"the lake {tmp_path}/lake has no tables" in evalake_here("sql", "from runs", folder=tmp_path).stderr


def test_a_check_that_finds_no_lake_does_not_pass(tmp_path: Path) -> None:
    for options in ([], ["--json"]):
        done = evalake_here("check", "--lake", "misspelt", *options, folder=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "evalake: the lake misspelt has no tables: there is nothing to check\n"


# A sample as lines for a terminal: as wide as it is, cut where it is long, and unable to steer it.

WIDTH = 60
ABSENT: dict[str, Any] = dict.fromkeys(("category", "severity", "difficulty", "note", "target"))


def sample(text: str) -> ItemDetail:
    """A sample that nobody has answered yet."""
    told: dict[str, Any] = {
        "run_id": "r",
        "suite": "quiz",
        "dataset": "mine",
        "sample_id": "s1",
        "number": 2,
        "total": 1000,
    }
    return ItemDetail.model_construct(**told, **ABSENT, label="hard", input_text=text, calls=[])


def lines(text: str, *, full: bool = False) -> list[str]:
    return list(transcript(sample(text), [], WIDTH, full=full))


def test_it_says_where_it_stands_what_is_asked_and_what_is_true() -> None:
    shown = lines("What is the capital of Japan?")
    assert shown[0] == "quiz run r: sample mine/s1, 2 of 1,000"
    assert shown[1:] == ["\nINPUT", "  What is the capital of Japan?", "\nGROUND TRUTH", "label: hard"]


def test_long_text_is_cut_unless_it_is_asked_for_whole() -> None:
    text = "\n".join(f"line {number}" for number in range(SHORT + 10))
    assert "  … 10 more lines (--full)" in lines(text)
    assert "  line 49" not in lines(text)
    assert "  line 49" in lines(text, full=True)


def test_no_line_is_wider_than_the_terminal_or_steers_it() -> None:
    shown = lines("word " * 100 + "x" * 200 + "\x1b[2J")
    assert max(map(len, shown)) <= WIDTH
    assert not any("\x1b" in line for line in shown)
