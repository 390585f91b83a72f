"""The list of runs: each with its headline value, what is missing, and how earlier runs of the same order did."""

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from threading import Condition
from typing import Any, Literal

import polars as pl
from cachetools import LRUCache, cached
from pydantic import BaseModel, ConfigDict, Field

from evalake.contracts.tables import METRIC_SNAPSHOTS, RUN_COVERAGE, RUNS
from evalake.core.hashing import plain
from evalake.sdk import Suite
from evalake.sdk.figures import Ranking
from evalake.server.scoring.views import Micros, micros
from evalake.server.viewer.expression import LONGEST, Column, compile_filter
from evalake.storage.lake import Lake
from evalake.suites.registry import usable_suites
from evalake.tasks.coverage import missing_shares
from evalake.tasks.runtime.runs import SETTLE_TAG, tagged, with_labels, with_state

MOST_EARLIER = 20
"""Earlier runs of the same order whose values are shown."""

WHOSE = ("order", "model", "judge")
"""The columns whose values make one line."""

NOT_OF_ORDER = frozenset({"estimate", "tags", "note", "max_cost_usd", "max_calls", "workers", "batch"})
"""Parameters that two runs of one order may differ in."""

# The column by which each choice sorts, and whether the largest come first
SORTS: Mapping[str, tuple[str, bool]] = {
    "newest": ("started_at", True),
    "oldest": ("started_at", False),
    "value": ("value", True),
    "missing": ("missing_share", True),
    "cost": ("cost_usd", True),
    "samples": ("samples", True),
    "calls": ("calls_made", True),
    "suite": ("suite", False),
    "state": ("state", False),
}
Sort = Literal["newest", "oldest", "value", "missing", "cost", "samples", "calls", "suite", "state"]


FILTER_COLUMNS = {
    **{name: Column(pl.col(name), "text") for name in ("suite", "state", "note", "metric")},
    "run": Column(pl.col("run_id"), "text"),
    "dataset": Column(pl.col("datasets"), "text"),
    **{name: Column(pl.col(f"{name}s").list.join(" "), "text") for name in ("model", "judge", "tag")},
    "value": Column(pl.col("value"), "number"),
    "missing": Column(pl.col("missing_share"), "number"),
    "cost": Column(pl.col("cost_usd"), "number"),
    **{name: Column(pl.col(name), "number") for name in ("samples", "items")},
    "calls": Column(pl.col("calls_made"), "number"),
    "known": Column(pl.col("calls_from_ledger"), "number"),
}
"""What a filter of runs may name; `model`, `judge` and `tag` hold all names of a run, with blanks between them."""


class WantedRuns(BaseModel):
    """The runs that are wanted, and one page of them."""

    model_config = ConfigDict(extra="forbid")

    suite: str | None = Field(None, max_length=200)
    tag: str | None = Field(None, max_length=200)
    state: str | None = Field(None, max_length=20)
    model: str | None = Field(None, max_length=300)
    q: str | None = Field(None, max_length=200, description="Text in id, models, judges, datasets, tags or note.")
    filter: str | None = Field(None, max_length=LONGEST, description="A filter expression over the columns.")
    reruns: bool = Field(
        True, description="false: a run that asked nothing new, and a round of `settle`, are folded into the next."
    )
    sort: Sort = "newest"
    page: int = Field(1, ge=1, le=1_000_000)
    page_size: int = Field(25, ge=1, le=200)


class RunView(BaseModel):
    """A run."""

    run_id: str
    suite: str
    origin: str
    state: str
    models: list[str]
    judges: list[str]
    samples: int
    items: int
    items_done: int | None  # null: not kept by the evalake that made the run
    calls_made: int
    calls_from_ledger: int
    calls_failed: int
    rows_landed: int
    rows_quarantined: int
    cost_usd: float | None
    snapshot_id: str | None
    flow_run_id: str | None
    message: str | None
    tags: list[str]
    note: str | None
    started_at_us: Micros
    ended_at_us: Micros | None


class Headline(BaseModel):
    """The metric that ranks, of a run's best model, and its values in earlier runs of the same order."""

    metric: str
    model: str
    judge: str | None
    value: float
    ci_low: float | None
    ci_high: float | None
    n: int
    earlier: list[float]


class ListedRun(RunView):
    """A run of the list."""

    datasets: str
    missing_share: float | None  # of the items asked; null: not kept by the evalake that made the run
    headline: Headline | None
    folded: int  # older runs like it that asked nothing new
    rounds: int  # earlier rounds of the same `settle`


class RunPage(BaseModel):
    """Some of the runs, newest first; and the tags of all runs, by which they can be chosen."""

    runs: list[ListedRun]
    tags: list[str]
    page: int
    page_size: int
    total: int
    pages: int


def run_page(lake: Lake, wanted: WantedRuns) -> RunPage:
    """Build one page of the runs that are wanted."""
    every, tags = _every_run(lake, *map(lake.version, (RUNS, METRIC_SNAPSHOTS, RUN_COVERAGE)))
    column, largest_first = SORTS[wanted.sort]
    runs = (
        _chosen(tagged(with_state(lake, every.lazy()), wanted.tag), wanted)
        .sort(column, "started_at", descending=[largest_first, True], nulls_last=True)
        .collect()
    )
    here = runs.slice((wanted.page - 1) * wanted.page_size, wanted.page_size)
    values = _values(every, here)
    return RunPage(
        runs=[_listed(row, values.get(tuple(row[each] for each in WHOSE))) for row in here.iter_rows(named=True)],
        tags=tags,
        page=wanted.page,
        page_size=wanted.page_size,
        total=runs.height,
        pages=-(-runs.height // wanted.page_size),
    )


def _chosen(runs: pl.LazyFrame, wanted: WantedRuns) -> pl.LazyFrame:
    if wanted.suite is not None:
        runs = runs.filter(pl.col("suite") == wanted.suite)
    if wanted.state is not None:
        runs = runs.filter(pl.col("state") == wanted.state)
    if wanted.model is not None:
        runs = runs.filter(pl.col("models").list.contains(wanted.model))
    if wanted.filter:
        runs = runs.filter(compile_filter(wanted.filter, FILTER_COLUMNS))
    if wanted.q:
        lists = [pl.col(name).list.join(" ") for name in ("models", "judges", "tags")]
        text = pl.concat_str("run_id", "suite", "datasets", "note", *lists, separator=" ", ignore_nulls=True)
        runs = runs.filter(text.str.to_lowercase().str.contains(wanted.q.lower(), literal=True))
    if wanted.reruns:
        return runs.with_columns(folded=pl.lit(0), rounds=pl.lit(0))
    settle = pl.col("tags").list.eval(pl.element().filter(pl.element().str.starts_with(SETTLE_TAG))).list.first()
    runs = runs.with_columns(settle=pl.coalesce(settle, "run_id"))
    newest = pl.col("started_at") == pl.col("started_at").max().over("settle")
    runs = runs.with_columns(rounds=pl.len().over("settle").cast(pl.Int64) - 1).filter(newest)
    first = pl.col("rerun").cum_sum().over("order", order_by="started_at", descending=True) == 1
    shown = runs.with_columns(folded=pl.when("rerun").then(pl.col("rerun").sum().over("order") - 1).otherwise(0))
    return shown.filter(~pl.col("rerun") | first)


@cached(LRUCache(4), condition=Condition())  # every reader asks for them; one of them reads
def _every_run(
    lake: Lake, runs: int | None, snapshots: int | None, coverage: int | None
) -> tuple[pl.DataFrame, list[str]]:
    """Read all runs, oldest first, with headline, share of missing items, and order; and list their tags."""
    values, missing = _headlines(lake, snapshots, coverage), _missing(lake, coverage)
    told = with_labels(lake.frame(RUNS, runs))
    told = told.join(values, on="snapshot_id", how="left").join(missing, on="run_id", how="left")
    rerun = (pl.col("calls_made") == 0) & (pl.col("rows_landed") == 0) & (pl.col("state") == "completed")
    rows = told.with_columns(rerun=rerun & (pl.col("origin") == "run")).sort("started_at").collect()
    given = rows.select("suite", "dataset_versions", "parameters").unique()
    asked = pl.Series("asked", [_order(*row) for row in given.iter_rows()], dtype=pl.String)
    named = pl.Series("datasets", [datasets_of(*row[1:]) for row in given.iter_rows()], dtype=pl.String)
    orders = given.with_columns(named, order=asked.rank("dense"))
    tags = rows["tags"].explode().drop_nulls().unique().sort().to_list()
    return rows.join(orders, on=given.columns, how="left", maintain_order="left"), tags


def _values(every: pl.DataFrame, here: pl.DataFrame) -> dict[tuple[Any, ...], pl.DataFrame]:
    """Group headline values of the orders of some runs, oldest first, by order, model and judge."""
    ours = pl.col("order").is_in(here["order"].implode()), pl.col("value").is_not_null()
    return every.filter(*ours).select(*WHOSE, "started_at", "value").partition_by(WHOSE, as_dict=True)


def _order(suite: str, versions: str, parameters: str) -> str:
    """Write what a run was asked for, without what says how it was to be done or called."""
    asked = {name: value for name, value in json.loads(parameters).items() if name not in NOT_OF_ORDER}
    return json.dumps([suite, versions, asked], sort_keys=True)


@lru_cache(maxsize=4)
def _headlines(lake: Lake, version: int | None, coverage: int | None) -> pl.LazyFrame:
    """Read the best model's value of each snapshot in the metric that ranks its suite.

    A model stands where the worst case of what it lacks puts it, as in the ranking of its run; where older snapshots
    do not have that, behind the models that lack nothing.
    """
    suites = pl.DataFrame([_ranks(each) for each in usable_suites(lake)], ("suite", "metric", "sign"), orient="row")
    values = lake.frame(METRIC_SNAPSHOTS, version)
    shares = missing_shares(lake, coverage).rename({"judge": "whose"})
    bound = pl.when(pl.col("sign") > 0).then("bound_low").otherwise("bound_high")
    best = (
        values.filter(slice="all")
        .filter(pl.col("value").is_finite())
        .join(suites.lazy(), on=["suite", "metric"])
        .with_columns(whose=pl.col("judge").fill_null(""), bound=bound)
        .join(shares, on=["run_id", "model", "whose"], how="left")
        .with_columns(unbounded=pl.col("bound").is_null() & (pl.col("missing") > 0))
        .with_columns(worst=pl.col("sign") * pl.coalesce("bound", "value"))
        .sort(pl.col("unbounded").fill_null(value=False), "worst", "model", descending=[False, True, False])
        .unique("snapshot_id", keep="first", maintain_order=True)
    )
    return best.select("snapshot_id", "metric", "model", "judge", "value", "ci_low", "ci_high", "n").collect().lazy()


def _ranks(suite: Suite) -> tuple[str, str | None, float]:
    """Find the metric that ranks the models of a suite, and whether more of it is better (1) or less (-1)."""
    quantity = next((each.quantity for each in suite.presentation.figures if isinstance(each, Ranking)), None)
    if quantity is None:
        return suite.name, next(iter(suite.metrics.headline), None), 1.0
    return suite.name, quantity.metric, 1.0 if quantity.higher_is_better else -1.0


@lru_cache(maxsize=4)
def _missing(lake: Lake, version: int | None) -> pl.LazyFrame:
    """Count the share of each run's items that is missing."""
    rows = lake.frame(RUN_COVERAGE, version)
    share = pl.col("missing").sum() / pl.col("asked").sum()
    return rows.group_by("run_id").agg(missing_share=pl.when(pl.col("asked").sum() > 0).then(share)).collect().lazy()


def _listed(row: Mapping[str, Any], values: pl.DataFrame | None) -> ListedRun:
    if row["value"] is None or values is None:
        return ListedRun(**run_fields(row), headline=None)
    earlier = values.filter(pl.col("started_at") < row["started_at"])["value"].tail(MOST_EARLIER).to_list()
    headline = {name: plain(row[name]) for name in Headline.model_fields if name != "earlier"}
    return ListedRun(**run_fields(row), headline=Headline(**headline, earlier=earlier))


def run_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a row of RUNS to the fields of RunView."""
    given = json.loads(row["parameters"])
    labels = {"tags": given.get("tags") or [], "note": given.get("note")}
    times = {"started_at_us": micros(row["started_at"]) or 0, "ended_at_us": micros(row["ended_at"])}
    return {**row, **labels, **times}


@lru_cache(maxsize=10_000)  # runs of one order share them
def datasets_of(versions: str, parameters: str) -> str:
    """Name the datasets of a run, and how many samples it took of each, as the view `metric_history` does."""
    return "+".join(sorted(json.loads(versions))) + _taken(json.loads(parameters))


def _taken(parameters: Mapping[str, Any]) -> str:
    """Describe which samples of its datasets a run took, as `metric_history` does; empty where it took all."""
    limit, first = parameters.get("limit"), parameters.get("first")
    if limit is not None and parameters.get("draw") is not None:
        return f" ({limit} drawn)"
    if parameters.get("pooled") is not None:
        return f" ({parameters['pooled']} pooled)"
    if (number := limit if first is None else first) is not None:
        return f" (first {number})"
    samples = parameters.get("samples")
    choice = (
        json.dumps(samples, separators=(",", ":"), ensure_ascii=False) if samples else parameters.get("only_failed")
    )
    if not choice:
        return ""
    return f" (chosen {hashlib.sha256(choice.encode()).hexdigest()[:8]})"
