"""The items of a run: one item is one sample with all its answers; filtered, sorted and paged on the server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import polars as pl
from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field, model_validator

from evalake.contracts.tables import CALLS, SAMPLES
from evalake.server.settings import NotFoundError, WrongQueryError
from evalake.server.viewer.access import IndexesHere, RunId
from evalake.server.viewer.expression import LONGEST, Column, compile_filter, holds
from evalake.server.viewer.run_index import (
    RunIndex,
    RunIndexes,
    beginnings,
    beginnings_of_replies,
    count_samples,
    nearest,
)
from evalake.storage.lake import Lake

Name = Annotated[str, Field(max_length=500)]
Sort = Literal["position", "sample", "category", "wrong", "score", "confidence", "latency", "cost", "tokens", "answer"]

MOST_RUNS = 5  # beside the run itself
_MEASURES = {"confidence": "confidence", "latency": "latency_ms", "cost": "cost_usd", "tokens": "output_tokens"}
_SORTED_BY = {"score": "score", **_MEASURES}


class Wanted(BaseModel):
    """Which items are wanted: those of which any shown answer matches; and in which order."""

    model_config = ConfigDict(extra="forbid")

    model: list[Name] = Field(default=[], max_length=50, description="Only answers of these models are shown.")
    judge: list[Name] = Field(default=[], max_length=50, description="Only answers judged by these are shown.")
    prompt_type: list[Name] = Field(default=[], max_length=50, description="Only answers to these prompts are shown.")
    verdict: list[Name] = Field(default=[], max_length=50, description="An answer's verdict.")
    correct: Literal["true", "false", "unknown"] | None = Field(None, description="Whether an answer is right.")
    error: Name | None = Field(None, description="Why an answer has no verdict; `any` for whatever reason.")
    flag: list[Name] = Field(default=[], max_length=50, description="What the suite, or the contract, says of it.")
    category: list[Name] = Field(default=[], max_length=500, description="The sample's category.")
    label: list[Name] = Field(default=[], max_length=50, description="The sample's right answer.")
    dataset: list[Name] = Field(default=[], max_length=50, description="The sample's dataset.")
    q: Annotated[str, Field(max_length=500)] | None = Field(
        None, description="Text in the sample's id, its input, or a reply; small and capital letters are alike."
    )
    differ: Annotated[str, Field(max_length=300)] | None = Field(
        None, description="`models` or `judges` whose verdicts differ, or `run:ID`, whose verdicts were others."
    )
    filter: Annotated[str, Field(max_length=LONGEST)] | None = Field(
        None, description='A condition on one answer, like `verdict = "ALLOW" and model ~ "gpt" and cost > 0.01`.'
    )
    like: Annotated[str, Field(max_length=100)] | None = Field(
        None, description="An item: those whose inputs share most words with its come first, and alone."
    )
    sort: Sort = "position"
    of: Name | None = Field(None, description="`answer` sorts by the answers of this model.")
    order: Literal["asc", "desc"] = "asc"

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, given: Any) -> Any:
        """Take `model=` for no filter, as a form sends it."""
        if not isinstance(given, Mapping):
            return given
        kept = {
            name: [each for each in value if each] if isinstance(value, list) else value
            for name, value in given.items()
        }
        return {name: value for name, value in kept.items() if value not in ("", [])}


class WantedPage(Wanted):
    """Which items, and which page of them."""

    after: Annotated[str, Field(max_length=100)] | None = Field(None, description="`next` of the page before.")
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    beside: list[Name] = Field(
        default=[], max_length=MOST_RUNS, description="Runs whose answers to the same samples are shown, too."
    )


WantedQuery = Annotated[Wanted, Query()]
WantedPageQuery = Annotated[WantedPage, Query()]


class AnswerView(BaseModel):
    """An answer to an item, as a list shows it."""

    model: str
    judge: str | None
    prompt_type: str
    replicate: int
    verdict: str | None
    correct: bool | None
    score: float | None
    error: str | None
    confidence: float | None
    latency_ms: float | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    flags: list[str]
    matches: bool | None = None  # what was asked of answers; null where nothing was
    reply: str | None = None  # its beginning, in lists
    run_id: str | None = None  # null: the run that was asked for


class ItemView(BaseModel):
    """A sample with its answers."""

    item_id: str
    dataset: str
    sample_id: str
    category: str | None
    label: str | None
    input: str  # its beginning
    answers: list[AnswerView]


class ItemPage(BaseModel):
    """Some of the items; `total` counts all that match, `next` is where the next page begins (None: there is none)."""

    items: list[ItemView]
    total: int
    next: str | None
    first: int  # number of the first item of the page, from 1


@dataclass(frozen=True)
class Matching:
    """The items that match, in the order wanted, and the answers that are shown; `matches` marks those that match."""

    items: pl.DataFrame
    answers: pl.DataFrame


def item_page(indexes: IndexesHere, run_id: RunId, wanted: WantedPageQuery) -> ItemPage:
    """Build one page of the items of a run.

    Raises NotFoundError where there is no such run, WrongQueryError for a filter that has no meaning.
    """
    is_first = not wanted.model_dump(exclude_defaults=True, exclude={"limit"})
    if is_first and (beginning := indexes.beginning(run_id, wanted.limit)) is not None:
        return _first_page(indexes, beginning)
    index = indexes.of(run_id)
    items = matching(indexes, index, wanted)
    start = 0 if wanted.after is None else _rank_after(index, items, wanted)
    page = items.items.slice(start, wanted.limit)
    is_last = start + page.height >= items.items.height
    views = item_views(indexes.lake, index, page, items.answers)
    for run_id_beside in wanted.beside:
        _add_answers(indexes, views, index, run_id_beside, wanted)
    return ItemPage(
        items=views,
        total=items.items.height,
        next=None if is_last or page.is_empty() else page["sample_hash"][-1],
        first=start + 1 if page.height else 0,
    )


def _first_page(indexes: RunIndexes, beginning: RunIndex) -> ItemPage:
    """Build the first page of all items, read by key while the index of all is read in the background."""
    views = item_views(indexes.lake, beginning, beginning.samples, beginning.answers)
    total = count_samples(indexes.lake, beginning.run)
    indexes.read_ahead(beginning.run["run_id"])
    is_last = not views or len(views) == total
    return ItemPage(items=views, total=total, next=None if is_last else views[-1].item_id, first=1 if views else 0)


def matching(indexes: RunIndexes, index: RunIndex, wanted: Wanted) -> Matching:
    """Find all items that match, in order."""
    samples = index.samples
    for name in ("category", "label", "dataset"):
        if values := getattr(wanted, name):
            samples = samples.filter(pl.col(name).is_in(values))
    shown = _shown(index, wanted)
    kept = samples.select("place").to_series()
    if wanted.differ:
        kept = kept.filter(kept.is_in(_differing(indexes, index, shown, wanted.differ).implode()))
    shown, matched = _matched(indexes.lake, index, shown, wanted)
    if matched is not None:
        kept = kept.filter(kept.is_in(matched.implode()))
    if wanted.model or wanted.judge or wanted.prompt_type:
        kept = kept.filter(kept.is_in(shown["place"].unique().implode()))
    items = samples.filter(pl.col("place").is_in(kept.implode()))
    if wanted.like:
        near = nearest(indexes.lake, index, wanted.like)
        ranks = pl.Series(list(near), dtype=pl.String)
        items = items.filter(pl.col("sample_hash").is_in(ranks.implode()))
        if wanted.sort == "position":
            ranked = pl.DataFrame({"sample_hash": ranks}).join(items, on="sample_hash", maintain_order="left")
            return Matching(ranked.select(items.columns), shown)
    return Matching(_sorted(items, shown, wanted), shown)


def _shown(index: RunIndex, wanted: Wanted) -> pl.DataFrame:
    answers = index.answers
    for name in ("model", "judge", "prompt_type"):
        if values := getattr(wanted, name):
            answers = answers.filter(pl.col(name).cast(pl.String).is_in(values))
    return answers


def _matched(lake: Lake, index: RunIndex, shown: pl.DataFrame, wanted: Wanted) -> tuple[pl.DataFrame, pl.Series | None]:
    """Mark the answers that meet all conditions, and find the places of their items; None without conditions."""
    conditions = _conditions(index, wanted)
    if not conditions and not wanted.q:
        return shown.with_columns(matches=pl.lit(None, pl.Boolean)), None
    decided = pl.all_horizontal(pl.lit(True), *conditions)
    if not wanted.q:
        marked = _marked(index, shown, decided)
        return marked, marked.filter("matches")["place"].unique()
    in_sample, says = _samples_with(lake, index, wanted.q), _says(lake, index, wanted.q)
    marked = _marked(index, shown, decided & (pl.col("place").is_in(in_sample.implode()) | says))
    places = marked.filter("matches")["place"]
    return marked, (places if conditions else pl.concat([in_sample, places])).unique()


def _conditions(index: RunIndex, wanted: Wanted) -> list[pl.Expr]:
    conditions: list[pl.Expr] = []
    if wanted.verdict:
        conditions.append(pl.col("verdict").cast(pl.String).is_in(wanted.verdict))
    if wanted.correct is not None:
        is_known = pl.col("correct").is_not_null()
        conditions.append(~is_known if wanted.correct == "unknown" else pl.col("correct") == (wanted.correct == "true"))
    if wanted.error is not None:
        error = pl.col("error").cast(pl.String)
        conditions.append(error.is_not_null() if wanted.error == "any" else error == wanted.error)
    for name in wanted.flag:
        if name not in index.flags:
            raise WrongQueryError(f"there is no flag {name}: {', '.join(index.flags)}")
        conditions.append(pl.col(name))
    if wanted.filter:
        conditions.append(compile_filter(wanted.filter, filter_columns(index)))
    return conditions


def filter_columns(index: RunIndex) -> dict[str, Column]:
    """List what a filter expression may name: columns of answers and of their samples, and the suite's flags."""
    texts = {"model": "model", "judge": "judge", "prompt": "prompt_type", "verdict": "verdict", "error": "error"}
    texts |= {"sample": "sample_id", "dataset": "dataset", "category": "category", "label": "label"}
    numbers = {"score": "score", "repeat": "replicate", **_MEASURES, "input_tokens": "input_tokens"}
    known = {"score", "replicate", *index.measures}
    return {
        **{name: Column(pl.col(column).cast(pl.String), "text") for name, column in texts.items()},
        "correct": Column(pl.col("correct"), "yes or no"),
        **{name: Column(pl.col(column), "number") for name, column in numbers.items() if column in known},
        **{name: Column(pl.col(name), "yes or no") for name in index.flags},
    }


def _marked(index: RunIndex, shown: pl.DataFrame, condition: pl.Expr) -> pl.DataFrame:
    """Add to answers whether they meet a condition, which may name columns of their samples."""
    of_samples = index.samples.select("place", "sample_id", "dataset", "category", "label")
    joined = shown.join(of_samples, on="place", how="left", maintain_order="left")
    return joined.with_columns(matches=condition.fill_null(False)).drop(of_samples.columns[1:])


def _samples_with(lake: Lake, index: RunIndex, text: str) -> pl.Series:
    """Find the places of the samples that hold a text."""
    holds = pl.any_horizontal(_contains(name, text) for name in ("input", "sample_id"))
    of_run = pl.col("dataset").is_in(index.samples["dataset"].unique().to_list())
    hashes = lake.frame(SAMPLES).filter(pl.col("suite") == index.suite.name, of_run, holds).select("sample_hash")
    return index.samples.join(hashes.collect().unique(), on="sample_hash", how="semi")["place"]


def _says(lake: Lake, index: RunIndex, text: str) -> pl.Expr:
    """Build the expression that tells whether a reply to one of an answer's calls holds a text."""
    asked = [*index.run["models"], *index.run["judges"]]
    calls = lake.frame(CALLS).filter(pl.col("model").is_in(asked), _contains("response", text))
    hits = calls.select(pl.col("prompt_hash").hash()).collect().to_series().unique().implode()
    return pl.col("asked").is_in(hits) | pl.col("judged").is_in(hits)


def _contains(column: str, text: str) -> pl.Expr:
    return holds(pl.col(column), text).fill_null(False)


def _differing(indexes: RunIndexes, index: RunIndex, shown: pl.DataFrame, differ: str) -> pl.Series:
    """Find the places of the items whose verdicts differ between models, between judges, or from another run's."""
    outcomes = _outcomes(shown)
    if differ == "models":
        return _several(outcomes, "place", "judge", "prompt_type", "replicate")
    if differ == "judges":
        return _several(outcomes, "place", "model", "prompt_type", "replicate")
    kind, _, run_id = differ.partition(":")
    if kind != "run" or not run_id:
        raise WrongQueryError("differ is `models`, `judges` or `run:ID`")
    other = indexes.of(run_id)
    theirs = _outcomes(other.answers).join(other.samples.select("place", "sample_hash"), on="place")
    ours = outcomes.join(index.samples.select("place", "sample_hash"), on="place")
    key = ["sample_hash", "model", "judge", "prompt_type", "replicate"]
    both = ours.join(theirs.select(*key, pl.col("outcome").alias("before")), on=key, nulls_equal=True)
    return both.filter(pl.col("outcome") != pl.col("before"))["place"].unique()


def _outcomes(answers: pl.DataFrame) -> pl.DataFrame:
    """Select what is compared of answers: the score, or else the verdict; answers without either are left out."""
    outcome = pl.coalesce(pl.col("score").cast(pl.String), pl.col("verdict").cast(pl.String)).alias("outcome")
    names = pl.col("model", "judge", "prompt_type").cast(pl.String)
    return answers.select("place", names, "replicate", outcome).drop_nulls("outcome")


def _several(outcomes: pl.DataFrame, *key: str) -> pl.Series:
    counts = outcomes.group_by(key).agg(pl.col("outcome").n_unique())
    return counts.filter(pl.col("outcome") > 1)["place"].unique()


def _sorted(items: pl.DataFrame, shown: pl.DataFrame, wanted: Wanted) -> pl.DataFrame:
    descending = wanted.order == "desc"
    if wanted.sort == "position":
        return items.sort("place", descending=descending)
    if wanted.sort in ("sample", "category"):
        by = "sample_id" if wanted.sort == "sample" else "category"
        return items.sort(by, "place", descending=[descending, False], nulls_last=True)
    if wanted.sort == "answer":
        shown = shown.filter(pl.col("model").cast(pl.String) == wanted.of) if wanted.of else shown
        has_scores = shown["score"].count() > 0
        value = pl.col("score").mean() if has_scores else pl.col("verdict").cast(pl.String).min()
    elif wanted.sort == "wrong":
        value = (~pl.col("correct")).sum()
    elif (name := _SORTED_BY[wanted.sort]) in shown.columns:
        value = pl.col(name).mean()
    else:
        return items.sort("place", descending=descending)
    values = shown.group_by("place").agg(value.alias("by"))
    ranked = items.join(values, on="place", how="left")
    return ranked.sort("by", "place", descending=[descending, False], nulls_last=True).drop("by")


def _rank_after(index: RunIndex, items: Matching, wanted: WantedPage) -> int:
    """Count the items before the page, up to the item it begins after, even where that does not match any more."""
    if wanted.like:
        return (items.items["sample_hash"].index_of(wanted.after) or 0) + 1
    places = index.samples.filter(pl.col("sample_hash") == wanted.after)["place"]
    if places.is_empty():
        raise WrongQueryError("after is the `next` of another page of this run")
    whole = _sorted(index.samples, items.answers, wanted).with_row_index("rank")
    rank = whole.filter(pl.col("place") == places[0])["rank"][0]
    before = whole.filter(pl.col("rank") <= rank)
    return int(before["place"].is_in(items.items["place"].implode()).sum())


def item_views(lake: Lake, index: RunIndex, page: pl.DataFrame, answers: pl.DataFrame) -> list[ItemView]:
    """Build the list entries of items of a run: each with its answers, and the beginnings of input and replies."""
    hashes = page["sample_hash"].to_list()
    inputs = beginnings(lake, index, hashes)
    replies = beginnings_of_replies(lake, index, hashes)
    shown = answers.filter(pl.col("place").is_in(page["place"].implode()))
    by_place = shown.rows_by_key("place", named=True)
    return [
        ItemView(
            item_id=row["sample_hash"],
            **{name: row[name] for name in ("dataset", "sample_id", "category", "label")},
            input=inputs.get(row["sample_hash"], ""),
            answers=[
                answer_view(each, index.flags, replies.get((row["sample_hash"], each["asked"], each["replicate"])))
                for each in by_place.get(row["place"], ())
            ],
        )
        for row in page.iter_rows(named=True)
    ]


def answer_view(row: Mapping[str, Any], flags: Sequence[str], reply: str | None = None) -> AnswerView:
    """Convert an answer of an index to the form of a list."""
    fields = {name: row.get(name) for name in AnswerView.model_fields}
    return AnswerView(**{**fields, "flags": [name for name in flags if row[name]], "reply": reply})


def _add_answers(indexes: RunIndexes, views: Sequence[ItemView], index: RunIndex, run_id: str, wanted: Wanted) -> None:
    """Add to items the answers that another run of the same suite has to the same samples."""
    other = indexes.of(run_id)
    if other.suite.name != index.suite.name:
        raise WrongQueryError(f"{run_id} is a run of {other.suite.name}, not of {index.suite.name}")
    same = other.samples.filter(pl.col("sample_hash").is_in([each.item_id for each in views]))
    theirs = {each.item_id: each.answers for each in item_views(indexes.lake, other, same, _shown(other, wanted))}
    for view in views:
        view.answers += [each.model_copy(update={"run_id": run_id}) for each in theirs.get(view.item_id, ())]


class Neighbours(BaseModel):
    """Where an item stands among those that match: its number from 1, None where it does not, and its neighbours."""

    number: int | None
    total: int
    previous: str | None
    next: str | None


def neighbours(index: RunIndex, found: Matching, item_id: str) -> Neighbours:
    """Find the neighbours of an item among those that match. Raises NotFoundError where the run has no such item."""
    if item_id not in index.samples["sample_hash"]:
        raise NotFoundError("the run has no such sample")
    hashes = found.items["sample_hash"]
    at = hashes.index_of(item_id)
    if at is None:
        return Neighbours(number=None, total=len(hashes), previous=None, next=hashes[0] if len(hashes) else None)
    following = hashes[at + 1] if at + 1 < len(hashes) else None
    return Neighbours(number=at + 1, total=len(hashes), previous=hashes[at - 1] if at else None, next=following)
