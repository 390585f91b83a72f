"""Metrics of sessions, and ratings beside them."""

import math
import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr
from sklearn.metrics import cohen_kappa_score

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import HUMAN_LABELS, SAMPLES
from evalake.core.hashing import content_hash
from evalake.metrics.compute import measure
from evalake.sdk.people import with_people
from evalake.sdk.suite import MENTIONS
from evalake.suites.session_review.contract import MISSING_TOOLS, RESULTS
from evalake.suites.session_review.metrics import METRICS, TOOL_METRICS, tools_named
from evalake.suites.session_review.people import CORRECTED, LABELLING
from evalake.suites.session_review.prompts import criteria_hash
from evalake.suites.session_review.roadmap import FAILURE, ROADMAP, mentions, scored
from evalake.suites.session_review.session import Session, Stage, Tool, ToolCall, dump
from tests.cases import cases_beside
from tests.unit.suites.session_review.scored import LANDED
from tests.unit.suites.session_review.scored import scored as scoring
from tests.unit.suites.session_review.support import session

CASES = cases_beside(__file__, "row.json")

# The metrics of session_review against values computed by hand or by the standard library.

SCORES = [49, 50, 74, 75, 100, 0]
TYPES: dict[str, Any] = {
    "missing_tools": pl.List(pl.String),
    "logical_flow": pl.Int64,
    "human_score": pl.Float64,
    "human_weight_score": pl.Float64,
}


def row(**changes: Any) -> dict[str, Any]:
    given = {**CASES["row"], "criteria_hash": criteria_hash()}
    return {**given, **changes}


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema_overrides=TYPES)


def values(rows: pl.DataFrame) -> dict[tuple[str, str], tuple[float | None, int]]:
    """(metric, slice value) -> value and n; the slice `all` has an empty slice value."""
    measured = measure(rows, METRICS)
    return {
        (each["metric"], each["slice_value"]): (each["value"], each["n"])
        for each in measured.filter(pl.col("slice").is_in(["all", "alert_type"])).iter_rows(named=True)
    }


def failed(**changes: Any) -> dict[str, Any]:
    points = dict.fromkeys(["total_score", "logical_flow", "consistency", "tool_relevance", "synthesis_quality"])
    return row(status="failed", breakdown_consistent=None, missing_tools=None, **points, **changes)


def test_scores_bands_and_failures() -> None:
    rows = [row(sample_id=str(n), total_score=score) for n, score in enumerate(SCORES)]
    found = values(frame(*rows, failed(sample_id="f"), failed(sample_id="g")))
    assert found["score_mean", ""] == (pytest.approx(statistics.mean(SCORES)), 6)
    assert found["score_median", ""] == (pytest.approx(statistics.median(SCORES)), 6)
    assert found["score_std", ""] == (pytest.approx(statistics.pstdev(SCORES)), 6)
    deciles = statistics.quantiles(SCORES, n=10, method="inclusive")
    assert found["score_p10", ""] == (pytest.approx(deciles[0]), 6)
    assert found["score_p90", ""] == (pytest.approx(deciles[8]), 6)
    assert found["score_band_red_rate", ""] == (pytest.approx(2 / 6), 6)
    assert found["score_band_yellow_rate", ""] == (pytest.approx(2 / 6), 6)
    assert found["score_band_green_rate", ""] == (pytest.approx(2 / 6), 6)
    assert found["scoring_failure_rate", ""] == (pytest.approx(2 / 8), 8)
    assert found["category_mean_synthesis_quality", ""] == (20, 6)


def test_scorings_that_are_not_over_count_nowhere() -> None:
    found = values(frame(row(), failed(sample_id="p") | {"status": "pending"}))
    assert found["scoring_failure_rate", ""] == (0, 1)


def test_without_any_score_everything_is_null() -> None:
    found = values(frame(failed()))
    assert found["scoring_failure_rate", ""] == (1, 1)
    for metric in ("score_mean", "score_std", "score_p10", "score_band_red_rate", "breakdown_consistent_rate"):
        assert found[metric, ""] == (None, 0)


def test_slices_are_those_of_alert_types_agents_and_criteria() -> None:
    rows = frame(row(total_score=40), row(sample_id="t", alert_type="Memory", agent="b", total_score=80))
    found = values(rows)
    assert found["score_mean", "Memory"] == (80, 1)
    assert found["score_band_red_rate", "Disk"] == (1, 1)
    sliced = set(measure(rows, METRICS).filter(metric="score_mean")["slice"])
    assert sliced == {"all", "alert_type", "agent", "criteria_hash"}


def test_breakdowns_and_obsolete_criteria() -> None:
    rows = [row(), row(sample_id="t", breakdown_consistent=False), row(sample_id="u", breakdown_consistent=None)]
    found = values(frame(*rows, row(sample_id="v", criteria_hash="0" * 64)))
    assert found["breakdown_consistent_rate", ""] == (pytest.approx(2 / 3), 3)
    assert found["obsolete_criteria_rate", ""] == (0.25, 4)


def test_retest_pools_the_variance_within_sessions_by_judge() -> None:
    repeated = {"a": [50, 60, 70], "b": [40, 44], "once": [99]}
    rows = [
        row(sample_id=name, replicate=n, total_score=score)
        for name, scores in repeated.items()
        for n, score in enumerate(scores)
    ]
    rows += [failed(sample_id="a", replicate=3), failed(sample_id="b", replicate=2)]
    squares = 2 * statistics.variance(repeated["a"]) + statistics.variance(repeated["b"])
    expected = math.sqrt(squares / 3)
    assert values(frame(*rows))["retest_std", ""] == (pytest.approx(expected), 2)
    late = [failed(sample_id="c"), *(row(sample_id="c", replicate=n, total_score=n) for n in (1, 2))]
    assert values(frame(*late))["retest_std", ""] == (pytest.approx(statistics.stdev([1, 2])), 1)
    mine = (each | {"criteria_hash": "mine", "total_score": each["total_score"] - 40} for each in rows[:5])
    assert values(frame(*rows, *mine))["retest_std", ""] == (pytest.approx(expected), 4), "other criteria repeat none"
    judges = measure(frame(*rows, *(each | {"judge": "k", "total_score": 50} for each in rows[:3])), METRICS)
    assert judges.filter(metric="retest_std")["value"].to_list() == [pytest.approx(expected), 0]


def test_a_missing_tool_is_counted_once_for_each_session_and_judge() -> None:
    rows = frame(
        row(sample_id="a", missing_tools=["heap-dump", "disk-usage"]),
        row(sample_id="a", missing_tools=["heap-dump"], replicate=1),
        row(sample_id="b", missing_tools=["heap-dump"]),
        row(sample_id="c", missing_tools=[]),
        failed(sample_id="d"),
        row(sample_id="a", missing_tools=["heap-dump"], judge="k"),
    )
    measured = measure(tools_named(rows.lazy()), TOOL_METRICS)
    assert measured.select("judge", "slice", "slice_value", "value").rows() == [
        ("j", "tool_name", "disk-usage", 1),
        ("j", "tool_name", "heap-dump", 2),
        ("k", "tool_name", "heap-dump", 1),
    ]
    assert measure(tools_named(frame(row()).lazy()), TOOL_METRICS).is_empty()


# How people's ratings meet the judge's scores: joined by session, compared as SciPy and scikit-learn would.

SAID_AT = datetime(2026, 3, 1, tzinfo=UTC)
PEARSON, KAPPA = "judge_human_pearson", "judge_human_kappa_bands"
AGREEMENT = [metric for metric in METRICS if metric.name in (PEARSON, KAPPA)]

points = st.integers(0, 100)


def rating(session: str, score: float | None, who: str = "ann", days: int = 0, **changes: Any) -> dict[str, Any]:
    said = {"sample_id": session, "sample_hash": content_hash(session), "question": "score", "score": score}
    given = {"suite": "session_review", "model": "agents", "replicate": 0, "annotator": who, **said}
    when = {"labelled_at": SAID_AT + timedelta(days=days)}
    return {
        **dict.fromkeys(HUMAN_LABELS.column),
        "label_id": content_hash([session, who, days]),
        **given,
        **when,
        **changes,
    }


def said(session: str, total: int, **changes: Any) -> dict[str, Any]:
    return row(sample_id=session, sample_hash=content_hash(session), total_score=total, **changes)


def rated(rows: Sequence[dict[str, Any]], ratings: Sequence[dict[str, Any]]) -> pl.DataFrame:
    results = frame(*rows).drop("human_score", "human_weight_score").lazy()
    return with_people(results, conform(list(ratings), HUMAN_LABELS).lazy(), LABELLING).collect()


def agreed(rows: pl.DataFrame) -> dict[str, tuple[float | None, int]]:
    """Value and n of both metrics."""
    measured = measure(rows, AGREEMENT).iter_rows(named=True)
    return {each["metric"]: (each["value"], each["n"]) for each in measured}


def band(score: float) -> str:
    return "green" if score >= 75 else "yellow" if score >= 50 else "red"


def test_several_peoples_latest_ratings_are_averaged_and_others_words_are_not() -> None:
    rows = [said("a", 40), said("a", 44, replicate=1), said("b", 70), said("c", 90)]
    found = rated(
        rows,
        [
            rating("a", 10, days=1),
            rating("a", 30, days=2),  # in place of the one before
            rating("a", 60, "bob"),
            rating("b", 80, suite="another"),
            rating("b", None, question="verdict", answer="good"),
            rating("elsewhere", 5),
        ],
    )
    assert found["human_score"].to_list() == [45, 45, None, None]
    joined = [name for name in found.columns if name.startswith("human_")]
    assert found.drop(joined).equals(frame(*rows).drop("human_score", "human_weight_score"))


def test_a_scoring_that_failed_agrees_with_nobody() -> None:
    rows = [said("a", 40), said("b", 70), failed(sample_id="c", sample_hash=content_hash("c"))]
    found = agreed(rated(rows, [rating("a", 50), rating("b", 60), rating("c", 10)]))
    assert found[PEARSON] == (pytest.approx(1), 2)
    assert found[KAPPA] == (pytest.approx(cohen_kappa_score(["red", "yellow"], ["yellow", "yellow"])), 2)


@pytest.mark.parametrize(("chance", "labels"), [(None, None), (0.5, 20)])
def test_ratings_of_sessions_that_were_picked_correct_nothing(chance: float | None, labels: int | None) -> None:
    ratings = [rating(f"s{n}", 10, inclusion_probability=chance, draw=chance and "one") for n in range(20)]
    known = CORRECTED["score_mean"].by_people(rated([said(f"s{n}", 90) for n in range(40)], ratings))
    assert (known and known.labels) == labels


@pytest.mark.parametrize(
    ("people", "name"), [((49, 50), "red"), ((50, 50), "yellow"), ((74, 75), "yellow"), ((75,), "green"), ((0,), "red")]
)
def test_a_mean_between_two_bands_is_in_the_lower_one(people: tuple[float, ...], name: str) -> None:
    """Beside one session of each band on which both agree, perfect agreement tells which band it is in."""
    anchors = {"red": 0, "yellow": 60, "green": 100}
    rows = [said(each, total) for each, total in anchors.items()] + [said("x", anchors[name])]
    ratings = [rating(each, total) for each, total in anchors.items()]
    ratings += [rating("x", score, who=str(number)) for number, score in enumerate(people)]
    assert agreed(rated(rows, ratings))[KAPPA] == (1, 4)


@pytest.mark.slow
@settings(max_examples=25)
@given(pairs=st.lists(st.tuples(points, points), min_size=2, max_size=30))
def test_agreement_is_that_of_scipy_and_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    rows = [said(str(number), judge) for number, (judge, _) in enumerate(pairs)]
    found = agreed(rated(rows, [rating(str(number), people) for number, (_, people) in enumerate(pairs)]))
    judge, people = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    assert found[PEARSON][1] == found[KAPPA][1] == len(pairs)
    if np.ptp(judge) and np.ptp(people):
        assert found[PEARSON][0] == pytest.approx(pearsonr(judge, people).statistic, abs=1e-9)
    else:
        assert found[PEARSON][0] is None
    bands = [band(score) for score in judge], [band(score) for score in people]
    if len({*bands[0], *bands[1]}) > 1:
        assert found[KAPPA][0] == pytest.approx(cohen_kappa_score(*bands), abs=1e-9)
    else:
        assert found[KAPPA][0] is None


# What scored sessions lack: tools by kind and patterns of failure in the judge's words, once for each session.

LISTS = "## Should have been used\n1. **logs**: x\n## Do not exist\n1. **heap**: y\n## Could be improved\n1. **df**: z"


def tables(*scorings: tuple[dict[str, Any], list[dict[str, Any]]]) -> Mapping[str, pl.LazyFrame]:
    """The tables that scorings land in."""
    rows = [{**row, **LANDED} for row, _ in scorings]
    tools = [{**tool, **LANDED} for _, each in scorings for tool in each]
    return {RESULTS.table: conform(rows, RESULTS).lazy(), MISSING_TOOLS.table: conform(tools, MISSING_TOOLS).lazy()}


def named(given: Mapping[str, pl.LazyFrame]) -> list[tuple[str, str]]:
    found = mentions(given)
    assert found.schema == MENTIONS
    assert set(found["kind"]) <= ROADMAP.kinds.keys()
    return list(found.select("kind", "name").iter_rows())


def test_tools_are_of_the_kind_that_their_heading_says() -> None:
    given = tables(scoring("67", LISTS))
    assert named(given) == [("absent", "heap"), ("improvable", "df"), ("unused", "logs")]
    assert mentions(given)["text"].to_list() == ["y", "z", "x"]


def test_an_answer_without_headings_names_tools_of_unknown_kind() -> None:
    assert named(tables(scoring("67", "1. **heap**: y"))) == [("unknown", "heap")]


def test_a_tool_that_the_session_had_is_not_absent_however_it_is_spelt() -> None:
    lists = "## Do not exist\n" + "".join(f"1. **{each}**: y\n" for each in ("Get_Pods", "kube.tail-logs", "heap"))
    row, tools = scoring("67", lists)
    called = ToolCall("tail_logs", server="kube")
    agent = Stage("s", "a", "completed", (called,), (Tool("get-pods", "kube"), Tool("tail_logs", "kube")))
    sample = {"sample_hash": row["sample_hash"], "input": dump(Session("s", "completed", "a", "disk", stages=(agent,)))}
    given = {**tables((row, tools)), SAMPLES.table: pl.LazyFrame([sample])}
    assert named(given) == [("absent", "heap"), ("improvable", "kube.tail-logs"), ("unused", "get-pods")]


def test_a_pattern_is_named_in_each_sentence_in_which_it_was_found() -> None:
    analysis = "It was a premature_conclusion. Later, a premature conclusion at 7.\nNo wrong_conclusion.\n67"
    assert named(tables(scoring(analysis, "None."))) == [
        (FAILURE, "premature_conclusion: It was a premature_conclusion."),
        (FAILURE, "premature_conclusion: Later, a premature conclusion at 7."),
    ]


def test_a_pattern_whose_words_are_lost_is_named_alone() -> None:
    row, tools = scoring("A wrong_conclusion.\n67", "None.")
    assert named(tables(({**row, "score_analysis": None}, tools))) == [(FAILURE, "wrong_conclusion")]


def test_several_scorings_of_a_session_name_a_thing_once_and_its_score_is_their_mean() -> None:
    given = tables(
        scoring("60", "1. **heap**: y"),
        scoring("70", "1. **heap**: another reason", judge="judge-b"),
        scoring("20", "1. **heap**: y", of=session(alert="another")),
    )
    found = mentions(given).sort("score")
    assert found.select("name", "score").rows() == [("heap", 20.0), ("heap", 65.0)]
    assert found["sample_hash"].n_unique() == scored(given) == 2


def test_a_scoring_that_failed_names_nothing_and_counts_nowhere() -> None:
    given = tables(scoring("one", "two", "three"))
    assert (named(given), scored(given)) == ([], 0)
