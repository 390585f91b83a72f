"""Every promise of docs/security.md names tests that there are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (?!promise |who |-)(.+) \|$", re.MULTILINE)
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)`", PAGE)))


@pytest.mark.parametrize("file", NAMED)
def test_a_test_that_is_named_exists(file: str) -> None:
    assert (ROOT / file).is_file()


def test_every_promise_in_a_table_names_its_test() -> None:
    promises = [row for row in ROW.findall(PAGE) if row.count(" | ") == 1]
    assert len(promises) > 20
    assert [row for row in promises if "tests/" not in row.rpartition(" | ")[2]] == []
