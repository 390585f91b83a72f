"""Two or more sides in one metric: letters from all pairs, and differences from the first side by slice."""

from itertools import combinations
from typing import Annotated

import polars as pl
from fastapi import Query
from pydantic import BaseModel, Field

from evalake.decisions.compare import compare_found
from evalake.decisions.sides import HEADLINE, NotComparableError, find_sides
from evalake.metrics.compare import SIGNIFICANT_BELOW
from evalake.metrics.limits import adjusted
from evalake.reports.files import markdown_of_comparison
from evalake.reports.ranking import adjusted_pairs, letters
from evalake.server.viewer.access import LakeHere
from evalake.server.viewer.comparison import Name, OfRun, SideView, as_answers, side_view
from evalake.storage.sql.query import plain
from evalake.suites.registry import suite as find_suite

FILTERS = ("category", "label", "dataset", "prompt_type")
"""Slices by whose parts the samples of a run are filtered."""


class WantedSides(OfRun):
    """Which sides are compared, and in which metric; without one, in the suite's first headline metric."""

    side: Annotated[list[Name], Field(min_length=2, max_length=6)]
    metric: Annotated[str, Field(max_length=200)] | None = None
    corrected: bool = Field(False, description="Correct rates by people's labels, or the judge's calibration.")


SidesQuery = Annotated[WantedSides, Query()]


class CellView(BaseModel):
    """A side's value in one part, and by how much it differs from the first side's."""

    value: float | None
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p_holm: float | None
    significant: bool
    units: int | None


class PartView(BaseModel):
    """One part of a slice: a cell of each side (None: these two share no sample there)."""

    judge: str | None
    slice: str
    slice_value: str
    cells: list[CellView | None]
    filter: dict[str, str]  # what keeps its samples; nothing where no filter does


class JudgedLetters(BaseModel):
    """The letters of the sides as one judge saw them, in the order of the sides."""

    judge: str | None
    letters: list[str]


class SidesPage(BaseModel):
    """The sides in one metric. Sides without a common letter are apart (5 %, Holm over all pairs of a judge)."""

    metric: str
    headline: list[str]
    sides: list[SideView]
    letters: list[JudgedLetters]
    parts: list[PartView]
    warnings: list[str]
    markdown: str


def sides_page(lake: LakeHere, wanted: SidesQuery) -> SidesPage:
    """Compare sides of one model each. Raises as `comparison` does, and WrongQueryError for one of several models."""
    with as_answers():
        sides = find_sides(lake, wanted.side, wanted.run, wanted.tag)
        if several := [side.name for side in sides if len(side.models) > 1]:
            raise NotComparableError(f"{several[0]} has several models: name one, as RUN:MODEL")
        suites = {side.run["suite"] for side in sides}
        headline = HEADLINE if len(suites) > 1 else find_suite(suites.pop(), lake).metrics.headline
        metric = wanted.metric or headline[0]
        frames, warnings = {}, dict[str, None]()
        for (i, first), (j, other) in combinations(enumerate(sides), 2):
            compared = compare_found(lake, first, other, (metric,), corrected=wanted.corrected)
            frames[i, j] = compared.rows.with_columns(i=i, j=j)
            warnings |= dict.fromkeys(compared.remarks)
    whole = pl.concat(frames.values()).filter(pl.col("slice") == "all")
    parts = adjusted(pl.concat([rows for (i, _), rows in frames.items() if i == 0]))
    rows = _parts(parts, len(sides))
    judges = dict.fromkeys(part.judge for part in rows)
    return SidesPage(
        metric=metric,
        headline=list(compared.headline),
        sides=[side_view(side) for side in sides],
        letters=[JudgedLetters(judge=judge, letters=_letters(whole, judge, len(sides))) for judge in judges],
        parts=rows,
        warnings=list(warnings),
        markdown=markdown_of_comparison(parts, list(warnings)),
    )


def _letters(whole: pl.DataFrame, judge: str | None, count: int) -> list[str]:
    """Give the sides letters as a ranking does, the first to the highest values; a dash where the value is unknown."""
    rows = whole.filter(pl.col("judge").eq_missing(judge)).to_dicts()
    compared = adjusted_pairs([(str(row["i"]), str(row["j"]), row) for row in rows])
    apart = {frozenset((each.first, each.second)) for each in compared if each.apart}
    values = {row["i"]: row["value_a"] for row in rows} | {row["j"]: row["value_b"] for row in rows}
    known = {side: value for side, value in values.items() if value is not None}
    ranked = sorted(known, key=lambda side: (-known[side], side))
    of_side = letters([str(side) for side in ranked], apart)
    return [of_side.get(str(side), "\N{EN DASH}") for side in range(count)]


def _is_significant(row: dict[str, object]) -> bool:
    p = row["p_holm"]
    return isinstance(p, float) and p < SIGNIFICANT_BELOW


def _parts(rows: pl.DataFrame, count: int) -> list[PartView]:
    """Put the cells of each part beside each other, the first side's value before its differences."""
    found = []
    for (judge, name, value), own in rows.group_by("judge", "slice", "slice_value", maintain_order=True):
        cells: list[CellView | None] = [None] * count
        for row in own.iter_rows(named=True):
            turned = {"difference": "difference", "ci_low": "ci_high", "ci_high": "ci_low"}  # rows have first - other
            shown = {name: None if row[of] is None else plain(0.0 - row[of]) for name, of in turned.items()}
            shown |= {name: plain(row[name]) for name in ("p_holm", "units")}
            first = dict.fromkeys(shown) | {"units": shown["units"]}
            cells[0] = cells[0] or CellView(value=plain(row["value_a"]), significant=False, **first)
            cells[row["j"]] = CellView(value=plain(row["value_b"]), significant=_is_significant(row), **shown)
        keeps = {str(name): str(value)} if name in FILTERS else {}
        found.append(PartView(judge=judge, slice=str(name), slice_value=str(value), cells=cells, filter=keeps))
    return sorted(found, key=lambda part: part.slice != "all")
