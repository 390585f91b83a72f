"""`evalake maintain`: what snapshots pin is kept."""

from tests.cli.command import evalake_here
from tests.cli.conftest import Imported


def test_maintenance_keeps_what_snapshots_pin(imported: Imported) -> None:
    assert evalake_here("maintain", "--dry-run", folder=imported.folder).returncode == 0
    done = evalake_here("maintain", folder=imported.folder)
    assert done.returncode == 0, done.stderr
    assert (
        evalake_here("check", folder=imported.folder).returncode == 0
    )  # recomputes the snapshot from its pinned versions
