"""How people's ratings meet the judge's scores: joined by session, compared as SciPy and scikit-learn would."""

from collections.abc import Sequence
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
from evalake.contracts.tables import HUMAN_LABELS
from evalake.core.hashing import content_hash
from evalake.metrics.compute import measure
from evalake.sdk.people import with_people
from evalake.suites.session_review.metrics import METRICS
from evalake.suites.session_review.people import LABELLING
from tests.unit.suites.session_review.test_metrics import failed, frame, row

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


def scored(session: str, total: int, **changes: Any) -> dict[str, Any]:
    return row(sample_id=session, sample_hash=content_hash(session), total_score=total, **changes)


def rated(rows: Sequence[dict[str, Any]], ratings: Sequence[dict[str, Any]]) -> pl.DataFrame:
    results = frame(*rows).drop("human_score", "human_weight_score").lazy()
    return with_people(results, conform(list(ratings), HUMAN_LABELS).lazy(), LABELLING).collect()


def values(rows: pl.DataFrame) -> dict[str, tuple[float | None, int]]:
    """Value and n of both metrics."""
    measured = measure(rows, AGREEMENT).iter_rows(named=True)
    return {each["metric"]: (each["value"], each["n"]) for each in measured}


def band(score: float) -> str:
    return "green" if score >= 75 else "yellow" if score >= 50 else "red"


def test_several_peoples_latest_ratings_are_averaged_and_others_words_are_not() -> None:
    rows = [scored("a", 40), scored("a", 44, replicate=1), scored("b", 70), scored("c", 90)]
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


def test_without_any_rating_agreement_is_unknown() -> None:
    found = values(rated([scored("a", 40), scored("b", 70)], []))
    assert found[PEARSON] == found[KAPPA] == (None, 0)


def test_a_scoring_that_failed_agrees_with_nobody() -> None:
    rows = [scored("a", 40), scored("b", 70), failed(sample_id="c", sample_hash=content_hash("c"))]
    found = values(rated(rows, [rating("a", 50), rating("b", 60), rating("c", 10)]))
    assert found[PEARSON] == (pytest.approx(1), 2)
    assert found[KAPPA] == (pytest.approx(cohen_kappa_score(["red", "yellow"], ["yellow", "yellow"])), 2)


def test_what_never_varies_has_no_agreement_to_measure() -> None:
    found = values(rated([scored("a", 40), scored("b", 40)], [rating("a", 20), rating("b", 30)]))
    assert found[PEARSON] == found[KAPPA] == (None, 2)


@pytest.mark.parametrize(
    ("people", "name"), [((49, 50), "red"), ((50, 50), "yellow"), ((74, 75), "yellow"), ((75,), "green"), ((0,), "red")]
)
def test_a_mean_between_two_bands_is_in_the_lower_one(people: tuple[float, ...], name: str) -> None:
    """Beside one session of each band on which both agree, perfect agreement tells which band it is in."""
    anchors = {"red": 0, "yellow": 60, "green": 100}
    rows = [scored(each, total) for each, total in anchors.items()] + [scored("x", anchors[name])]
    ratings = [rating(each, total) for each, total in anchors.items()]
    ratings += [rating("x", score, who=str(number)) for number, score in enumerate(people)]
    assert values(rated(rows, ratings))[KAPPA] == (1, 4)


@pytest.mark.slow
@settings(max_examples=25)
@given(pairs=st.lists(st.tuples(points, points), min_size=2, max_size=30))
def test_agreement_is_that_of_scipy_and_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    rows = [scored(str(number), judge) for number, (judge, _) in enumerate(pairs)]
    found = values(rated(rows, [rating(str(number), people) for number, (_, people) in enumerate(pairs)]))
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
