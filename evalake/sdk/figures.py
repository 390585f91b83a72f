"""How a suite declares what its reports show: plots, tables and mistakes as data, by names of metrics and columns.

Nothing here draws. A further kind of figure is a dataclass here, a member of `Figure`, and one entry in
`evalake.reports.tables.KINDS`, which says how it is tabulated and drawn.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias, get_args, get_type_hints

import polars as pl


class Unit(StrEnum):
    """What a metric's values are, which decides how they are written."""

    SHARE = "share"  # 0..1, shown as a percentage
    SCORE = "score"  # a plain number, with three decimals
    POINTS = "points"  # of a scale of some tens, with one decimal
    COUNT = "count"
    MILLISECONDS = "milliseconds"
    US_DOLLARS = "us_dollars"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A metric as readers meet it: its name in `metric_snapshots`, a label, a unit, and which end is the good one."""

    metric: str
    label: str
    unit: Unit = Unit.SHARE
    higher_is_better: bool = True
    best_at_zero: bool = False  # neither end is the good one


@dataclass(frozen=True, slots=True)
class _Titled:
    """What every figure has: a title, and what a reader should know of it."""

    title: str
    note: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class Ranking(_Titled):
    """A table of models, best first by `quantity`, with letters and, where the report has a target, PASS or FAIL."""

    quantity: Quantity
    columns: tuple[Quantity, ...] = ()


@dataclass(frozen=True, slots=True)
class Scatter(_Titled):
    """One point a model. `pareto` joins the models that no other beats in both quantities.

    `target_zone` shades where the mean of x and y reaches the report's target: for one that is a mean.
    """

    x: Quantity
    y: Quantity
    pareto: bool = False
    target_zone: bool = False


@dataclass(frozen=True, slots=True)
class Bars(_Titled):
    """Quantities of one unit side by side, for every model; `stacked` where they are parts of a whole.

    `colours` (of CSS, one a quantity) where they have colours of their own. `counted` shares have their counts beside
    them.
    """

    quantities: tuple[Quantity, ...]
    stacked: bool = False
    colours: tuple[str, ...] = ()
    counted: bool = False


@dataclass(frozen=True, slots=True)
class HeatMap(_Titled):
    """One quantity by model and value of a slice; `counted` shares have their counts beside them.

    With `of_several`, it is left out where all rows have one value of the slice, for it would show nothing new.
    """

    quantity: Quantity
    slice: str
    counted: bool = False
    of_several: bool = False


@dataclass(frozen=True, slots=True)
class ByPart(_Titled):
    """One quantity by the values of a slice, a bar with its interval for every model; left out without any."""

    quantity: Quantity
    slice: str
    counted: bool = field(default=False, init=False)


@dataclass(frozen=True, slots=True)
class Reliability(_Titled):
    """How often a model is right against how sure it said it was, by the values of a slice of stated confidence."""

    accuracy: Quantity
    confidence: Quantity
    slice: str


@dataclass(frozen=True, slots=True)
class AgreementMatrix(_Titled):
    """Judges against judges, one matrix a model. The slice's values are pairs of judges, `a~b`."""

    quantity: Quantity
    slice: str


@dataclass(frozen=True, slots=True)
class ByJudge(_Titled):
    """One quantity of every model, side by side for each of its judges, on the same answers."""

    quantity: Quantity


@dataclass(frozen=True, slots=True)
class Statistics(_Titled):
    """A table of quantities, one row a model; with `by_judge` one row a judge, over all models.

    What has no value is left out, and so is the table if nothing has.
    """

    quantities: tuple[Quantity, ...]
    by_judge: bool = False


@dataclass(frozen=True, slots=True)
class Decisions(_Titled):
    """Judges against judges, decision by decision: one row a pair of judges and decision, one column a statistic.

    The metric of a decision is the statistic's, with the decision's ending. The slice's values are pairs of judges,
    `a~b`, over all models. Without pairs the table is left out.
    """

    statistics: tuple[Quantity, ...]
    decisions: tuple[tuple[str, str], ...]  # ending and label
    slice: str


Figure: TypeAlias = (
    Ranking | Scatter | Bars | HeatMap | ByPart | Reliability | AgreementMatrix | ByJudge | Statistics | Decisions
)

PEOPLE = "people"
"""The kind of the entry in whose place a suite's figures about people stand."""


def read_figures(file: Path, people: Sequence[Figure]) -> tuple[Figure, ...]:
    """Read the figures of a suite from TOML: quantities by metric, and figures in their order, by kind.

    A quantity that has another name than its metric states its `metric`.
    """
    told = tomllib.loads(file.read_text(encoding="utf-8"))
    known = {
        name: Quantity(**{"metric": name, **about, "unit": Unit(about.get("unit", Unit.SHARE))})
        for name, about in told["quantities"].items()
    }
    kinds: Mapping[str, type[Figure]] = {kind.__name__: kind for kind in get_args(Figure)}
    made: list[Figure] = []
    for entry in told["figures"]:
        if entry["kind"] == PEOPLE:
            made += people
            continue
        kind = kinds[entry.pop("kind")]
        types = get_type_hints(kind)
        made.append(kind(**{name: _read(value, types[name], known) for name, value in entry.items()}))
    return tuple(made)


def _read(value: Any, kind: Any, known: Mapping[str, Quantity]) -> Any:
    """Convert a value of a TOML file to what a figure's field holds."""
    if kind is Quantity:
        return known[value]
    return tuple(_read(each, get_args(kind)[0], known) for each in value) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Answers:
    """Which columns of a suite's result rows say what was asked, what was answered, and whether that was right.

    By them mistakes are listed.
    """

    title: str = "Mistakes"  # of the list
    correct: str = "correct"  # Boolean; null leaves the row out
    mistake: pl.Expr | None = None  # which answers are listed; None: those that are not `correct`
    label: str | None = "label"  # the right answer's class
    sample: tuple[str, ...] = ("dataset", "sample_id", "replicate")  # in whose order mistakes are listed
    group: str | None = None  # mistakes are listed by it
    shown: tuple[tuple[str, str], ...] = ()  # column and heading, in the order of a mistake's table
    reply_of: pl.Expr | None = None  # the listed answers whose replies are shown, in the column `reply_start`
    reply_length: int = 100  # characters of it
    # Result rows, and the tables that metrics are computed from -> the rows with further columns to be shown.
    add_columns: Callable[[pl.DataFrame, Mapping[str, pl.LazyFrame]], pl.DataFrame] | None = None

    @property
    def listed(self) -> pl.Expr:
        """The condition, on the columns of result rows, under which an answer is listed."""
        return ~pl.col(self.correct) if self.mistake is None else self.mistake
