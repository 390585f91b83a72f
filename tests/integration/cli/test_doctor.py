"""`evalake doctor`: each finding is a line, and a problem is an exit code."""

from pathlib import Path

from tests.integration.cli.command import evalake_here


def test_a_machine_without_a_server_is_told_what_works(tmp_path: Path) -> None:
    done = evalake_here("doctor", folder=tmp_path, PREFECT_API_URL="", PREFECT_HOME=str(tmp_path / "home"))
    assert (done.returncode, done.stderr) == (0, "")
    machine, deployment = done.stdout.split("The deployment: ")
    assert "ok       keys" in machine
    assert "hint     server          no Prefect server is named: commands work" in deployment
    assert deployment.endswith("evaluations can run on this machine; nothing is scheduled\n")
    none = {"PREFECT_API_URL": "", "PREFECT_HOME": str(tmp_path / "home")}
    deploying = evalake_here("doctor", "--deploying", folder=tmp_path, **none)
    assert (deploying.returncode, "\nproblem  server" in deploying.stdout) == (1, True)
    assert max(map(len, done.stdout.splitlines())) <= 80
