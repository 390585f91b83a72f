"""How a suite's result rows tell what came of an item: no judgement, a reply without a verdict, or a verdict."""

from dataclasses import dataclass

import polars as pl

EMPTY = "empty"
"""The kind of a reply without a verdict that has no text."""


REFUSALS = ("content_policy", "context_length")
"""Kinds of failed calls by which a model or its provider refuses a subject's request: wrong answers, not missing."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What came of items, as expressions over result rows; one that is None is null in every row.

    Both give a fixed word, so that rows can be counted by it.
    """

    missing: pl.Expr | None = None  # why the row stands for no answer or no judgement; null where there is one
    without_verdict: pl.Expr | None = None  # why no verdict can be read from the reply; null where one can be
