"""What every application with the viewer's routes has: access control, answers to errors, indexes of a lake's runs."""

from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path, Query
from starlette.requests import HTTPConnection

from evalake.core.configuration import Configuration
from evalake.server.auth import AccessControl, Hosts, add_error_answers
from evalake.server.settings import Settings
from evalake.server.viewer.kept import Answers
from evalake.server.viewer.run_index import RunIndexes
from evalake.storage.lake import Lake
from evalake.tasks.runtime.context import CODE_VERSION


def new_application(settings: Settings, bound: str, **described: Any) -> FastAPI:
    """Make an application without routes, which answers to whom `settings` let in, at the address it is bound to."""
    app = FastAPI(
        **described,
        version=CODE_VERSION,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # they load scripts of other hosts
        redoc_url=None,
    )
    hosts = Hosts(bound, settings.configuration.service.allowed_hosts)
    app.add_middleware(AccessControl, settings=settings, hosts=hosts)
    app.state.run_indexes = RunIndexes(settings.lake)
    app.state.answers = Answers()
    app.state.configuration = settings.configuration
    add_error_answers(app)
    return app


async def _indexes(connection: HTTPConnection) -> RunIndexes:
    indexes: RunIndexes = connection.app.state.run_indexes
    return indexes


async def _answers(connection: HTTPConnection) -> Answers:
    found: Answers = connection.app.state.answers
    return found


async def _lake(connection: HTTPConnection) -> Lake:
    indexes: RunIndexes = connection.app.state.run_indexes
    return indexes.lake


async def _configuration(connection: HTTPConnection) -> Configuration:
    found: Configuration = connection.app.state.configuration
    return found


AnswersHere = Annotated[Answers, Depends(_answers)]
ConfigurationHere = Annotated[Configuration, Depends(_configuration)]
IndexesHere = Annotated[RunIndexes, Depends(_indexes)]
LakeHere = Annotated[Lake, Depends(_lake)]
RunId = Annotated[str, Path(max_length=300)]
ItemId = Annotated[str, Path(max_length=100)]
Name = Annotated[str | None, Query(max_length=200)]
