"""What the report on line coverage says, and of what it complains."""

from pathlib import Path

from tests.line_coverage import WHOLE

ROOT = Path(__file__).resolve().parents[1]


def test_the_files_that_have_to_be_whole_are_there() -> None:
    assert [name for name in WHOLE if not (ROOT / name).is_file()] == []
