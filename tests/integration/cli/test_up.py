"""`evalake status` and `evalake down` where nothing runs; tests/e2e/test_up.py has what starts."""

from pathlib import Path

import pytest

from tests.integration.cli.command import evalake_here


@pytest.mark.parametrize("words", [("status",), ("down",)])
def test_where_nothing_runs_it_is_said(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = evalake_here(*words, folder=tmp_path)
    assert done.stderr.count("\n") == 1
    assert f"{tmp_path}/lake" in done.stderr


def test_a_suite_that_there_is_not_ends_it_with_one_sentence_and_nothing_is_started(tmp_path: Path) -> None:
    (tmp_path / "prefect.yaml").write_text("deployments: [{name: nightly, parameters: {suite: comand_guard}}]")
    (tmp_path / "evalake.toml").write_text("")
    done = evalake_here("up", "--trust-folder", folder=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the deployment nightly names the suite 'comand_guard', which there is not" in done.stderr
    assert "nothing runs" in evalake_here("status", folder=tmp_path).stderr
