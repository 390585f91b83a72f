"""Statistics of scorings, ratings by people, and the newest roadmap."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from statistics import fmean, median
from typing import Any

import polars as pl
from pydantic import BaseModel, Field

from evalake.admin.roadmap import as_data, newest
from evalake.contracts.contract import Row
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables.people import HUMAN_LABELS, answered
from evalake.core.hashing import content_hash
from evalake.labels.sheets import after, words_there
from evalake.metrics.agreement import pearson
from evalake.metrics.compute import Metric, measure
from evalake.metrics.estimator import Estimator
from evalake.metrics.estimators import Mean
from evalake.server.scoring.scorings import State
from evalake.server.scoring.views import Rating, micros
from evalake.storage.cached_table import CachedTable
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.suites.session_review.metrics import BANDS
from evalake.suites.session_review.people import QUESTION
from evalake.suites.session_review.sources.tarsy_live import QUALITY, TARSY_SCORE
from evalake.suites.session_review.suite import SUITE

FEWEST_PAIRS = 10
"""Of fewer sessions no correlation is told."""

_SCORE = pl.col("score")
_TYPES = {"session": pl.String, "score": pl.Float64}


class Counts(BaseModel):
    """Sessions by the status of their newest scoring."""

    total: int
    not_scored: int
    pending: int
    in_progress: int
    completed: int
    failed: int


class Scores(BaseModel):
    """The newest completed score of each session, as far as it is by the current criteria; the others are counted.

    `ci_low` to `ci_high` is the 95 % interval of the mean.
    """

    n: int
    mean: float | None
    ci_low: float | None
    ci_high: float | None
    median: float | None
    lowest: int | None
    highest: int | None
    obsolete: int


class Bucket(BaseModel):
    """Sessions whose score is from low to high, both included."""

    low: int
    high: int
    count: int


class TrendPoint(BaseModel):
    """Scores that were completed on one day (UTC) under the same criteria; the interval is between sessions."""

    day: str
    criteria_hash: str
    current: bool
    n: int
    units: int
    mean: float
    ci_low: float | None
    ci_high: float | None


class ToolCount(BaseModel):
    """In how many sessions a tool was missed, of those scored by the current criteria."""

    tool_name: str
    sessions: int


class TagCount(BaseModel):
    """In how many sessions a pattern of failure was found, of those scored by the current criteria."""

    tag: str
    sessions: int


class Interval(BaseModel):
    """A 95 % interval; an end is null where it is unknown."""

    low: float | None
    high: float | None


class Agreement(BaseModel):
    """The difference of the judge's scores under the current criteria from people's (judge minus people), in points.

    The correlation is null below ten sessions.
    """

    n: int
    units: int
    mean_difference: float | None
    mean_difference_ci: Interval
    mean_absolute_difference: float | None
    mean_absolute_difference_ci: Interval
    correlation: float | None
    correlation_ci: Interval


class Statistics(BaseModel):
    """All figures over the scorings."""

    sessions: Counts
    scores: Scores
    distribution: list[Bucket]
    bands: dict[str, int]
    trend: list[TrendPoint]
    missing_tools: list[ToolCount]
    failure_tags: list[TagCount]
    agreement: Agreement


def statistics(sessions: Iterable[str], state: State, ratings: Sequence[Row]) -> Statistics:
    """Compute the figures over these sessions; `ratings` are rows of `human_labels` with a score."""
    ids = set(sessions) | state.by_session.keys()
    newest = {session_id: state.newest(session_id) for session_id in ids}
    by_status = Counter("not_scored" if row is None else row["status"] for row in newest.values())
    current = [row for row in state.completed.values() if state.is_current(row)]
    totals = [row["total_score"] for row in current]
    mean = _measured(
        pl.DataFrame({"session": [*map(str, range(len(totals)))], "score": totals}, _TYPES),
        Mean(_SCORE, low=0, high=100),
    )
    tools = Counter(tool for row in current for tool in set(row["missing_tools"] or ()))
    tags = Counter(tag for row in current for tag in set(row["failure_tags"] or ()))
    return Statistics(
        sessions=Counts(total=len(ids), **{name: by_status[name] for name in Counts.model_fields if name != "total"}),
        scores=Scores(
            n=len(totals),
            mean=mean["value"],
            ci_low=mean["ci_low"],
            ci_high=mean["ci_high"],
            median=median(totals) if totals else None,
            lowest=min(totals, default=None),
            highest=max(totals, default=None),
            obsolete=len(state.completed) - len(totals),
        ),
        distribution=[_bucket(totals, low, 100 if low == 90 else low + 9) for low in range(0, 100, 10)],
        bands={band: _bucket(totals, low, high).count for band, (low, high) in BANDS.items()},
        trend=_trend(state),
        missing_tools=[ToolCount(tool_name=name, sessions=count) for name, count in _ranked(tools)],
        failure_tags=[TagCount(tag=name, sessions=count) for name, count in _ranked(tags)],
        agreement=_agreement(state, ratings),
    )


def _bucket(totals: Sequence[int], low: int, high: int) -> Bucket:
    return Bucket(low=low, high=high, count=sum(low <= total <= high for total in totals))


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _trend(state: State) -> list[TrendPoint]:
    ended = [
        (f"{at:%Y-%m-%d}", row["criteria_hash"], row["sample_id"], row["total_score"])
        for row in state.by_id.values()
        if row["status"] == "completed" and (at := row["completed_at"]) is not None
    ]
    frame = pl.DataFrame(ended, {"day": pl.String, "criteria_hash": pl.String, **_TYPES}, orient="row")
    mean = [Metric("mean", Mean(_SCORE, low=0, high=100))]
    shown = {"day", "criteria_hash", "n", "units", "ci_low", "ci_high"}
    return [
        TrendPoint(
            **{name: row[name] for name in shown}, current=row["criteria_hash"] == state.criteria, mean=row["value"]
        )
        for row in measure(frame, mean, groups=("day", "criteria_hash"), cluster="session").iter_rows(named=True)
    ]


def _agreement(state: State, ratings: Sequence[Row]) -> Agreement:
    given: dict[str, list[float]] = defaultdict(list)
    for rating in ratings:
        score = score_of(rating, state)
        if score is not None and score["status"] == "completed" and state.is_current(score):
            given[score["score_id"]].append(rating["score"])
    pairs = [
        (row["sample_id"], row["total_score"], fmean(scores))
        for score_id, scores in given.items()
        if (row := state.by_id[score_id])
    ]
    frame = pl.DataFrame(pairs, {**_TYPES, "people": pl.Float64}, orient="row")
    apart = _SCORE - pl.col("people")
    difference = _measured(frame, Mean(apart, low=-100, high=100))
    distance = _measured(frame, Mean(apart.abs(), low=0, high=100))
    together = _measured(frame, pearson(_SCORE, pl.col("people")))
    if difference["units"] < FEWEST_PAIRS:
        together |= dict.fromkeys(("value", "ci_low", "ci_high"))
    return Agreement(
        n=len(pairs),
        units=difference["units"],
        mean_difference=difference["value"],
        mean_difference_ci=_interval(difference),
        mean_absolute_difference=distance["value"],
        mean_absolute_difference_ci=_interval(distance),
        correlation=together["value"],
        correlation_ci=_interval(together),
    )


def _measured(frame: pl.DataFrame, estimator: Estimator) -> dict[str, Any]:
    """Measure a frame of sessions: one row of `measure`, in which nothing is known of no session."""
    if frame.is_empty():
        return {"value": None, "ci_low": None, "ci_high": None, "units": 0}
    return measure(frame, [Metric("it", estimator)], groups=(), cluster="session").row(0, named=True)


def _interval(row: Row) -> Interval:
    return Interval(low=row["ci_low"], high=row["ci_high"])


# Ratings are rows of `human_labels`, beside the score that the person saw.


class Ratings:
    """The ratings of a lake's sessions."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._rows = CachedTable(lake, HUMAN_LABELS, suite=SUITE.name)

    def all(self) -> Sequence[Row]:
        """List the rows of `human_labels` that rate a session."""
        return [row for row in self._rows.rows().iter_rows(named=True) if row["question"] == QUESTION]

    def of(self, session_id: str, state: State) -> list[Rating]:
        """List the ratings of one session, newest first."""
        shown = (QUESTION, TARSY_SCORE, QUALITY)
        every = self._rows.rows().filter(pl.col("question").is_in(shown), pl.col("sample_id") == session_id)
        rows = every.to_dicts()
        rows.sort(key=lambda row: row["labelled_at"], reverse=True)
        return [_rating(row, score_of(row, state)) for row in rows]

    def put(self, score: Row, value: float, note: str | None, user: str) -> Rating:
        """Keep a person's rating of a scored session, in place of that person's earlier one of this score."""
        shown = ("sample_id", "sample_hash", "model", "judge", "prompt_type", "replicate")
        word = {
            "label_id": _word_id(score, user),
            "suite": SUITE.name,
            **{name: score[name] for name in shown},
            "finding_id": None,
            "annotator": user,
            "inclusion_probability": None,
            "draw": None,
            "labelled_at": datetime.now(UTC),
            "note": note,
        }
        (row,) = answered(word, {QUESTION: value})
        before = words_there(self._lake, pl.col("label_id") == row["label_id"]).get(row["label_id"])
        row = {**row, "labelled_at": after(before, row["labelled_at"])}
        land(self._lake, HUMAN_LABELS, conform([row], HUMAN_LABELS))
        return _rating(row, score)


def _word_id(score: Row, user: str) -> str:
    return content_hash([SUITE.name, score["score_id"], None, user])


def score_of(rating: Row, state: State) -> Row | None:
    """Find the score that a rating was given for; without one, the newest completed score of its judge and number."""
    rows = state.by_session.get(rating["sample_id"], ())
    own = [row for row in rows if content_hash([_word_id(row, rating["annotator"]), QUESTION]) == rating["label_id"]]
    about = ("sample_hash", "judge", "prompt_type", "replicate")
    same = [row for row in rows if row["status"] == "completed" and all(row[name] == rating[name] for name in about)]
    return next(reversed(own or same), None)


def _rating(row: Row, score: Row | None) -> Rating:
    return Rating(
        session_id=row["sample_id"],
        score_id=score["score_id"] if score else None,
        score=row["score"],
        quality_rating=row["answer"] if row["question"] == QUALITY else None,
        note=row["note"],
        rated_by=row["annotator"],
        rated_at_us=micros(row["labelled_at"]) or 0,
    )


# The roadmap: what sessions lack, grouped and ranked, with the sessions behind each theme.


class Mention(BaseModel):
    """A name that a judge gave about one session, and why."""

    session_id: str = Field(validation_alias="sample_id")
    name: str
    text: str | None


class Theme(BaseModel):
    """Mentions of the same meaning: in how many sessions they stand, and the points that these lack because of it."""

    theme_id: str
    rank: int
    theme: str
    sessions: int = Field(validation_alias="samples")
    points_lost: float
    mean_score: float
    mentions: list[Mention]


class ThemeKind(BaseModel):
    """The themes of one kind, the one that costs most first."""

    kind: str
    title: str
    themes: list[Theme]


class RoadmapView(BaseModel):
    """The whole roadmap; without kinds where none was made yet."""

    roadmap_id: str | None
    judge: str | None
    sessions: int = Field(validation_alias="samples")
    made_at: str | None
    kinds: list[ThemeKind]


def read_newest(lake: Lake) -> RoadmapView:
    """Read the roadmap that was made last."""
    return RoadmapView.model_validate(as_data(newest(lake, SUITE.name)))
