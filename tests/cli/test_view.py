"""`evalake view --export`: what it says on the way and at the end, and what it refuses."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from storage.lake import Lake
from suites.registry import suite
from tasks.jobs.import_results import import_recorded
from tests.cli.command import evalake_here, recorded


@dataclass(frozen=True)
class Imported:
    """A lake, and the one run in it."""

    lake: Lake
    run: str


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    folder = tmp_path_factory.mktemp("view")
    (folder / "rows.jsonl").write_text("".join(recorded(number) + "\n" for number in range(4)))
    lake = Lake(str(folder / "lake"))
    return Imported(lake, import_recorded(lake, suite("command_guard"), [folder / "rows.jsonl"]))


def test_the_last_line_says_what_to_open(imported: Imported, tmp_path: Path) -> None:
    done = evalake_here(
        "view", "--lake", imported.lake.uri, "--run", imported.run, "--export", "shared/run", folder=tmp_path
    )

    page = tmp_path / "shared" / "run" / "index.html"
    assert (done.returncode, done.stdout) == (0, f"open {page}\n")
    assert done.stderr == "4 of 4 samples written\n"
    assert page.is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--export", "x"], "--export DIR and --run ID go together"),
        (["--run", "any"], "--export DIR and --run ID go together"),
        (["--export", "x", "--run", "other"], "has no run other: `evalake runs` lists them"),
    ],
)
def test_what_cannot_be_exported_is_wrong_usage(
    imported: Imported, tmp_path: Path, arguments: list[str], said: str
) -> None:
    done = evalake_here("view", "--lake", imported.lake.uri, *arguments, folder=tmp_path)

    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "x").exists()
