"""How a suite's answers are shown one by one: what an answer decided, what is told of it, and its sample as text."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import polars as pl

from suites.base.sample import Sample


@dataclass(frozen=True, slots=True)
class Viewing:
    """What the viewer shows of a suite. Expressions are over result rows; one that is None is null in every row."""

    verdict: pl.Expr | None = None  # what the answer decided, as one word
    correct: pl.Expr | None = None  # whether that was right; null where nobody can say
    score: pl.Expr | None = None  # a number that says how good it was, where a suite gives one
    error: pl.Expr | None = None  # why there is no verdict, as a word or a sentence
    flags: Mapping[str, pl.Expr] = field(default_factory=dict)  # yes or no of a row, by which items are chosen
    shown: tuple[tuple[str, str], ...] = ()  # columns of a result row and their headings, in order
    details: tuple[tuple[str, str], ...] = ()  # likewise of the rows of its further tables
    input_text: Callable[[Sample], str] = lambda sample: sample.input  # the sample as a reader reads it
    input_brief: Callable[[str], str] | None = None  # an input in a few words, for lists; None: its beginning
    input_is_code: bool = False  # then it is shown with numbers of its lines
