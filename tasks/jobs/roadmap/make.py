"""A roadmap: what results say is wanting, grouped by meaning, and what it costs; made once of the same results."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import polars as pl

from contracts.compile.arrow import conform
from contracts.tables import ROADMAP_MENTIONS
from core.errors import UsageError
from core.hashing import content_hash
from metrics.grouping import grouping_agreement
from storage.lake import Lake
from storage.landing import land
from suites.base import Roadmap
from suites.base.roadmap import Labelled
from suites.registry import suite as find_suite
from suites.registry import suite_names
from tasks.jobs.roadmap.by_judge import group_by_judge
from tasks.jobs.roadmap.by_words import group_by_words
from tasks.runtime.context import RunContext

METHOD = 2  # changes whenever the same results can be grouped otherwise
REASONS = 3  # of one name, that tell what is meant
Themes = dict[str, str]  # by name
_THEME = ("kind", "theme_id", "theme")


def roadmap_suites() -> tuple[str, ...]:
    """List the suites whose results a roadmap can be made of."""
    return tuple(name for name in suite_names() if find_suite(name).roadmap is not None)


def roadmap_of(suite: str) -> Roadmap:
    """Look up how the roadmap of a suite is made. Raises UsageError where none is."""
    roadmap = find_suite(suite).roadmap
    if roadmap is None:
        raise UsageError(f"{suite} has no roadmap: choose one of {', '.join(roadmap_suites())}")
    return roadmap


def make_roadmap(context: RunContext, judge: str | None) -> pl.DataFrame:
    """Group what the suite's results lack, land it, and return the rows of ROADMAP_MENTIONS.

    The same results, grouped by the same judge, give the rows that are there already, and no call. Where the lake has
    no results that lack anything, there are no rows.

    Args:
        context: The suite, and the lake whose results are read.
        judge: Who groups by meaning; None for the rules.

    Raises:
        UsageError: The suite has no roadmap.
        GroupingError: The judge gave no grouping.
    """
    roadmap = roadmap_of(context.suite_name)
    tables = {contract.table: context.lake.frame(contract) for contract in roadmap.tables}
    mentions, samples = roadmap.mentions(tables), roadmap.scored(tables)
    roadmap_id = content_hash([context.suite_name, judge, METHOD, samples, mentions.rows()])
    there = rows_of(context.lake, roadmap_id)
    if there.is_empty() and not mentions.is_empty():
        themes = _themes(context, roadmap, judge, mentions)
        rows = _costed(roadmap, mentions.join(themes, on=("kind", "name"))).with_columns(
            theme_id=pl.struct("kind", "theme").map_elements(
                lambda each: content_hash([context.suite_name, each["kind"], each["theme"]]), pl.String
            ),
            roadmap_id=pl.lit(roadmap_id),
            suite=pl.lit(context.suite_name),
            judge=pl.lit(judge, pl.String),
            samples=pl.lit(samples),
            run_id=pl.lit(context.run_id),
            made_at=pl.lit(datetime.now(UTC)),
        )
        land(context.lake, ROADMAP_MENTIONS, conform(rows.to_dicts(), ROADMAP_MENTIONS))
        there = rows_of(context.lake, roadmap_id)
    return there


def rows_of(lake: Lake, roadmap_id: str) -> pl.DataFrame:
    """Read the rows of one roadmap; none where it was not made."""
    return lake.frame(ROADMAP_MENTIONS).filter(pl.col("roadmap_id") == roadmap_id).collect()


def newest(lake: Lake, suite: str) -> pl.DataFrame:
    """Read the rows of the suite's roadmap that was made last; none where there is none."""
    mine = lake.frame(ROADMAP_MENTIONS).filter(pl.col("suite") == suite)
    last = mine.select("made_at", "roadmap_id").unique().sort("made_at", "roadmap_id").tail(1).collect()["roadmap_id"]
    return rows_of(lake, last[0] if last.len() else "")


def ranked(rows: pl.DataFrame) -> pl.DataFrame:
    """Rank the themes of a roadmap: of each kind, in the suite's order, the one that costs most first.

    Returns:
        rank (within the kind), kind, theme_id, theme, the number of samples behind it, the points that they lack
        because of it, their mean score, its names, and `mentions`: sample, name and text, in the order of the samples.
    """
    by_sample = rows.sort("sample_id", "name").group_by(*_THEME, "sample_hash", maintain_order=True)
    samples = by_sample.agg(
        pl.col("score").first(),
        pl.col("points_lost").sum(),
        pl.col("name"),
        mentions=pl.struct("sample_id", "sample_hash", "name", "text"),
    )
    themes = samples.group_by(_THEME, maintain_order=True).agg(
        samples=pl.len(),
        points_lost=pl.col("points_lost").sum().round(6),
        mean_score=pl.col("score").mean(),
        names=pl.col("name").explode().unique().sort(),
        mentions=pl.col("mentions").explode(),
    )
    kinds = list(roadmap_of(rows["suite"][0]).kinds) if rows.height else []
    order = pl.col("kind").replace_strict(kinds, range(len(kinds)), default=len(kinds), return_dtype=pl.Int64)
    sorted_ = themes.sort(order, "points_lost", "samples", "theme", descending=[False, True, True, False])
    return sorted_.select(pl.int_range(1, pl.len() + 1).over("kind").alias("rank"), pl.all())


def as_data(rows: pl.DataFrame) -> dict[str, Any]:
    """Build a roadmap's whole data, as machines and pages take it; without rows, a roadmap of no themes."""
    if rows.is_empty():
        unknown = dict.fromkeys(("roadmap_id", "title", "suite", "judge"))
        return {**unknown, "samples": 0, "made_at": None, "kinds": []}
    about = rows.select("roadmap_id", "suite", "judge", "samples", "made_at").row(0, named=True)
    roadmap, themes = roadmap_of(about["suite"]), ranked(rows)
    return {
        **about,
        "title": roadmap.title,
        "made_at": about["made_at"].isoformat(),
        "kinds": [
            {"kind": kind, "title": each.title, "themes": themes.filter(kind=kind).drop("kind").to_dicts()}
            for kind, each in roadmap.kinds.items()
        ],
    }


def measure_grouping(context: RunContext, judge: str | None) -> list[dict[str, float | int | str | None]]:
    """Measure how well the judge, or the rules, group the suite's labelled sets: all of each, and what was held out."""
    roadmap = roadmap_of(context.suite_name)
    measured: list[dict[str, float | int | str | None]] = []
    for kind, labelled in roadmap.labelled().items():
        named = {each.name: each.text for each in labelled}
        of = _group(context, judge, roadmap, kind, named, dict.fromkeys(named, 1))
        parts = {"all": labelled, "held out": [each for each in labelled if each.held_out]}
        measured += [
            {"kind": kind, "part": part, "named": len(some), **_agreement(some, of)} for part, some in parts.items()
        ]
    return measured


def _agreement(labelled: Sequence[Labelled], of: Mapping[str, str]) -> dict[str, float | int | None]:
    found, known = [of[each.name] for each in labelled], [each.theme for each in labelled]
    return {"themes": len(set(known)), "found": len(set(found)), **asdict(grouping_agreement(found, known))}


def _group(
    context: RunContext,
    judge: str | None,
    roadmap: Roadmap,
    kind: str,
    named: Mapping[str, str],
    times: Mapping[str, int],
) -> Themes:
    """Find the theme of each name: by meaning, or where no judge is named by the kind's rule or the words in common.

    A theme that words in common make has the name that was named most.
    """
    if judge is not None:
        return group_by_judge(context, judge, kind, named)
    if (rule := roadmap.kinds[kind].rule) is not None:
        return {name: rule(name) for name in named}
    groups = group_by_words(named)
    return {name: min(members, key=lambda each: (-times[each], each)) for members in groups for name in members}


def _themes(context: RunContext, roadmap: Roadmap, judge: str | None, mentions: pl.DataFrame) -> pl.DataFrame:
    """Find the theme of each kind and name."""
    rows = []
    for (kind,), named in mentions.sort("kind").group_by("kind", maintain_order=True):
        reasons = {
            name: " / ".join(of["text"].drop_nulls().unique().sort().head(REASONS))
            for (name,), of in named.group_by("name")
        }
        by_meaning = roadmap.kinds[str(kind)].by_meaning
        times = Counter(named["name"])
        themes = (
            _group(context, judge, roadmap, str(kind), reasons, times)
            if by_meaning
            else {name: name for name in reasons}
        )
        rows += [{"kind": kind, "name": name, "theme": theme} for name, theme in themes.items()]
    return pl.DataFrame(rows, {"kind": pl.String, "name": pl.String, "theme": pl.String})


def _costed(roadmap: Roadmap, rows: pl.DataFrame) -> pl.DataFrame:
    """Add the points that each row stands for: what its sample lacks, over its themes of the kind, over their rows."""
    lost = (roadmap.best - pl.col("score")).clip(0)
    themes = pl.col("theme").n_unique().over("kind", "sample_hash")
    return rows.with_columns(points_lost=lost / themes / pl.len().over("kind", "theme", "sample_hash"))
