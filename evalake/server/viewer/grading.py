"""Grading in place: the questions of `evalake label` in the viewer, one line at a time, and what people say of a run.

Who may read may see the questions. Writing needs `evalake view --write`, the token, a page of ours, and a name.
"""

from datetime import UTC, datetime
from typing import Annotated, Any

import polars as pl
from fastapi import APIRouter, Depends, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.requests import Request

from evalake.contracts.tables.people import DISPUTES
from evalake.core.errors import UsageError
from evalake.core.hashing import plain
from evalake.core.redaction import visible
from evalake.labels.grading import (
    Annotator,
    Grading,
    answered_by,
    between_people,
    dispute,
    disputed,
    is_blind,
    texts_of,
    title,
)
from evalake.labels.sheets import land_labels
from evalake.sdk.sheets import Line, blind_name, read_labels, stage_of
from evalake.server.auth import Hosts, require_token
from evalake.server.settings import NotFoundError, Settings, WrongQueryError
from evalake.server.viewer.access import KNOWN_QUERY, IndexesHere, ItemId, RunId
from evalake.server.viewer.run import ItemsView, run_opposed
from evalake.server.viewer.run_index import RunIndex, RunIndexes

SIZE = 30  # results of a draw, as `evalake label export` draws them
_KEY = ("prompt_hash", "sample_hash", "model", "replicate", "judge_hash", "finding_id", "fill_in")


def _plain_name(name: str) -> str:
    """Refuse a name that no table could hold, or that shows as another: control, direction and unseen characters."""
    if name != name.strip() or visible(name) != name or "\n" in name or "\t" in name:
        raise ValueError("a name has no control or unseen characters, and no blanks around it")
    return name


Who = Annotated[Annotator, AfterValidator(_plain_name)]
Hash = Annotated[str, Field(max_length=100)]
Text = Annotated[str, Field(max_length=2000)]


class LineKey(BaseModel):
    """Which line of a draw is meant."""

    model_config = ConfigDict(extra="forbid")

    prompt_hash: Hash
    sample_hash: Hash
    model: Annotated[str, Field(max_length=700)]
    replicate: int
    judge_hash: Hash | None
    finding_id: int | None
    fill_in: Annotated[str, Field(max_length=500)]


class QuestionView(BaseModel):
    """A question: its words to choose from, or a number from 0 to `most`."""

    name: str
    title: str
    help: str
    answers: list[str]
    most: float | None


class LineView(BaseModel):
    """A line: what it is about and shows, and its questions. A blind one says nothing else of its sample."""

    key: LineKey
    number: int  # its place in the draw, from 1; among all lines of an item
    blind: bool
    drawn: bool
    title: str
    words: str
    texts: dict[str, str]
    questions: list[QuestionView]


class Queue(BaseModel):
    """How far a person is in a draw, and the next line that this person has not answered (None: none is left)."""

    draw: str | None
    total: int
    done: int
    people: dict[str, int]  # how many lines of the draw each person has answered
    next: LineView | None


class ItemGrading(BaseModel):
    """What a person is still asked about one item, and what was said of its ground truth."""

    blind: list[LineView]
    open: list[LineView]
    answered: int
    disputed_by: list[str]


class Grade(BaseModel):
    """What a person answers to a line."""

    model_config = ConfigDict(extra="forbid")

    annotator: Who
    line: LineKey
    answers: Annotated[dict[Annotated[str, Field(max_length=100)], Text | float | None], Field(max_length=50)]
    note: Text | None = None
    size: Annotated[int, Field(ge=1, le=1000)] = SIZE


class Dispute(BaseModel):
    """Whether a person holds the ground truth of an item to be wrong, and why."""

    model_config = ConfigDict(extra="forbid")

    annotator: Who
    disputed: bool
    note: Text | None = None


class Kept(BaseModel):
    """What was written."""

    labels: int  # answers that are new, or in the place of earlier ones


class DisputedItem(BaseModel):
    """An item whose ground truth people dispute, or answer otherwise."""

    item_id: str
    sample_id: str
    label: str | None
    reasons: list[str]


class SuspiciousView(ItemsView):
    """Items whose labels may be wrong: those that discriminate the wrong way, and those that people dispute."""

    disputed: list[DisputedItem]


Name = Annotated[Who, Query()]
Size = Annotated[int, Query(ge=1, le=1000)]

router = APIRouter(prefix="/api/v1", tags=["grading"], dependencies=[KNOWN_QUERY])


@router.get("/runs/{run_id}/grading")
def read_queue(
    run_id: RunId,
    indexes: IndexesHere,
    annotator: Name,
    size: Size = SIZE,
    after: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    more: bool = False,
) -> Queue:
    """Read how far a person is in a draw, and the next line to be answered; `after` skips, `more` draws further.

    That is of the newest draw that the person has not answered whole; of a new one where `more`.
    Raises NotFoundError for no such run, WrongQueryError where its suite asks people nothing.
    """
    grading = _grading(indexes, run_id)
    known = frozenset(grading.labels["label_id"])
    last: Queue | None = None
    for lines in grading.draws(size):
        is_fresh = not grading.labels["draw"].eq(lines[0]["draw"]).any()
        if (more and not is_fresh) or (is_fresh and last is not None and not more):
            continue
        pending = [
            (number, line)
            for number, line in enumerate(lines, start=1)
            if not answered_by(grading.labelling, line, annotator, known)
        ]
        following = next(((number, line) for number, line in pending if number > after), None)
        found = Queue(
            draw=lines[0]["draw"],
            total=len(lines),
            done=len(lines) - len(pending),
            people=_people(grading, lines, known),
            next=None if following is None else _view(grading, *following),
        )
        if found.next is not None:
            return found
        last = last or found
    return last or Queue(draw=None, total=0, done=0, people={}, next=None)


def _people(grading: Grading, lines: list[Line], known: frozenset[str]) -> dict[str, int]:
    names = grading.labels.filter(pl.col("draw") == lines[0]["draw"])["annotator"].unique().sort()
    return {each: sum(answered_by(grading.labelling, line, each, known) for line in lines) for each in names}


@router.get("/runs/{run_id}/items/{item_id}/grading")
def read_item_grading(
    run_id: RunId, item_id: ItemId, indexes: IndexesHere, annotator: Name, size: Size = SIZE
) -> ItemGrading:
    """Read what a person is still asked about an item: its lines of a draw, else lines about all of its answers.

    Raises as `read_queue` does, and NotFoundError where the run has no such item.
    """
    _sample(indexes.of(run_id), item_id)
    grading = _grading(indexes, run_id)
    known = frozenset(grading.labels["label_id"])
    lines = _lines_of(grading, item_id, size)
    pending = [line for line in lines if not answered_by(grading.labelling, line, annotator, known)]
    shown = [_view(grading, number, line) for number, line in enumerate(pending, start=1)]
    flags = grading.labels.filter(pl.col("question") == DISPUTES, pl.col("sample_hash") == item_id)
    flags = flags.sort("labelled_at").unique("annotator", keep="last").filter(pl.col("answer") == "yes")
    return ItemGrading(
        blind=[each for each in shown if each.blind],
        open=[each for each in shown if not each.blind],
        answered=len(lines) - len(pending),
        disputed_by=flags["annotator"].sort().to_list(),
    )


def write_grade(run_id: RunId, indexes: IndexesHere, given: Grade) -> Kept:
    """Keep what a person answers to a line, in `human_labels`.

    The line is read from the lake again: its draw is not the client's to say.
    Raises as `read_queue` does, and WrongQueryError for answers that the line does not ask for, or none.
    """
    grading = _grading(indexes, run_id)
    wanted = given.line.model_dump()
    lines = _lines_of(grading, given.line.sample_hash, given.size)
    line = next((each for each in lines if {name: each[name] for name in _KEY} == wanted), None)
    if line is None:
        raise NotFoundError("the run has no such line: it was scored again or forgotten; load the page again")
    asked = {question.heading for stage in stage_of(grading.labelling, line) for question in stage.questions}
    if strange := sorted(given.answers.keys() - asked):
        raise WrongQueryError(f"this line does not ask {visible(strange[0])!r}: it asks {', '.join(sorted(asked))}")
    labels = read_labels(
        grading.labelling, [(1, {**line, **given.answers, "note": given.note})], given.annotator, datetime.now(UTC)
    )
    if labels.refused:
        raise WrongQueryError(labels.refused[0].reason)
    if labels.empty:
        raise WrongQueryError("nothing was answered: choose an answer, or skip the line")
    landed = land_labels(indexes.lake, labels).landed
    return Kept(labels=landed.inserted + landed.replaced)


def write_dispute(run_id: RunId, item_id: ItemId, indexes: IndexesHere, given: Dispute) -> Kept:
    """Keep that a person disputes an item's ground truth, or takes it back. Raises NotFoundError for no such item."""
    index = indexes.of(run_id)
    row = _sample(index, item_id)
    model = str(index.answers.filter(pl.col("place") == row["place"])["model"][0])
    landed = dispute(
        indexes.lake, index.suite, {**row, "model": model}, given.annotator, is_wrong=given.disputed, note=given.note
    )
    return Kept(labels=landed.inserted + landed.replaced)


def suspicious(indexes: IndexesHere, run_id: RunId) -> SuspiciousView:
    """Find the items whose labels may be wrong; raises as `run_opposed` does."""
    index = indexes.of(run_id)
    reasons: dict[str, list[str]] = {}
    for item, who, why in disputed(indexes.lake, index.suite, run_id).iter_rows():
        reasons.setdefault(item, []).append(why if who == "people" else f"{who}: {why}")
    rows = index.samples.filter(pl.col("sample_hash").is_in(list(reasons))).sort("place")
    listed = [
        DisputedItem(item_id=item, sample_id=name, label=label, reasons=reasons[item])
        for item, name, label in rows.select("sample_hash", "sample_id", "label").iter_rows()
    ]
    return SuspiciousView(**dict(run_opposed(indexes, run_id)), disputed=listed)


@router.get("/runs/{run_id}/grading/agreement")
def read_agreement(run_id: RunId, indexes: IndexesHere) -> list[dict[str, Any]]:
    """Read how far every two people agree, question by question, with intervals; nothing where no two did the same."""
    index = indexes.of(run_id)
    try:
        rows = between_people(indexes.lake, index.suite, run_id)
    except UsageError:
        return []
    shown: list[dict[str, Any]] = plain(rows.to_dicts())
    return shown


def _grading(indexes: RunIndexes, run_id: str) -> Grading:
    suite = indexes.of(run_id).suite
    try:
        return Grading.read(indexes.lake, suite, run_id)
    except UsageError as error:
        raise WrongQueryError(str(error)) from error


def _lines_of(grading: Grading, item_id: str, size: int) -> list[Line]:
    """Find an item's lines in the draws that were begun or come next; where it is in none, write lines about it."""
    for lines in grading.draws(size):
        if ours := [line for line in lines if line["sample_hash"] == item_id]:
            return ours
    return grading.about(item_id)


def _sample(index: RunIndex, item_id: str) -> dict[str, Any]:
    rows = index.samples.filter(pl.col("sample_hash") == item_id)
    if rows.is_empty():
        raise NotFoundError("the run has no such item")
    return rows.row(0, named=True)


def _view(grading: Grading, number: int, line: Line) -> LineView:
    stages = stage_of(grading.labelling, line)
    blind = is_blind(grading.labelling, line)
    return LineView(
        key=LineKey(**{name: line[name] for name in _KEY}),
        number=number,
        blind=blind,
        drawn=line["draw"] is not None,
        title=blind_name(line["sample_hash"]) if blind else title(line),
        words=" ".join(stage.words for stage in stages),
        texts=texts_of(grading.labelling, line),
        questions=[
            QuestionView(
                name=each.heading,
                title=each.title,
                help=each.help,
                answers=list(each.answers),
                most=None if each.answers else each.most,
            )
            for stage in stages
            for each in stage.questions
        ],
    )


def writing(settings: Settings, hosts: Hosts) -> APIRouter:
    """Build the routes that write: each asks for the token, and for an origin of our own."""

    def may_write(request: Request) -> None:
        require_token(request, settings)
        hosts.require_same_origin(request)

    routes = APIRouter(prefix="/api/v1", tags=["grading"], dependencies=[Depends(may_write), KNOWN_QUERY])

    routes.post("/runs/{run_id}/grading")(write_grade)
    routes.post("/runs/{run_id}/items/{item_id}/dispute")(write_dispute)
    return routes
