"""Files of a report are written whole, in a folder that is made, or the folder is named."""

import json
from pathlib import Path

import pytest

from evalake.core.errors import UsageError
from evalake.reports.files import as_json
from evalake.reports.page import write_files


def test_a_place_where_nothing_can_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match=r"cannot write the report to .*file/report: "):
        write_files(tmp_path / "file" / "report", {"page.html": ""})
    assert (tmp_path / "file").read_text() == "mine"


def test_halves_of_characters_are_written_as_escapes(tmp_path: Path) -> None:
    assert write_files(tmp_path, {"page.html": "a\udcff"}).read_text() == "a\\udcff"


def test_data_is_json_that_every_reader_takes() -> None:
    assert json.loads(as_json({"µ": [1, None]})) == {"µ": [1, None]}
    with pytest.raises(ValueError, match="JSON"):
        as_json({"value": float("nan")})
