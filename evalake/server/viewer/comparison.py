"""Sides beside each other: the statistics of `evalake compare`, and the samples that all of them have answered."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from itertools import combinations
from string import ascii_lowercase
from typing import Annotated, Any, Literal

import polars as pl
from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from evalake.core.errors import UsageError
from evalake.core.hashing import plain
from evalake.decisions.compare import compare_found, compare_sides
from evalake.decisions.sides import HEADLINE, KEY, NotComparableError, Side, by_input, by_one_scorer, find_sides
from evalake.metrics.compare import SIGNIFICANT_BELOW
from evalake.metrics.limits import adjusted
from evalake.reports.files import markdown_of_comparison
from evalake.reports.ranking import adjusted_pairs, letters
from evalake.server.settings import NotFoundError, WrongQueryError
from evalake.server.viewer.access import IndexesHere, LakeHere
from evalake.server.viewer.items import AnswerView, answer_view
from evalake.server.viewer.run_index import RunIndex, beginnings
from evalake.storage.lake import Lake
from evalake.suites.registry import suite as find_suite

Name = Annotated[str, Field(min_length=1, max_length=700)]
Kind = Literal["differences", "to_a", "to_b", "all"]
"""Samples whose verdicts differ; which only A, or only B, has right; or all that both have answered."""

_REPEAT = "repeat"
"""Which of its run's answers to one prompt an answer is: `--again` asks under other replicates."""

_PAIR = ["sample_hash", "judge", _REPEAT]


class OfRun(BaseModel):
    """Whose models are meant: those of `run`, else of the newest that was measured (and has the tag)."""

    model_config = ConfigDict(extra="forbid")

    run: Annotated[str, Field(max_length=300)] | None = None
    tag: Annotated[str, Field(max_length=300)] | None = None


class Sides(OfRun):
    """What is compared: a model, a run, RUN:MODEL or RUN:MODEL:PROMPT_TYPE."""

    a: Name
    b: Name


class WantedComparison(Sides):
    """What is compared, in which metric; without one, in all over all samples."""

    metric: Annotated[str, Field(max_length=200)] | None = None
    force: bool = Field(False, description="Compare what would be refused, with a warning.")
    corrected: bool = Field(False, description="Correct rates by people's labels, or the judge's calibration.")


class WantedPairs(Sides):
    """Which pairs of answers are wanted, and which page of them."""

    kind: Kind = "differences"
    after: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class WantedColumns(OfRun):
    """What stands in columns, named as sides are, and which page of the samples that all have answered."""

    side: Annotated[list[Name], Field(min_length=2, max_length=6)]
    kind: Literal["differences", "all"] = "differences"
    after: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    limit: Annotated[int, Field(ge=1, le=200)] = 50


ColumnsQuery = Annotated[WantedColumns, Query()]
ComparisonQuery = Annotated[WantedComparison, Query()]
PairsQuery = Annotated[WantedPairs, Query()]


class SideView(BaseModel):
    """A side: its run, and by what the samples of that run are kept that it answered."""

    name: str
    run_id: str
    model: str | None
    prompt_type: str | None


def side_view(side: Side) -> SideView:
    """Describe a side."""
    return SideView(name=side.name, run_id=side.run["run_id"], model=side.model, prompt_type=side.prompt_type)


class ComparisonView(BaseModel):
    """The rows of `evalake compare`, and what a reader must know of them."""

    suite: str
    sides: list[SideView]
    markdown: str  # the rows, for a pull request
    headline: list[str]
    rows: list[dict[str, Any]]
    warnings: list[str]


class SampleView(BaseModel):
    """A sample that sides have answered."""

    item_id: str
    sample_id: str
    category: str | None
    label: str | None
    input: str  # its beginning


class PairView(SampleView):
    """A sample with an answer of each side."""

    item_b: str  # the sample of B, which is another where the two are paired by their input
    a: AnswerView
    b: AnswerView


class PairPage(BaseModel):
    """Some of the pairs; `next` is where the next page begins (None: there is none)."""

    run_a: str
    run_b: str
    pairs: list[PairView]
    total: int  # of the kind that is wanted
    answered: int  # by both sides
    to_a: int  # right in A only
    to_b: int  # right in B only
    next: int | None


class ColumnsView(SampleView):
    """A sample with an answer of each side, in the order of the sides."""

    answers: list[AnswerView]


class ColumnsPage(BaseModel):
    """Some of the samples; `next` is where the next page begins (None: there is none)."""

    runs: list[str]  # of each side
    right: list[int]  # how many of those that all have answered each side has right
    rows: list[ColumnsView]
    total: int  # of the kind that is wanted
    answered: int  # by all sides
    next: int | None


def comparison(lake: LakeHere, wanted: ComparisonQuery) -> ComparisonView:
    """Compare two sides. Raises NotFoundError for an unknown name, WrongQueryError for what does not compare."""
    asked = wanted.model_dump(include={"tag", "metric", "force", "corrected"})
    with as_answers():
        compared = compare_sides(lake, wanted.a, wanted.b, run_id=wanted.run, **asked)
    return ComparisonView(
        suite=compared.suite,
        sides=[side_view(side) for side in compared.sides],
        markdown=markdown_of_comparison(compared.rows, compared.remarks),
        headline=list(compared.headline),
        rows=plain(compared.rows.to_dicts()),
        warnings=compared.remarks,
    )


def pair_page(indexes: IndexesHere, wanted: PairsQuery) -> PairPage:
    """Build one page of the samples that both sides have answered. Raises as `comparison` does."""
    with as_answers():
        sides = find_sides(indexes.lake, (wanted.a, wanted.b), wanted.run, wanted.tag)
    index_a, index_b = (indexes.of(side.run["run_id"]) for side in sides)
    a, b = _answers(index_a, sides[0], "a"), _answers(index_b, sides[1], "b")
    key = [*_PAIR, *_further_key(*sides)]
    if all(len(side.models) == 1 for side in sides):
        keys = by_input(indexes.lake, (index_a.suite, index_b.suite), sides)
        if keys is not None:
            key = list(_PAIR)
            a, b = (_by_input(*each) for each in zip(keys.samples(), by_one_scorer(a, b)[:2], strict=True))
    both = a.join(b, on=key, nulls_equal=True).sort("place a", *key[1:])
    chosen = both.filter(_kind(wanted.kind))
    return PairPage(
        run_a=index_a.run["run_id"],
        run_b=index_b.run["run_id"],
        pairs=[
            PairView(
                **sample,
                item_b=row["item b"],
                a=answer_view(row["a"], index_a.flags),
                b=answer_view(row["b"], index_b.flags),
            )
            for row, sample in _with_samples(indexes.lake, index_a, chosen, wanted)
        ],
        total=chosen.height,
        answered=both.height,
        to_a=both.filter(_kind("to_a")).height,
        to_b=both.filter(_kind("to_b")).height,
        next=_next(chosen, wanted),
    )


def columns_page(indexes: IndexesHere, wanted: ColumnsQuery) -> ColumnsPage:
    """Build one page of the samples that several sides have answered. Raises as `comparison` does."""
    with as_answers():
        sides = find_sides(indexes.lake, wanted.side, wanted.run, wanted.tag)
    if len({side.run["suite"] for side in sides}) > 1:
        raise WrongQueryError("runs of several suites stand beside each other by two: name A and B alone")
    indexes_of_sides = [indexes.of(side.run["run_id"]) for side in sides]
    names = ascii_lowercase[: len(sides)]
    key = [*_PAIR, *_further_key(*sides)]
    columns = zip(indexes_of_sides, sides, names, strict=True)
    parts = [_answers(*each).drop([name for name in ("model", "prompt_type") if name not in key]) for each in columns]
    every = reduce(lambda one, other: one.join(other, on=key, nulls_equal=True), parts).sort("place a", *key[1:])
    is_other = [pl.col("outcome a").ne_missing(pl.col(f"outcome {name}")) for name in names[1:]]
    chosen = every.filter(pl.any_horizontal(is_other)) if wanted.kind == "differences" else every
    enumerated = list(zip(names, indexes_of_sides, strict=True))
    return ColumnsPage(
        runs=[index.run["run_id"] for index in indexes_of_sides],
        right=[int(every[f"correct {name}"].fill_null(value=False).sum()) for name in names],
        rows=[
            ColumnsView(**sample, answers=[answer_view(row[name], index.flags) for name, index in enumerated])
            for row, sample in _with_samples(indexes.lake, indexes_of_sides[0], chosen, wanted)
        ],
        total=chosen.height,
        answered=every.height,
        next=_next(chosen, wanted),
    )


def _next(chosen: pl.DataFrame, wanted: WantedPairs | WantedColumns) -> int | None:
    """Say where the page after the wanted one begins."""
    following = wanted.after + wanted.limit
    return following if following < chosen.height else None


def _further_key(*sides: Side) -> list[str]:
    """Name what pairs answers beside the sample: the model and the prompt, where the sides do not name them."""
    models = ["model"] if any(len(side.models) > 1 for side in sides) else []
    return [*models, *([] if any(side.prompt_type for side in sides) else ["prompt_type"])]


def _answers(index: RunIndex, side: Side, name: str) -> pl.DataFrame:
    """Select the answers of one side, each as a struct beside the columns that pair it."""
    texts = pl.col("model", "judge", "prompt_type", "verdict", "error").cast(pl.String)
    answers = index.answers.with_columns(texts).filter(pl.col("model").is_in(side.models))
    if side.prompt_type is not None:
        answers = answers.filter(pl.col("prompt_type") == side.prompt_type)
    samples = index.samples.select("place", "sample_hash")
    repeat = pl.col("replicate").rank("dense").over("place", "model", "judge", "prompt_type").alias(_REPEAT)
    return (
        answers.join(samples, on="place")
        .with_columns(repeat)
        .select(
            *_PAIR,
            "model",
            "prompt_type",
            pl.col("place").alias(f"place {name}"),
            pl.col("sample_hash").alias(f"item {name}"),
            pl.coalesce(pl.col("score").cast(pl.String), "verdict").alias(f"outcome {name}"),
            pl.col("correct").alias(f"correct {name}"),
            pl.struct(answers.columns).alias(name),
        )
    )


def _by_input(keys: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Put the key of what was asked in the place of the sample's hash: further answers of a key are its repeats."""
    keyed = answers.join(keys, on=KEY).with_columns(sample_hash="key").drop("key")
    order = pl.struct(pl.col("^item .$"), "prompt_type", _REPEAT)
    return keyed.with_columns(order.rank("ordinal").over("sample_hash").alias(_REPEAT))


def _kind(kind: Kind) -> pl.Expr:
    right_a, right_b = (pl.col(f"correct {name}").fill_null(False) for name in "ab")
    known = pl.col("correct a").is_not_null() & pl.col("correct b").is_not_null()
    return {
        "all": pl.lit(True),
        "differences": pl.col("outcome a").ne_missing(pl.col("outcome b")),
        "to_a": known & right_a & ~right_b,
        "to_b": known & right_b & ~right_a,
    }[kind]


def _with_samples(
    lake: Lake, index: RunIndex, chosen: pl.DataFrame, wanted: WantedPairs | WantedColumns
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the rows of the wanted page, each with what is shown of its sample."""
    page = chosen.slice(wanted.after, wanted.limit).with_columns(sample_hash="item a")
    inputs = beginnings(lake, index, page["sample_hash"].to_list())
    known = page.select("sample_hash").unique().join(index.samples, on="sample_hash")
    samples = {row["sample_hash"]: row for row in known.iter_rows(named=True)}
    for row in page.iter_rows(named=True):
        item = row["sample_hash"]
        shown = {name: samples[item][name] for name in ("sample_id", "category", "label")}
        yield row, {"item_id": item, "input": inputs.get(item, ""), **shown}


@contextmanager
def as_answers() -> Iterator[None]:
    """Turn the errors of a comparison into errors that the API answers with a status."""
    try:
        yield
    except NotComparableError as error:
        raise WrongQueryError(str(error)) from error
    except UsageError as error:
        raise NotFoundError(str(error)) from error


# Two or more sides in one metric: letters from all pairs, and differences from the first side by slice.


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
            is_significant = row["p_holm"] is not None and row["p_holm"] < SIGNIFICANT_BELOW
            cells[row["j"]] = CellView(value=plain(row["value_b"]), significant=is_significant, **shown)
        keeps = {str(name): str(value)} if name in FILTERS else {}
        found.append(PartView(judge=judge, slice=str(name), slice_value=str(value), cells=cells, filter=keeps))
    return sorted(found, key=lambda part: part.slice != "all")
