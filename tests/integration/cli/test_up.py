"""`evalake status` and `evalake down` where nothing runs; tests/e2e/test_up.py has what starts."""

from pathlib import Path

import pytest

from evalake.cli.up import folder_to_deploy
from tests.integration.cli.command import evalake_here

ROOT = Path(__file__).resolve().parents[3]


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
    assert "the deployment nightly names the unknown suite 'comand_guard'" in done.stderr
    assert "nothing runs" in evalake_here("status", folder=tmp_path).stderr


def test_a_checkout_is_deployed_and_a_stranger_s_folder_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert folder_to_deploy(ROOT) == ROOT
    assert folder_to_deploy(tmp_path) is None
    assert "this folder has no prefect.yaml: for schedules, `evalake init DIR`" in capsys.readouterr().err
    (tmp_path / "prefect.yaml").write_text("deployments: []")
    assert folder_to_deploy(tmp_path) is None
    assert "add --trust-folder if it is yours" in capsys.readouterr().err
