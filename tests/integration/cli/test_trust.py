"""A folder is trusted once, as it is: a changed or new file of code or settings ends that, and nothing else does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evalake.cli.configuration import meet_folder, read_no_foreign_bytecode
from evalake.core.errors import UsageError
from evalake.core.folder_trust import folder_hash, is_trusted, remember
from evalake.suites.declared.make import load
from tests.integration.cli.command import ROOT, evalake_here, said_at

SUITE = (
    'dataset = "x.csv"\ncolumns = { target = "answer" }\nprompt = "{{ q }}"\nscore = "exact"\n[baselines]\na = "A"\n'
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of somebody's, with settings and a suite, and a user who has said nothing yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    quiz = tmp_path / "theirs" / "suites" / "quiz"
    quiz.mkdir(parents=True)
    (quiz / "suite.toml").write_text(SUITE)
    (quiz / "x.csv").write_text("q,answer\n?,A\n")
    (tmp_path / "theirs" / "evalake.toml").write_text('suite_paths = ["suites"]')
    return tmp_path / "theirs"


def dry_run(folder: Path) -> tuple[int, str]:
    done = evalake_here("run", "quiz", "--dry-run", folder=folder)
    return done.returncode, done.stderr


def test_without_a_terminal_it_is_refused_until_it_is_said(folder: Path) -> None:
    code, said = dry_run(folder)
    assert code == 2
    assert "run `evalake trust`, or give --trust-folder" in said
    assert evalake_here("suite", "check", "suites/quiz", folder=folder).returncode == 2
    assert evalake_here("trust", folder=folder).returncode == 0
    assert dry_run(folder)[0] == 0
    assert evalake_here("trust", "--forget", folder=folder).returncode == 0
    assert dry_run(folder)[0] == 2
    assert evalake_here("--trust-folder", "run", "quiz", "--dry-run", folder=folder).returncode == 0


@pytest.mark.parametrize(
    "change", ["suites/quiz/suite.toml", "suites/quiz/.py", "deep/__pycache__/x.py", "__pycache__/x.pyc", "H.YML"]
)
def test_a_change_is_noticed_wherever_it_is(folder: Path, change: str) -> None:
    evalake_here("trust", folder=folder)
    file = folder / change
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text((file.read_text() if file.exists() else "") + "\n")
    code, said = dry_run(folder)
    assert code == 2
    assert "has changed since you trusted it" in said


def test_data_and_lake_are_no_part_of_it(folder: Path) -> None:
    evalake_here("trust", folder=folder)
    (folder / "suites" / "quiz" / "x.csv").write_text("q,answer\n??,A\n")
    (folder / "lake").mkdir()
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.cpython-312.pyc").write_text("")
    assert dry_run(folder)[0] == 0


def test_a_file_behind_a_link_counts_and_a_link_to_a_folder_ends_trust(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("1")
    (folder / "link.py").symlink_to(outside)
    before = folder_hash(folder)
    outside.write_text("2")
    assert folder_hash(folder) != before
    (folder / "lib").mkdir()
    (folder / "lib64").symlink_to("lib")
    remember(folder, trusted=True)
    assert is_trusted(folder)
    (tmp_path / "other").mkdir()
    (folder / "more").symlink_to(tmp_path / "other")
    assert not is_trusted(folder)
    with pytest.raises(UsageError, match="is a link to another folder"):
        remember(folder, trusted=True)


def test_names_and_contents_cannot_be_exchanged(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for place, (first, second) in ((one, ("a", "b")), (other, ("b", "a"))):
        place.mkdir()
        (place / "x.py").write_text(first)
        (place / "y.py").write_text(second)
    assert folder_hash(one) != folder_hash(other)


def test_the_state_of_another_user_says_nothing(folder: Path, tmp_path: Path) -> None:
    remember(folder, trusted=True)
    assert is_trusted(folder)
    state = tmp_path / "state" / "evalake"
    assert not state.stat().st_mode & 0o077
    (state / "trusted_folders.json").write_text("not JSON")
    assert not is_trusted(folder)


@pytest.mark.parametrize(("answer", "code", "is_final"), [("y", 0, True), ("n", 2, True), ("\x04", 130, False)])
def test_at_a_terminal_it_is_asked_until_it_is_answered(folder: Path, answer: str, code: int, is_final: bool) -> None:
    for asked in (True, not is_final):
        ours, theirs = os.openpty()
        os.write(ours, f"{answer}\n".encode())
        done = subprocess.run(
            [sys.executable, "-m", "evalake.cli", "run", "quiz", "--dry-run"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=theirs,
            stderr=theirs,
            stdout=subprocess.DEVNULL,
            timeout=600,
        )
        os.close(theirs)
        said = said_at(ours)
        assert done.returncode == code, said
        assert ("Trust this folder?" in said) == asked
        assert ("was not answered, so nothing is done" in said) != is_final


def test_a_named_configuration_precedes_the_folders(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(folder, trusted=True)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["evalake", "run", "--config", "own.toml"])
    meet_folder("run")
    assert "EVALAKE_CONFIG" not in os.environ


def test_suites_outside_of_the_folder_need_trust_of_their_own(folder: Path, tmp_path: Path) -> None:
    (folder / "suites").rename(tmp_path / "outside")
    (folder / "evalake.toml").write_text('suite_paths = ["../outside"]')
    remember(folder, trusted=True)
    assert f"{tmp_path / 'outside'} is not trusted" in dry_run(folder)[1]
    remember(tmp_path / "outside", trusted=True)
    assert dry_run(folder)[0] == 0


def test_byte_code_of_another_user_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "pycache_prefix", None)
    for user, kept in ((os.geteuid(), str(tmp_path / "evalake" / "bytecode")), (os.geteuid() + 1, os.devnull)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        read_no_foreign_bytecode()
        assert sys.pycache_prefix == kept


def test_init_trusts_no_file_that_was_there(folder: Path) -> None:
    (folder / "evalake.toml").unlink()
    assert "held files of code" in evalake_here("init", ".", folder=folder).stderr
    assert not is_trusted(folder)


def test_init_writes_a_project_that_is_trusted_as_it_is_written(folder: Path) -> None:
    assert evalake_here("init", "mine", folder=folder).returncode == 0
    mine = folder / "mine"
    assert evalake_here("run", "questions", "--dry-run", folder=mine).returncode == 0
    assert evalake_here("suite", "new", "letters", "--kind", "choice", folder=mine).returncode == 0
    assert evalake_here("export", "contracts", folder=mine).returncode == 0
    assert evalake_here("run", "letters", "--dry-run", folder=mine).returncode == 0
    for kind in ("judge", "exact"):
        assert evalake_here("suite", "new", f"my_{kind}", "--kind", kind, folder=mine).returncode == 0
        assert evalake_here("suite", "check", f"my_suites/my_{kind}", folder=mine).returncode == 0
    titles = {load(path).title for path in mine.glob("my_suites/*/suite.toml")}
    assert titles == {"Questions", "Letters", "My judge", "My exact"}
    for name in ("letters", "Bad-Name"):
        assert evalake_here("suite", "new", name, folder=mine).returncode == 2
