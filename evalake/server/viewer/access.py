"""What every application with the viewer's routes has: access control, answers to errors, indexes, kept answers."""

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cachetools import LRUCache
from fastapi import Depends, FastAPI, Query, Response
from fastapi import Path as PathPart
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.params import Path as PathParameter
from pydantic import BaseModel
from starlette.requests import HTTPConnection

from evalake.contracts.contract import Contract
from evalake.core.configuration import Configuration
from evalake.server.auth import AccessControl, Hosts, add_error_answers
from evalake.server.settings import Settings
from evalake.server.viewer.run_index import RunIndexes
from evalake.storage.lake import Lake
from evalake.tasks.runtime.context import CODE_VERSION

MOST_KEPT = 32  # answers; one of 5,000 metric values takes some 3 MB
OLDEST_SECONDS = 10.0  # since when an answer may be out of date


@dataclass
class _Kept:
    """The newest answer of a question, and when it was last up to date."""

    state: Hashable = None
    body: bytes | None = None
    current_at: float = 0.0


class Answers:
    """The answers of a lake. While one thread makes an answer, other readers get the ones before.

    One answer is made at a time: threads that compute beside each other take the interpreter from whoever reads.
    """

    def __init__(self) -> None:
        self._kept: LRUCache[Hashable, _Kept] = LRUCache(MOST_KEPT)
        self._lock, self._making = threading.Lock(), threading.Lock()

    def answer(self, question: Hashable, state: Hashable, make: Callable[[], BaseModel]) -> Response:
        """Answer with JSON: what is kept for the question, or a new answer where the state is another."""
        with self._lock:
            kept = self._kept.setdefault(question, _Kept())
        must_wait = kept.body is None or time.monotonic() - kept.current_at > OLDEST_SECONDS
        if kept.state != state and self._making.acquire(blocking=must_wait):
            try:
                if kept.state != state:
                    kept.body, kept.state = make().model_dump_json().encode(), state
            finally:
                self._making.release()
        if kept.state == state:
            kept.current_at = time.monotonic()
        return Response(kept.body, media_type="application/json")


def state_of(lake: Lake, contracts: Sequence[Contract]) -> tuple[Any, ...]:
    """Tell the states of tables apart: by the time of the last commit in a folder, by the version elsewhere."""
    if "://" in lake.uri:
        return tuple(map(lake.version, contracts))
    logs = [Path(lake.uri) / each.table / "_delta_log" for each in contracts]
    return tuple(log.stat().st_mtime_ns if log.is_dir() else None for log in logs)


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
    app.state.lake, app.state.run_indexes = settings.lake, RunIndexes(settings.lake)
    app.state.answers = Answers()
    app.state.configuration = settings.configuration
    add_error_answers(app)
    return app


def in_state(name: str) -> Any:
    """Build the dependency that looks up what an application has in its state."""

    async def look_up(connection: HTTPConnection) -> Any:
        return getattr(connection.app.state, name)

    return Depends(look_up)


async def _known_query(connection: HTTPConnection) -> None:
    """Refuse a parameter that the route does not have: ignored, a misspelt filter would answer another question."""
    fields = get_flat_params(connection.scope["route"].dependant)
    known = {each.alias for each in fields if not isinstance(each.field_info, PathParameter)}
    if strange := sorted(connection.query_params.keys() - known):
        raise RequestValidationError(
            [
                {"type": "extra_forbidden", "loc": ("query", name), "msg": "there is no such parameter"}
                for name in strange
            ]
        )


KNOWN_QUERY = Depends(_known_query)
AnswersHere = Annotated[Answers, in_state("answers")]
ConfigurationHere = Annotated[Configuration, in_state("configuration")]
IndexesHere = Annotated[RunIndexes, in_state("run_indexes")]
LakeHere = Annotated[Lake, in_state("lake")]
RunId = Annotated[str, PathPart(max_length=300)]
ItemId = Annotated[str, PathPart(max_length=100)]
Name = Annotated[str | None, Query(max_length=200)]
