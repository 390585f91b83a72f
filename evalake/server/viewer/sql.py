"""Questions in SQL: what `evalake sql` answers, by the same confined process and within the same limits."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from evalake.core.errors import QueryError
from evalake.core.hashing import plain
from evalake.server.settings import BusyError, WrongQueryError
from evalake.server.viewer.access import LakeHere
from evalake.server.viewer.export import file_of
from evalake.storage.lake import Lake
from evalake.storage.sql.catalogue import Entry, catalogue
from evalake.storage.sql.query import Result, as_text, open_query
from evalake.suites.registry import all_contracts, usable_suites

MOST_ROWS = 1000  # of an answer that is shown
MOST_CHARACTERS = 2_000_000  # of all its cells
LONGEST_TEXT = 20_000  # of one cell
LARGEST_WHOLE = 2**53  # that a browser reads exactly
AT_ONCE = 2  # queries; each may take two gigabytes and a minute

_running = threading.BoundedSemaphore(AT_ONCE)


class Question(BaseModel):
    """A query."""

    model_config = ConfigDict(extra="forbid")

    query: Annotated[str, Field(min_length=1, max_length=100_000)]


class QuestionForFile(Question):
    """A query whose whole result is wanted as a file."""

    format: Literal["csv", "parquet"]
    spreadsheet_safe: bool = Field(False, description="In CSV, put ' before text that a spreadsheet would run.")


class ResultColumn(BaseModel):
    """A column of a result."""

    name: str
    type: str
    is_number: bool


class Answer(BaseModel):
    """The first rows of a result; `total` counts all."""

    columns: list[ResultColumn]
    rows: list[list[str | int | float | bool | None]]
    total: int
    cut_cells: int  # cells of which only the beginning is here


class Example(BaseModel):
    """A query that a suite declares."""

    suite: str
    title: str
    query: str


class Askable(BaseModel):
    """What can be asked about."""

    tables: tuple[Entry, ...]
    examples: list[Example]


def askable(lake: LakeHere) -> Askable:
    """List every table and view with its columns, and the queries that suites declare."""
    known = [*usable_suites(lake)]
    newest = "(select max_by(run_id, started_at) from runs where suite = '{}')"
    return Askable(
        tables=catalogue(all_contracts(lake)),
        examples=[
            Example(suite=each.name, title=each.title, query=query.replace("$run", newest.format(each.name)))
            for each in known
            for query in each.presentation.queries
        ],
    )


def ask(lake: LakeHere, question: Question) -> Answer:
    """Run a query and return its first rows.

    Raises WrongQueryError with the reason where it is wrong, refused, or stopped at a limit; BusyError where too many
    are running.
    """
    with _asked(lake, question) as result:
        return _answer(result)


def ask_for_file(lake: Lake, question: QuestionForFile) -> Iterator[bytes]:
    """Run a query and return its result as parts of a file. Raises as `ask` does, LakeError where there is none."""
    with _asked(lake, question) as result:
        return file_of(result.frames(), question.format, spreadsheet_safe=question.spreadsheet_safe)


@contextmanager
def _asked(lake: Lake, question: Question) -> Iterator[Result]:
    if not _running.acquire(blocking=False):
        raise BusyError(f"{AT_ONCE} queries are running already: ask again when one has ended")
    try:
        with open_query(lake, all_contracts(lake), question.query) as result:
            yield result
    except QueryError as error:
        raise WrongQueryError(str(error)) from error
    finally:
        _running.release()


def _answer(result: Result) -> Answer:
    rows: list[list[Any]] = []
    columns: list[ResultColumn] = []
    total = cut = characters = 0
    for frame in result.frames():
        columns = columns or [
            ResultColumn(name=name, type=kind.base_type().__name__, is_number=kind.is_numeric())
            for name, kind in frame.schema.items()
        ]
        if characters < MOST_CHARACTERS:
            for values in frame.head(MOST_ROWS - len(rows)).iter_rows():
                cells = [_cell(value) for value in values]
                cut += sum(is_cut for _, is_cut in cells)
                rows.append([cell for cell, _ in cells])
                characters += sum(len(cell) for cell, _ in cells if isinstance(cell, str))
                if characters >= MOST_CHARACTERS:
                    break
        total += frame.height
    return Answer(columns=columns, rows=rows, total=total, cut_cells=cut)


def _cell(value: Any) -> tuple[Any, bool]:
    """Convert a value to JSON that a browser reads exactly, and tell whether it is cut."""
    shown = plain(value)
    if isinstance(shown, dict | list):
        shown = as_text(value)
    elif isinstance(shown, int) and abs(shown) > LARGEST_WHOLE:
        shown = str(shown)
    is_cut = isinstance(shown, str) and len(shown) > LONGEST_TEXT
    return (shown[:LONGEST_TEXT] if is_cut else shown), is_cut
