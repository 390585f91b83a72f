"""What routes of the viewer are given, in whichever application they are: the lake, and the indexes of its runs."""

from typing import Annotated

from fastapi import Depends, FastAPI
from starlette.requests import HTTPConnection

from service.viewer.run_index import RunIndexes
from storage.lake import Lake


def add_state(app: FastAPI, lake: Lake) -> None:
    """Give an application what the viewer's routes need."""
    app.state.run_indexes = RunIndexes(lake)


def _indexes(connection: HTTPConnection) -> RunIndexes:
    indexes: RunIndexes = connection.app.state.run_indexes
    return indexes


def _lake(connection: HTTPConnection) -> Lake:
    return _indexes(connection).lake


IndexesHere = Annotated[RunIndexes, Depends(_indexes)]
LakeHere = Annotated[Lake, Depends(_lake)]
