"""Calibration: items whose right judgement is known, on which judges are tested before they are trusted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from suites.base.conversation import Exchange, Item


@dataclass(frozen=True)
class Calibration:
    """Items with known judgements, and the function that compares a judge's judgements with them."""

    # A judge -> each item with what was answered before the judge's turn.
    items: Callable[[str], Sequence[tuple[Item, list[Exchange]]]]
    # Items with all answers -> the columns of `metrics.decision_agreement.PAIRS`, the known decision first.
    compare: Callable[[Sequence[tuple[Item, Sequence[Exchange]]]], pl.DataFrame]
    decisions: Sequence[str]
