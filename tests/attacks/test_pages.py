"""What a folder holds beforehand: no file is written through a link."""

import json
import os
from pathlib import Path
from typing import IO

import pytest

from evalake.core.errors import UsageError
from evalake.core.files import output_file, write_file
from tests.integration.cli.command import evalake_here, recorded
from tests.servers.fixtures import require


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A lake, and a run in it."""
    folder = tmp_path_factory.mktemp("measured")
    (folder / "results.jsonl").write_text("\n".join(recorded(sample) for sample in range(8)))
    words = ("import", "results.jsonl", "--suite", "command_guard", "--lake", folder / "lake", "--json")
    done = evalake_here(*words, folder=folder)
    assert done.returncode == 0, done.stderr
    return folder / "lake", json.loads(done.stdout)["run_id"]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (file := tmp_path / "outside" / "precious").parent.mkdir()
    file.write_text("precious")
    return file


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The folder that a command is started in, which a stranger filled."""
    (folder := tmp_path / "work").mkdir()
    return folder


def test_part_names_cannot_be_guessed(tmp_path: Path, outside: Path) -> None:
    for number in range(os.getpid() - 500, os.getpid() + 500):
        (tmp_path / f"report.{number}.part").symlink_to(outside)
    seen = set()
    for _ in range(3):
        with output_file(tmp_path / "report.html") as file:
            file.write(b"page")
            seen |= {each.name for each in tmp_path.glob(".*.part")}
    assert len(seen) == 3
    assert all(len(name) > 32 for name in seen)
    assert outside.read_text() == "precious"
    assert not list(tmp_path.glob(".*"))


WRITERS = {
    "gate": ("gate", "RUN", "--rule", "accuracy >= 0 from 2 units", "--junit", "OUT"),
    "label": ("label", "export", "RUN", "--out", "OUT"),
    "sql": ("sql", "select 1 as one", "--format", "csv", "--out", "OUT"),
    "parquet": ("sql", "select 1 as one", "--format", "parquet", "--out", "OUT"),
}


def written(measured: tuple[Path, str], words: tuple[str, ...], out: Path, folder: Path) -> tuple[int, str]:
    lake, run = measured
    filled = [{"RUN": run, "OUT": str(out)}.get(word, word) for word in words]
    done = evalake_here(*filled, "--lake", lake, folder=folder)
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", WRITERS.values(), ids=WRITERS.keys())
@pytest.mark.parametrize("planted", ["a file", "a dangling link", "its folder", "an open folder"])
def test_no_file_is_written_through_a_link(
    measured: tuple[Path, str], work: Path, outside: Path, words: tuple[str, ...], planted: str
) -> None:
    out = work / "sheets" / "out.csv"
    if planted == "its folder":
        (work / "sheets").symlink_to(outside.parent)
    else:
        (work / "sheets").mkdir()
        if planted == "an open folder":
            (work / "sheets").chmod(0o777)
        else:
            out.symlink_to(outside if planted == "a file" else outside.parent / "absent")
    code, told = written(measured, words, out, work)
    assert code == 2, told
    assert "is a link" in told or "all users may write" in told
    assert [(file.name, file.read_text()) for file in outside.parent.iterdir()] == [("precious", "precious")]
    assert not (work / "sheets" / "out.csv").exists() or planted == "a file"


@pytest.mark.parametrize("words", WRITERS.values(), ids=WRITERS.keys())
def test_files_are_written_and_replaced_otherwise(
    measured: tuple[Path, str], work: Path, words: tuple[str, ...]
) -> None:
    for _ in range(2):
        code, told = written(measured, words, work / "out.csv", work)
        assert code == 0, told
    assert [file.name for file in work.iterdir()] == ["out.csv"]
    assert (work / "out.csv").stat().st_size


FOLDERS = {
    "report": (("report", "RUN"), "evalake-reports"),
    "check": (("check",), "evalake-reports"),
    "view": (("view", "--export", "out", "--run", "RUN"), "out"),
    "contracts": (("export", "contracts"), "contracts-odcs"),
    "init": (("init", "project"), "project"),
}


@pytest.mark.parametrize(("words", "folder"), FOLDERS.values(), ids=FOLDERS.keys())
def test_no_folder_is_filled_through_a_link(
    measured: tuple[Path, str], work: Path, outside: Path, words: tuple[str, ...], folder: str
) -> None:
    lake, run = measured
    (work / folder).symlink_to(outside.parent)
    filled = [run if word == "RUN" else word for word in words]
    needs_lake = () if words[0] in ("export", "init") else ("--lake", lake)
    done = evalake_here(*filled, *needs_lake, folder=work)
    assert "is a link" in done.stderr or "which no export wrote" in done.stderr
    assert [file.name for file in outside.parent.iterdir()] == ["precious"]


def test_a_link_within_a_new_project_is_refused(work: Path, outside: Path) -> None:
    (work / "project").mkdir()
    (work / "project" / "evalake.toml").symlink_to(outside.parent / "absent")
    assert evalake_here("init", "project", folder=work).returncode == 2
    (work / "project" / "evalake.toml").unlink()
    (work / "project" / "my_suites").symlink_to(outside.parent)
    assert evalake_here("init", "project", folder=work).returncode == 2
    assert [file.name for file in outside.parent.iterdir()] == ["precious"]


def test_no_page_goes_into_a_folder_of_another_user(measured: tuple[Path, str], work: Path) -> None:
    require(os.geteuid() == 0, "root, who alone gives folders away")
    (work / "evalake-reports").mkdir()
    os.chown(work / "evalake-reports", 12345, 12345)
    done = evalake_here("report", measured[1], "--lake", measured[0], folder=work)
    assert done.returncode == 2
    assert "belongs to another user (12345)" in done.stderr


@pytest.mark.parametrize("run", ["../evil", "/tmp/evil", "a/b", "..", ".", "a..b", "", "run\n", "x" * 200, "-x", "ü"])
def test_a_name_that_is_no_runs_becomes_no_path(measured: tuple[Path, str], work: Path, run: str) -> None:
    lake, _ = measured
    done = evalake_here("report", "--lake", lake, "--", run, folder=work)
    assert done.returncode == 2
    assert "not a run's name" in done.stderr
    assert list(work.iterdir()) == []


def test_a_full_disk_leaves_the_file_before(tmp_path: Path) -> None:
    write_file(tmp_path / "out", "before")
    with pytest.raises(OSError, match="full"), output_file(tmp_path / "out") as file:
        _write_half(file)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("out", "before")]


def _write_half(file: IO[bytes]) -> None:
    file.write(b"half")
    raise OSError(28, "disk full")


def test_devices_and_pipes_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="not a regular file"):
        write_file(tmp_path / "pipe", "text")
    assert (tmp_path / "pipe").is_fifo()
