"""Routes of the viewer: runs, metrics, items, one item, questions in SQL. They only read."""

import time
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from evalake.contracts.tables import BATCH_JOBS, JUDGE_VERSIONS, METRIC_SNAPSHOTS, RUN_COVERAGE, RUNS, SNAPSHOTS
from evalake.server.viewer.access import AnswersHere, ConfigurationHere, IndexesHere, LakeHere
from evalake.server.viewer.checks import TableCheck, last_checks
from evalake.server.viewer.comparison import (
    ColumnsPage,
    ColumnsQuery,
    ComparisonQuery,
    ComparisonView,
    PairPage,
    PairsQuery,
    columns_page,
    comparison,
    pair_page,
)
from evalake.server.viewer.conversation import RequestView, request_view
from evalake.server.viewer.decided import ExplanationQuery, ExplanationView, GateHistory, explanation, gate_history
from evalake.server.viewer.download import WantedFile, items_file
from evalake.server.viewer.grading import SuspiciousView, suspicious
from evalake.server.viewer.item import ItemDetail, item_detail
from evalake.server.viewer.items import ItemPage, WantedPageQuery, WantedQuery, item_page
from evalake.server.viewer.kept import state_of
from evalake.server.viewer.overview import Metrics, StepView, metric_history, metric_steps
from evalake.server.viewer.run import (
    LettersView,
    RunDetail,
    ValueView,
    run_detail,
    run_letters,
    run_values,
)
from evalake.server.viewer.run_list import RunPage, WantedRuns, run_page
from evalake.server.viewer.sides import SidesPage, SidesQuery, sides_page
from evalake.server.viewer.sql import Answer, Askable, Question, QuestionForFile, ask, ask_for_file, askable

router = APIRouter(prefix="/api/v1", tags=["viewer"])

Name = Annotated[str | None, Query(max_length=200)]
MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl",
    "parquet": "application/vnd.apache.parquet",
}
LISTED = (RUNS, METRIC_SNAPSHOTS, RUN_COVERAGE, BATCH_JOBS)
MEASURED = (RUNS, METRIC_SNAPSHOTS, SNAPSHOTS, RUN_COVERAGE, JUDGE_VERSIONS)
"""The tables that the list of runs, and that of metric values, is made from."""
LOST_SECONDS = 60.0  # after which the list is made again, because a run that is silent for minutes is lost
RunId = Annotated[str, Path(max_length=300)]
ItemId = Annotated[str, Path(max_length=100)]


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


@router.get("/metrics", response_model=Metrics, responses=_refusals(401, 500))
def read_metrics(
    lake: LakeHere,
    answers: AnswersHere,
    suite: Name = None,
    metric: Annotated[list[str] | None, Query(max_length=50)] = None,
    slice_: Annotated[str, Query(alias="slice", max_length=200)] = "all",
    run_id: Name = None,
    tag: Name = None,
) -> Response:
    """List metric values of all snapshots, or of those of runs with a tag, oldest first."""
    wanted = (suite, tuple(metric or ()), slice_, run_id, tag)
    return answers.answer(("metrics", wanted), state_of(lake, MEASURED), lambda: metric_history(lake, *wanted))


@router.get("/metrics/steps", responses=_refusals(401, 500))
def read_steps(
    lake: LakeHere,
    suite: Annotated[str, Query(max_length=200)],
    metric: Annotated[str, Query(max_length=200)],
    slice_: Annotated[str, Query(alias="slice", max_length=200)] = "all",
    model: Name = None,
    tag: Name = None,
) -> list[StepView]:
    """Compute how a metric moved between comparable snapshots, with paired intervals: its newest steps."""
    return metric_steps(lake, suite, metric, slice_, model, tag)


@router.get("/runs/{run_id}", responses=_refusals(400, 401, 404, 500))
def read_run(run_id: RunId, indexes: IndexesHere) -> RunDetail:
    """Read a run whole: values with intervals, warnings, provenance, failures, and what its items can be chosen by."""
    return run_detail(indexes, run_id)


@router.get("/runs/{run_id}/values", responses=_refusals(400, 401, 404, 500))
def read_values(run_id: RunId, indexes: IndexesHere) -> list[ValueView]:
    """List every value of the run's snapshot, those over all samples first, and headline metrics before others."""
    return run_values(indexes, run_id)


@router.get("/runs/{run_id}/letters", responses=_refusals(400, 401, 404, 500))
def read_letters(run_id: RunId, indexes: IndexesHere) -> list[LettersView]:
    """List models in the order of the ranking, with their letters, and what they lack."""
    return run_letters(indexes, run_id)


@router.get("/runs/{run_id}/opposed", responses=_refusals(400, 401, 404, 500))
def read_opposed(run_id: RunId, indexes: IndexesHere) -> SuspiciousView:
    """List the items whose labels may be wrong: better models are worse on them, or people dispute them."""
    return suspicious(indexes, run_id)


@router.get("/runs/{run_id}/items", responses=_refusals(400, 401, 404, 500))
def read_items(run_id: RunId, indexes: IndexesHere, wanted: WantedPageQuery) -> ItemPage:
    """List the items of a run, filtered, sorted, and a page at a time. An item is one sample with all its answers."""
    return item_page(indexes, run_id, wanted)


@router.get("/runs/{run_id}/items.file", response_class=StreamingResponse, responses=_refusals(400, 401, 404, 500))
def read_items_file(run_id: RunId, indexes: IndexesHere, wanted: Annotated[WantedFile, Query()]) -> StreamingResponse:
    """Read all answers that the filters keep, as CSV, JSONL or Parquet: a row an answer, with its texts."""
    return _file(items_file(indexes, run_id, wanted), "answers", wanted.format)


@router.get("/runs/{run_id}/items/{item_id}", responses=_refusals(400, 401, 404, 500))
def read_item(run_id: RunId, item_id: ItemId, indexes: IndexesHere, wanted: WantedQuery) -> ItemDetail:
    """Read an item whole, every message as plain text, and its neighbours among the items that the filters keep."""
    return item_detail(indexes, run_id, item_id, wanted)


@router.get("/requests/{prompt_hash}", responses=_refusals(401, 404, 500))
def read_request(prompt_hash: ItemId, lake: LakeHere, configuration: ConfigurationHere) -> RequestView:
    """Read a request as it was sent, and the commands that ask it again."""
    return request_view(lake, configuration, prompt_hash)


@router.get("/compare", responses=_refusals(400, 401, 404, 500))
def read_comparison(lake: LakeHere, wanted: ComparisonQuery) -> ComparisonView:
    """Compute how A differs from B, as `evalake compare` does."""
    return comparison(lake, wanted)


@router.get("/compare/items", responses=_refusals(400, 401, 404, 500))
def read_pairs(indexes: IndexesHere, wanted: PairsQuery) -> PairPage:
    """List the samples that both sides have answered, one answer of each beside the other."""
    return pair_page(indexes, wanted)


@router.get("/compare/columns", responses=_refusals(400, 401, 404, 500))
def read_columns(indexes: IndexesHere, wanted: ColumnsQuery) -> ColumnsPage:
    """List the samples that several sides have answered, an answer of each beside the others."""
    return columns_page(indexes, wanted)


@router.get("/compare/sides", responses=_refusals(400, 401, 404, 500))
def read_sides(lake: LakeHere, wanted: SidesQuery) -> SidesPage:
    """Compute letters of two to six sides in one metric, and their differences from the first by slice."""
    return sides_page(lake, wanted)


@router.get("/explain", responses=_refusals(400, 401, 404, 500))
def read_explanation(lake: LakeHere, wanted: ExplanationQuery) -> ExplanationView:
    """Split A - B exactly into what made it, as `evalake explain` does, with the rows behind each part."""
    return explanation(lake, wanted)


@router.get("/gates", responses=_refusals(401, 500))
def read_gates(lake: LakeHere, suite: Name = None) -> list[GateHistory]:
    """List what gates decided over time, by rule, model and judge."""
    return gate_history(lake, suite)


@router.get("/checks", responses=_refusals(401, 500))
def read_checks(lake: LakeHere) -> list[TableCheck]:
    """List the rules of each table, and what came of them when it was checked last."""
    return last_checks(lake)


@router.get("/sql", responses=_refusals(401, 500))
def read_askable(lake: LakeHere) -> Askable:
    """List every table and view with its columns, and the queries that suites declare to begin with."""
    return askable(lake)


@router.post("/sql", responses=_refusals(400, 401, 429, 500))
def ask_in_sql(lake: LakeHere, question: Question) -> Answer:
    """Run a query, and return its first rows, as `evalake sql` does. It only reads; by POST, for queries are long."""
    return ask(lake, question)


@router.post("/sql/file", response_class=StreamingResponse, responses=_refusals(400, 401, 429, 500))
def ask_for_a_file(lake: LakeHere, question: QuestionForFile) -> StreamingResponse:
    """Run a query, and return all rows of its result, as CSV or Parquet."""
    return _file(ask_for_file(lake, question), "result", question.format)


def _file(parts: Iterator[bytes], name: str, style: str) -> StreamingResponse:
    headers = {"content-disposition": f'attachment; filename="{name}.{style}"'}
    return StreamingResponse(parts, headers=headers, media_type=MEDIA_TYPES[style])
