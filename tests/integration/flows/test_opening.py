"""What flows begin with: the lake and configuration that they were given, and contexts in which judges can be asked."""

from pathlib import Path

import pytest

from evalake.core.configuration import Configuration
from evalake.core.errors import EvalakeError
from evalake.storage.lake import Lake
from evalake.tasks.runtime.form import flow_inputs, judge_context, open_lake, run_id_of


def test_the_lake_is_the_one_given_or_the_usual_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALAKE_LAKE", str(tmp_path / "usual"))
    assert open_lake(None).uri == str(tmp_path / "usual")
    assert open_lake(str(tmp_path / "given")).uri == str(tmp_path / "given")


def test_the_configuration_is_that_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("max_calls = 7\n")
    lake, configuration = flow_inputs(str(tmp_path / "lake"), str(tmp_path / "own.toml"))
    assert (lake.uri, configuration.max_calls) == (str(tmp_path / "lake"), 7)


def test_a_retry_of_a_flow_run_is_the_same_run() -> None:
    assert run_id_of("0197f8a2-5f2c-7c4e-9d55-7d1f6f0b8a11") == "7d1f6f0b8a11"


def test_a_judge_that_cannot_be_asked_is_named_before_anything_is_asked(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    nobody = judge_context("session_review", ["nobody/there"], lake, Configuration())
    with pytest.raises(EvalakeError, match="nobody"), nobody:
        pytest.fail("no context is given")
