"""Routes of the viewer find the lake and its indexes in whichever application they are."""

from pathlib import Path

from fastapi import FastAPI

from service.viewer.access import add_state
from storage.lake import Lake


def test_an_application_has_the_indexes_of_its_lake(tmp_path: Path) -> None:
    app, lake = FastAPI(), Lake(str(tmp_path / "lake"))
    add_state(app, lake)
    assert app.state.run_indexes.lake == lake
