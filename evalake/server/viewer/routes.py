"""The viewer: its routes, which only read, and its application for `evalake view`. With --write it keeps labels."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from pydantic import BaseModel

from evalake.contracts.tables import BATCH_JOBS, JUDGE_VERSIONS, METRIC_SNAPSHOTS, RUN_COVERAGE, RUNS, SNAPSHOTS
from evalake.server.auth import Hosts
from evalake.server.listening import Server, require_reachable_by_whom
from evalake.server.pages import add_pages, addresses
from evalake.server.processes import listen
from evalake.server.settings import Settings
from evalake.server.viewer import grading, overview
from evalake.server.viewer.access import (
    KNOWN_QUERY,
    AnswersHere,
    IndexesHere,
    LakeHere,
    Name,
    RunId,
    new_application,
    state_of,
)
from evalake.server.viewer.comparison import columns_page, comparison, pair_page, sides_page
from evalake.server.viewer.conversation import request_view
from evalake.server.viewer.export import WantedFile, items_file
from evalake.server.viewer.grading import suspicious
from evalake.server.viewer.item import item_detail
from evalake.server.viewer.items import item_page
from evalake.server.viewer.run import run_detail, run_letters, run_values
from evalake.server.viewer.run_list import RunPage, WantedRuns, run_page
from evalake.server.viewer.sql import QuestionForFile, ask, ask_for_file, askable
from evalake.tasks.runtime.context import CODE_VERSION

router = APIRouter(prefix="/api/v1", tags=["viewer"], dependencies=[KNOWN_QUERY])

MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl",
    "parquet": "application/vnd.apache.parquet",
}
LISTED = (RUNS, METRIC_SNAPSHOTS, RUN_COVERAGE, BATCH_JOBS)
MEASURED = (RUNS, METRIC_SNAPSHOTS, SNAPSHOTS, RUN_COVERAGE, JUDGE_VERSIONS)
"""The tables that the list of runs, and that of metric values, is made from."""
LOST_SECONDS = 60.0  # after which the list is made again, because a run that is silent for minutes is lost


class Refusal(BaseModel):
    """Why a request was not answered."""

    detail: str


def _refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Refusal} for status in statuses}


@router.get("/runs", response_model=RunPage, responses=_refusals(400, 401, 500))
def read_runs(lake: LakeHere, answers: AnswersHere, wanted: Annotated[WantedRuns, Query()]) -> Response:
    """List the runs of every suite, newest first, each with its headline value and what is missing."""
    state = (state_of(lake, LISTED), int(time.monotonic() / LOST_SECONDS))
    return answers.answer(("runs", wanted.model_dump_json()), state, lambda: run_page(lake, wanted))


@router.get("/metrics", response_model=overview.Metrics, responses=_refusals(401, 500))
def read_metrics(
    lake: LakeHere,
    answers: AnswersHere,
    suite: Name = None,
    metric: Annotated[list[str] | None, Query(max_length=50)] = None,
    slice_: overview.SliceName = "all",
    run_id: Name = None,
    tag: Name = None,
) -> Response:
    """List metric values of all snapshots, or of those of runs with a tag, oldest first."""
    wanted = (suite, tuple(metric or ()), slice_, run_id, tag)
    return answers.answer(("metrics", wanted), state_of(lake, MEASURED), lambda: overview.metric_history(lake, *wanted))


@router.get("/runs/{run_id}/items.file", response_class=StreamingResponse, responses=_refusals(400, 401, 404, 500))
def read_items_file(run_id: RunId, indexes: IndexesHere, wanted: Annotated[WantedFile, Query()]) -> StreamingResponse:
    """Read all answers that the filters keep, as CSV, JSONL or Parquet: a row an answer, with its texts."""
    return _file(items_file(indexes, run_id, wanted), "answers", wanted.format)


@router.post("/sql/file", response_class=StreamingResponse, responses=_refusals(400, 401, 429, 500))
def ask_for_a_file(lake: LakeHere, question: QuestionForFile) -> StreamingResponse:
    """Run a query, and return all rows of its result, as CSV or Parquet."""
    return _file(ask_for_file(lake, question), "result", question.format)


# The other routes: where each answers, the function that does, and the statuses with which it refuses.
WRONG = (400, 401, 404, 500)
READS: Mapping[str, tuple[Callable[..., Any], Sequence[int]]] = {
    "/runs/{run_id}": (run_detail, WRONG),
    "/runs/{run_id}/values": (run_values, WRONG),
    "/runs/{run_id}/letters": (run_letters, WRONG),
    "/runs/{run_id}/opposed": (suspicious, WRONG),
    "/runs/{run_id}/items": (item_page, WRONG),
    "/runs/{run_id}/items/{item_id}": (item_detail, WRONG),
    "/requests/{prompt_hash}": (request_view, (401, 404, 500)),
    "/compare": (comparison, WRONG),
    "/compare/items": (pair_page, WRONG),
    "/compare/columns": (columns_page, WRONG),
    "/compare/sides": (sides_page, WRONG),
    "/explain": (overview.explanation, WRONG),
    "/metrics/steps": (overview.metric_steps, (401, 500)),
    "/gates": (overview.gate_history, (401, 500)),
    "/checks": (overview.last_checks, (401, 500)),
    "/sql": (askable, (401, 500)),
}
for place, (answers_it, statuses) in READS.items():
    router.get(place, responses=_refusals(*statuses))(answers_it)
router.post("/sql", responses=_refusals(400, 401, 429, 500))(ask)  # it only reads; by POST, for queries are long


def _file(parts: Iterator[bytes], name: str, style: str) -> StreamingResponse:
    headers = {"content-disposition": f'attachment; filename="{name}.{style}"'}
    return StreamingResponse(parts, headers=headers, media_type=MEDIA_TYPES[style])


def create_viewer(settings: Settings, bound: str = "127.0.0.1") -> FastAPI:
    """Build the viewer as an ASGI application.

    Args:
        settings: What it is started with.
        bound: The address that it listens on, by which it may be addressed.
    """
    description = "Runs, their metrics, and every sample of them, to be read."
    app = new_application(settings, bound, title="evalake viewer", description=description)
    app.include_router(router)
    app.include_router(grading.router)
    if settings.writes:
        app.include_router(grading.writing(settings, Hosts(bound, settings.configuration.service.allowed_hosts)))

    @app.get("/api/v1/status")
    async def read_status(request: Request) -> dict[str, str | bool | None]:
        """Read the version, and who is asking."""
        return {
            "version": CODE_VERSION,
            "user": request.state.user,
            "prefect_url": None,
            "only_viewer": True,
            "writes": settings.writes,
        }

    @app.get("/", include_in_schema=False)
    async def first_page() -> RedirectResponse:
        return RedirectResponse(addresses()["viewer"]["runs"])

    add_pages(app, only_viewer=True)
    return app


def view(settings: Settings, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve the viewer until told to stop. `announce` is called with the address, once requests are answered.

    Raises UsageError where others reach the viewer and it could not tell who asks, or the port is taken.
    """
    require_reachable_by_whom(settings, host)
    with listen(host, port) as listener:
        Server(create_viewer(settings, host), settings, listener, announce, timeout_graceful_shutdown=5).run()
