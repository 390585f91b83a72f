"""`evalake export`: contracts as files."""

from pathlib import Path

from tests.integration.cli.command import evalake_here


def test_contracts_are_exported(tmp_path: Path) -> None:
    done = evalake_here("export", "contracts", "--out", "odcs", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "odcs" / "command_guard_results.yaml").exists()
