"""Routes of the viewer find the lake and its indexes in whichever application they are."""

from pathlib import Path

from evalake.server.settings import Settings
from evalake.server.viewer.access import new_application
from evalake.storage.lake import Lake


def test_an_application_has_the_indexes_of_its_lake(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    app = new_application(Settings(lake=lake), "127.0.0.1", title="any")
    assert app.state.run_indexes.lake == lake
