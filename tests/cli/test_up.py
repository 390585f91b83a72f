"""`evalake status` and `evalake down` where nothing runs; tests/e2e/test_up.py has what starts."""

from pathlib import Path

import pytest

from tests.cli.command import evalake_here


@pytest.mark.parametrize("words", [("status",), ("down",)])
def test_where_nothing_runs_it_is_said(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = evalake_here(*words, folder=tmp_path)
    assert done.stderr.count("\n") == 1
    assert f"{tmp_path}/lake" in done.stderr
