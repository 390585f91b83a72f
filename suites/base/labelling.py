"""Labelling: how people are asked about a suite's results, and what they said."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl
from pydantic import BaseModel

from suites.base.sheets import Line, NumberedLine


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line of a filled-in sheet that is no label, and why."""

    where: str
    reason: str


@dataclass(frozen=True)
class Labels:
    """What a filled-in sheet holds: rows of `human_labels`, what was refused, and how many lines nobody filled in."""

    rows: Sequence[Mapping[str, Any]]
    refused: Sequence[Refusal]
    empty: int


@dataclass(frozen=True)
class Labelling:
    """How people label a suite's results: the sheet they are given, and what it says once it is filled in."""

    columns: Sequence[str]  # of the sheet
    needed: Sequence[str]  # without these, a file is no such sheet
    material: Sequence[str]  # columns with the texts that a line is about; a form leaves them to its artifact
    # The run's rows of every table of the suite, of `samples`, of `calls` with their replies and of `human_labels`, how
    # many to draw, a seed -> the sheet's lines.
    sheet: Callable[[Mapping[str, pl.DataFrame], int, int], Sequence[Line]]
    # Filled-in lines, who filled in those that do not say so, when -> the labels.
    read: Callable[[Iterable[NumberedLine], str, datetime], Labels]
    # A line of the sheet -> what a form asks about it; the answers are columns of the line.
    questions: Callable[[Mapping[str, Any]], type[BaseModel]]
    # The same tables, with the labels -> judges and people side by side (`metrics.decision_agreement.PAIRS`), and which
    # decisions there are; None: they are not compared decision by decision.
    compare: Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame] | None = None
    decisions: Sequence[str] = ()
