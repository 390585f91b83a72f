"""`evalake doctor`: each finding is a line, and a problem is an exit code."""

from pathlib import Path

from tests.cli.command import evalake


def test_a_machine_without_a_server_has_a_problem(tmp_path: Path) -> None:
    done = evalake("doctor", folder=tmp_path, PREFECT_API_URL="", PREFECT_HOME=str(tmp_path / "home"))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("problem  server          no Prefect server is named")
    assert max(map(len, done.stdout.splitlines())) <= 80
