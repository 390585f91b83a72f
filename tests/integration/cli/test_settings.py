"""What commands are told: configuration, environment, options and suites."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from evalake.cli.configuration import command
from evalake.cli.help import _folded
from evalake.cli.options import LAKE, names, suite_with
from evalake.core.errors import UsageError
from evalake.suites.registry import suite_names
from tests.integration.cli.command import ROOT, evalake_here
from tests.servers.model_server import ModelServer

# The configuration that lies in a folder is told, and gets no key of the user's unless the folder is trusted.


def test_the_folders_configuration_is_told_with_its_servers_and_gets_no_key(
    tmp_path: Path, model_server: ModelServer
) -> None:
    (folder := tmp_path / "theirs").mkdir()
    (folder / "evalake.toml").write_text(f'[models."openai/m"]\napi_base = "{model_server.api_base}"\n')
    ask = ("run", "command_guard", "--models", "openai/m", "--first", 1, "--dry-run")
    home = {"XDG_CONFIG_HOME": str(tmp_path), "OPENAI_API_KEY": "sk-of-the-user-3141592653"}
    refused = evalake_here(*ask, folder=folder, **home)
    assert refused.returncode == 2
    assert f"openai/m: {model_server.api_base}" in refused.stderr
    assert "OPENAI_API_KEY would go there" in refused.stderr
    trusted = evalake_here(*ask, "--trust-folder", folder=folder, **home)
    assert trusted.returncode == 0, trusted.stderr
    assert "1 to call" in trusted.stdout
    assert not model_server.seen


def test_a_command_line_to_go_on_with_has_the_options_that_are_not_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["evalake", "compare"])
    assert command("compare", "a b", "c", metric=None, lake=LAKE, run="r") == "evalake compare 'a b' c --run r"
    assert command("show", "r", lake="s3://other") == "evalake show r --lake s3://other"


# A server that a command starts has a password; one that the user names keeps its own.

SHOW = """
import os
from evalake.cli.terminal import prepare
prepare()
for name in ("PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING", "PREFECT_SERVER_CORS_ALLOWED_ORIGINS"):
    print(os.environ.get(name, ""))
"""
PROFILES = """
active = "mine"
[profiles.mine]
PREFECT_API_URL = "http://127.0.0.1:4200/api"
"""


def prepared(home: Path, **environment: str) -> list[str]:
    """The passwords and origins that a command sets: the client's password, the server's, the origins."""
    usual = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    done = subprocess.run(
        [sys.executable, "-c", SHOW],
        env={**usual, "PYTHONPATH": str(ROOT), "PREFECT_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split("\n")[:3]


def test_a_server_of_our_own_has_a_password_that_nobody_can_guess(tmp_path: Path) -> None:
    client, server, origins = prepared(tmp_path)
    again, *_ = prepared(tmp_path)
    assert client == server != again
    assert len(client) > 40
    assert "*" not in origins


@pytest.mark.parametrize("by", ["environment", "profile"])
def test_a_server_that_the_user_names_keeps_its_own(tmp_path: Path, by: str) -> None:
    (tmp_path / "profiles.toml").write_text(PROFILES if by == "profile" else "")
    named = {"PREFECT_API_URL": "http://127.0.0.1:4200/api"} if by == "environment" else {}
    assert prepared(tmp_path, **named) == ["", "", ""]


def test_a_server_that_is_named_as_none_is_none_whatever_the_profile_says(tmp_path: Path) -> None:
    (tmp_path / "profiles.toml").write_text(PROFILES)
    client, server, origins = prepared(tmp_path, PREFECT_API_URL="")  # Prefect would start one of its own
    assert client == server != ""
    assert "*" not in origins


@pytest.mark.parametrize(
    ("of", "by"), [("PREFECT_API_AUTH_STRING", "environment"), ("PREFECT_SERVER_API_AUTH_STRING", "profile")]
)
def test_a_password_of_the_users_choice_is_the_clients_and_the_servers(tmp_path: Path, of: str, by: str) -> None:
    chosen = f'{of} = "me:mine"' if by == "profile" else ""
    (tmp_path / "profiles.toml").write_text(f'active = "mine"\n[profiles.mine]\n{chosen}')
    assert prepared(tmp_path, **({of: "me:mine"} if by == "environment" else {}))[:2] == ["me:mine"] * 2


# Options that several commands share.


def test_a_list_is_given_by_comma() -> None:
    assert names("--models", "a, b ,,c") == ["a", "b", "c"]
    assert names("--models", None) is None


@pytest.mark.parametrize("text", ["", " , "])
def test_an_option_that_names_nothing_is_not_the_default(text: str) -> None:
    with pytest.raises(UsageError, match="--models names nothing"):
        names("--models", text)


def test_a_suite_is_the_one_wanted_or_the_first_that_has_such_a_thing() -> None:
    assert (suite_with("roadmap", ["a", "b"], None), suite_with("roadmap", ["a", "b"], "b")) == ("a", "b")
    with pytest.raises(UsageError, match="c has no roadmap: choose one of a, b"):
        suite_with("roadmap", ["a", "b"], "c")


# `--help` lists the suites without importing them; the shell completes them; every command that tells has --json.

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


@pytest.mark.parametrize(("named", "why"), [("nowhere", "no folder"), ("quiz", "folder of one suite")])
def test_help_is_shown_although_the_configuration_is_wrong(tmp_path: Path, named: str, why: str) -> None:
    (tmp_path / "quiz").mkdir()
    (tmp_path / "quiz" / "suite.toml").write_text('title = "Quiz"')
    (tmp_path / "wrong.toml").write_text(f'suite_paths = ["{named}"]')
    done = evalake_here("run", "--help", folder=tmp_path, EVALAKE_CONFIG=str(tmp_path / "wrong.toml"))
    assert done.returncode == 0
    shown = " ".join(done.stdout.split())
    assert "The suites cannot be listed: suite_paths" in shown
    assert why in shown


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
    for words in TELLING:
        assert "--json " in evalake_here(*words.split(), "--help", folder=tmp_path).stdout, words


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
    for words in (["runs"], ["sql", "select 1"]):
        done = evalake_here(*words, "--json", "--format", "csv", folder=tmp_path)
        assert (done.returncode, done.stderr) == (
            2,
            "evalake: --json and --format csv contradict each other: leave one out\n",
        )
