"""`evalake calibrate`: what it refuses before anything is asked."""

from pathlib import Path

import pytest

from tests.integration.cli.command import evalake_here


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--judges", "openai/judge", "--suite", "command_guard"), "command_guard has no calibration set"),
        (("--judges", " , "), "--judges names nothing"),
        ((), "--judges"),
    ],
)
def test_a_mistake_is_told_before_a_server_is_started(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    done = evalake_here("calibrate", *arguments, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert "Prefect" not in done.stderr
