"""The metrics of session_review, declared as data: names, formulas and slices; and what its roadmap is made of."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from evalake.contracts.tables import SAMPLES
from evalake.core.configuration import PROMPTS
from evalake.core.errors import EvalakeError
from evalake.metrics.agreement import cohen_kappa, pearson
from evalake.metrics.compute import Metric
from evalake.metrics.estimators import Count, Mean, Quantile, Rate
from evalake.metrics.variance import pooled_within, population_std
from evalake.sdk.suite import MENTIONS, Kind, Labelled, Roadmap
from evalake.suites.session_review import replies
from evalake.suites.session_review.contract import MISSING_TOOLS, RESULTS
from evalake.suites.session_review.prompts import criteria_hash, criteria_hash_of
from evalake.suites.session_review.replies import CATEGORIES, CATEGORY_POINTS, HIGHEST
from evalake.suites.session_review.session import load

SLICES = ("all", "alert_type", "agent", "criteria_hash")
BANDS = {"red": (0, 49), "yellow": (50, 74), "green": (75, 100)}
"""The score bands, both ends included, from bad to good."""

_score = pl.col("total_score")
_completed = pl.col("status") == "completed"
_over = _completed | (pl.col("status") == "failed")
_human = pl.when(_completed).then(pl.col("human_score"))
_human_weight = pl.col("human_weight_score")

_SESSION = ("model", "judge", "dataset", "sample_id", "sample_hash")


def _band(score: pl.Expr) -> pl.Expr:
    """Name the band that a score is in. Between two bands, where a mean may fall, it is the lower one."""
    band: pl.Expr = pl.lit(None, pl.String)
    for name, (lowest, _) in BANDS.items():
        band = pl.when(score >= lowest).then(pl.lit(name)).otherwise(band)
    return band


def in_bands(score: pl.Expr, words: Sequence[str]) -> pl.Expr:
    """Translate a score to the word for its band; null without a score."""
    return _band(score).replace_strict(list(BANDS), list(words), return_dtype=pl.String)


def _bands() -> Iterator[Metric]:
    for band, (lowest, highest) in BANDS.items():
        yield Metric(
            f"score_band_{band}_rate",
            Rate(_score.is_between(lowest, highest), _completed),
            slices=SLICES,
            description=f"Scores from {lowest} to {highest}.",
        )


def _categories() -> Iterator[Metric]:
    for category in CATEGORIES:
        about = f"Mean points for {category.replace('_', ' ')}, of 25."
        yield Metric(
            f"category_mean_{category}", Mean(pl.col(category), low=0, high=CATEGORY_POINTS), description=about
        )


METRICS: tuple[Metric, ...] = (
    Metric("score_mean", Mean(_score, low=0, high=HIGHEST), slices=SLICES, description="Mean of completed scores."),
    Metric("score_median", Quantile(_score, 0.5), slices=SLICES),
    Metric(
        "score_std",
        population_std(_score, low=0, high=HIGHEST),
        slices=SLICES,
        description="Standard deviation of completed scores (of the population, as all of evalake's).",
    ),
    Metric("score_p10", Quantile(_score, 0.1), slices=SLICES),
    Metric("score_p90", Quantile(_score, 0.9), slices=SLICES),
    *_bands(),
    Metric(
        "scoring_failure_rate",
        Rate(pl.col("status") == "failed", _over),
        slices=SLICES,
        description="Scorings that gave no score, of those that are over.",
    ),
    Metric(
        "obsolete_criteria_rate",
        Rate(pl.col("criteria_hash") != pl.lit(criteria_hash()), _completed),
        description="Scores made under criteria that are not the current ones.",
    ),
    *_categories(),
    Metric(
        "breakdown_consistent_rate",
        Rate(pl.col("breakdown_consistent"), _completed),
        description="Of the scores with a whole breakdown, those whose categories add up to the total.",
    ),
    Metric(
        "retest_std",
        pooled_within(pl.when(_completed).then(_score), _SESSION),
        description="Pooled standard deviation (ddof 1) of one session's repeated scores; n is the sessions.",
        version=2,
    ),
    Metric(
        "judge_human_pearson",
        pearson(_score, _human, _human_weight),
        description="Correlation of the judge's scores with what people give the same sessions.",
        version=2,
    ),
    Metric(
        "judge_human_kappa_bands",
        cohen_kappa(_band(_score), _band(_human), tuple(BANDS), _human_weight),
        description="Agreement beyond chance (Cohen) on the score band, between the judge and people's mean.",
        version=2,
    ),
)

TOOL_METRICS: tuple[Metric, ...] = (
    Metric(
        "missing_tool_count",
        Count(pl.col("tool_name").is_not_null()),
        slices=("tool_name",),
        description="Sessions in which a judge missed the tool.",
    ),
)
"""The metrics of `tools_named`; one row is a session and a tool."""


def tools_named(scores: pl.LazyFrame) -> pl.LazyFrame:
    """Reduce rows of `session_scores` to one row for every session and tool that was missed in it, however often."""
    named = scores.filter(_completed).explode("missing_tools").rename({"missing_tools": "tool_name"})
    return named.filter(pl.col("tool_name").is_not_null()).unique([*_SESSION, "tool_name"], maintain_order=True)


def metrics(options: Mapping[str, Any]) -> tuple[Metric, ...]:
    """List every metric; the current criteria are those in use, and those that the configuration adds."""
    current = [criteria_hash_of(options, name) for name in ("direct", *options.get(PROMPTS, {}))]
    if current == [criteria_hash()]:
        return METRICS
    obsolete = Rate(~pl.col("criteria_hash").is_in(current), _completed)
    return tuple(replace(m, estimator=obsolete) if m.name == "obsolete_criteria_rate" else m for m in METRICS)


# What scored sessions lack: tools that judges missed or wished to be better, and patterns of failure.


FAILURE, UNKNOWN = "failure", "unknown"
_LABELLED = {replies.ABSENT: "wishes.jsonl", FAILURE: "failures.jsonl"}

Tables = Mapping[str, pl.LazyFrame]


def mentions(tables: Tables) -> pl.DataFrame:
    """Collect the tools and failures named about each scored session; each once, however many scorings name it."""
    scores = tables[RESULTS.table].filter(_completed)
    about = scores.select("score_id", "sample_hash", "sample_id")
    tools = tables[MISSING_TOOLS.table].select(
        "score_id", kind=pl.col("kind").fill_null(UNKNOWN), name="tool_name", text="rationale"
    )
    failures = scores.select(
        "score_id",
        kind=pl.lit(FAILURE),
        name=pl.struct("failure_tags", "score_analysis").map_elements(_failures, pl.List(pl.String)),
        text=pl.lit(None, pl.String),
    ).explode("name")
    named = pl.concat([tools, failures]).filter(pl.col("name").is_not_null()).join(about, on="score_id")
    was = _as_it_was(tables, named.filter(kind=replies.ABSENT).select("sample_hash", "name").unique().collect())
    named = named.join(was.lazy(), on=("sample_hash", "name"), how="left").with_columns(
        kind=pl.when(pl.col("kind") == replies.ABSENT).then(pl.coalesce("was", "kind")).otherwise("kind")
    )
    once = named.group_by("kind", "name", "sample_hash").agg(pl.col("text", "sample_id").drop_nulls().sort().first())
    score = scores.group_by("sample_hash").agg(score=pl.col("total_score").sort().mean())
    return once.join(score, on="sample_hash").select(MENTIONS.names()).sort("kind", "name", "sample_hash").collect()


def _as_it_was(tables: Tables, absent: pl.DataFrame) -> pl.DataFrame:
    """Find tools that a judge calls absent though the session had them: `was` UNUSED, or IMPROVABLE where it was used.

    Names are compared without case, marks and the name of a server.
    """
    rows: list[dict[str, str]] = []
    if SAMPLES.table in tables and not absent.is_empty():
        hashes = absent["sample_hash"].unique().to_list()
        samples = tables[SAMPLES.table].filter(pl.col("sample_hash").is_in(hashes)).unique("sample_hash")
        for sample_hash, text in samples.select("sample_hash", "input").collect().iter_rows():
            try:
                session = load(text)
            except EvalakeError:
                continue
            used = {spelt for call in session.tool_calls for spelt in _spellings(call.name)}
            had = {spelt for agent in session.agents for tool in agent.tools for spelt in _spellings(tool.full_name)}
            for name in absent.filter(sample_hash=sample_hash)["name"]:
                if (spelt := set(_spellings(name))) & (used | had):
                    was = replies.IMPROVABLE if spelt & used else replies.UNUSED
                    rows.append({"sample_hash": sample_hash, "name": name, "was": was})
    return pl.DataFrame(rows, dict.fromkeys(("sample_hash", "name", "was"), pl.String))


def _spellings(name: str) -> Iterator[str]:
    """Yield a tool's name without case and marks, with its server and without."""
    for part in (name, name.rpartition(".")[2], name.rpartition("__")[2]):
        if plain := re.sub(r"[^a-z0-9]", "", part.casefold()):
            yield plain


def scored(tables: Tables) -> int:
    """Count the sessions that have a score."""
    return int(tables[RESULTS.table].filter(_completed).select(pl.col("sample_hash").n_unique()).collect().item())


def labelled() -> Mapping[str, Sequence[Labelled]]:
    """Read, by kind, examples in varied wording of what may be named about sessions, each with its theme."""
    folder = Path(__file__).parent
    return {
        kind: [Labelled(**json.loads(line)) for line in (folder / file).read_text(encoding="utf-8").splitlines()]
        for kind, file in _LABELLED.items()
    }


def _failures(score: Mapping[str, Any]) -> list[str]:
    """List each pattern that a scoring names, with its sentences in the analysis where these are found."""
    words = replies.read_failure_words(score["score_analysis"] or "")
    return [
        f"{tag}: {sentence}" if sentence else tag
        for tag in score["failure_tags"] or ()
        for sentence in words.get(tag, [""])
    ]


ROADMAP = Roadmap(
    title="Tool roadmap",
    best=HIGHEST,
    kinds={
        replies.ABSENT: Kind("Tools that do not exist", by_meaning=True),
        replies.IMPROVABLE: Kind("Tools to be improved", by_meaning=False),
        replies.UNUSED: Kind("Tools that should have been used", by_meaning=False),
        FAILURE: Kind("Patterns of failure", by_meaning=True, rule=lambda named: named.partition(":")[0]),
        UNKNOWN: Kind("Tools of unknown kind", by_meaning=True, shown_empty=False),
    },
    tables=(RESULTS, MISSING_TOOLS, SAMPLES),
    mentions=mentions,
    scored=scored,
    labelled=labelled,
)
