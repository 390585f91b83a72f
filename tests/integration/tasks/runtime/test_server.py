"""A Prefect server that is named has to answer; without one, Prefect needs a folder."""

from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, PREFECT_HOME, temporary_settings

from evalake.tasks.runtime.server import ServerError, require_server


def test_one_that_does_not_answer_is_named_without_its_password() -> None:
    nowhere = {PREFECT_API_URL: "http://user:hidden@127.0.0.1:9/api", PREFECT_CLIENT_MAX_RETRIES: 0}
    with temporary_settings(nowhere), pytest.raises(ServerError, match="no Prefect server answers at") as refused:
        require_server()
    assert "127.0.0.1:9/api" in str(refused.value)
    assert "hidden" not in str(refused.value)


def test_without_one_the_folder_is_made_or_named(tmp_path: Path) -> None:
    with temporary_settings({PREFECT_API_URL: None, PREFECT_HOME: tmp_path / "home"}):
        require_server()
    assert (tmp_path / "home").is_dir()
    (tmp_path / "file").touch()
    with (
        temporary_settings({PREFECT_API_URL: None, PREFECT_HOME: tmp_path / "file"}),
        pytest.raises(ServerError, match="set PREFECT_HOME to a folder"),
    ):
        require_server()
