"""What the report on line coverage says, and of what it complains."""

import json
from pathlib import Path

from tests.line_coverage import WHOLE, complaints, read, report

ROOT = Path(__file__).resolve().parents[1]


def measured(folder: Path, files: dict[str, tuple[int, list[int]]]) -> Path:
    """A file as slipcover writes it: by file, how many lines were run, and which were not."""
    of = {
        name: {"executed_lines": [*range(run)], "missing_lines": missed, "summary": {}}
        for name, (run, missed) in files.items()
    }
    file = folder / "line_coverage.json"
    file.write_text(json.dumps({"files": of}))
    return file


def test_rooms_are_told_by_their_share_of_lines(tmp_path: Path) -> None:
    files = read(
        measured(tmp_path, {"core/a.py": (3, [7]), "core/b.py": (5, [4]), "metrics/c.py": (1, []), "e.py": (0, [])})
    )
    lines = report(files)
    assert [line.split() for line in lines if line.endswith(" %")][:2] == [
        ["core", "80.0", "%"],
        ["e.py", "100.0", "%"],
    ]
    assert lines[-1] == "Whole: 81.8 %, at least 90 % is asked for"


def test_too_little_and_any_line_of_the_files_that_have_to_be_whole_are_complained_of(tmp_path: Path) -> None:
    whole = dict.fromkeys(WHOLE, (95, list[int]()))
    assert complaints(read(measured(tmp_path, whole))) == []
    del whole[WHOLE[0]]
    found = complaints(read(measured(tmp_path, {**whole, WHOLE[1]: (5, [12, 14]), "core/a.py": (0, [*range(900)])})))
    assert found[0].endswith("% of all lines are run, not 90 %")
    assert found[1:] == [f"{WHOLE[0]} was not measured", f"{WHOLE[1]}: no test runs the lines 12, 14"]


def test_the_files_that_have_to_be_whole_are_there() -> None:
    assert [name for name in WHOLE if not (ROOT / name).is_file()] == []
